//! Programs in sessions that remove the daemon's lock, or have it themselves.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::daemon::Daemon;
use crate::harness::waiting::{LOOK, SAFETY, until};
use crate::outlive::client::{Client, Started, start};
use crate::outlive::home::Home;

/// Takes the lock of the daemon, once it is told to, and keeps it.
const TAKER: &str = "
import fcntl, os, sys, time
path, go, ready = sys.argv[1:]
while not os.path.exists(go):
    time.sleep(0.01)
os.remove(path)
lock = open(path, 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write('1\\n')
lock.flush()
open(ready, 'w').close()
time.sleep(1000)
";

/// Starts a session in which a program takes the lock when it is told to.
async fn taker(home: &Home, client: &mut Client) -> Started {
    let script = home.path("taker.py");
    fs::write(&script, TAKER).unwrap();
    let words = [script, home.runtime("daemon.lock"), home.path("go"), home.path("taken")];
    let words = words.map(|word| word.display().to_string()).join(" ");
    start(client, &format!("exec /usr/bin/python3 {words}")).await
}

async fn takes(home: &Home) {
    fs::write(home.path("go"), "").unwrap();
    until("it to take the lock", || home.path("taken").exists()).await;
}

/// Waits until the lock is the daemon's again.
async fn is_locked_by(home: &Home, daemon: &Daemon) {
    let lock = home.runtime("daemon.lock");
    let said = || fs::read_to_string(&lock).is_ok_and(|it| it.trim() == daemon.pid().to_string());
    until("the daemon to take its lock anew", said).await;
}

async fn running(client: &mut Client) -> usize {
    let all = client.must("list_sessions", json!({})).await;
    let all = all["sessions"].as_array().unwrap().iter();
    all.filter(|one| one["state"] == "running").count()
}

/// Writes into a session whose shim stands still, until that is noticed.
async fn falls_silent(client: &mut Client, session: &str, lease: &Value) {
    let writing = async {
        let write = json!({"session": session, "text": "x", "lease_id": lease["lease_id"]});
        loop {
            match client.call("send_text", write.clone()).await.expect("the daemon stays") {
                Err(refused) if refused["error_code"] == "terminal_silent" => return,
                Ok(_) | Err(_) => sleep(LOOK).await,
            }
        }
    };
    timeout(SAFETY, writing).await.expect("it falls silent");
}

#[tokio::test]
async fn a_daemon_whose_lock_a_program_in_a_session_takes_keeps_its_place_and_its_sessions() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    taker(&home, &mut client).await;
    let victim = start(&mut client, "exec sleep 1000").await;
    let lease = client.must("acquire_lease", json!({"session": victim.id})).await;
    let shim = Pid::from_raw(home.shim(&victim.id));
    kill(shim, Signal::SIGSTOP).unwrap();
    takes(&home).await;
    // Nobody answers for one terminal, which is no reason to think that another daemon has it.
    falls_silent(&mut client, &victim.id, &lease).await;
    is_locked_by(&home, &daemon).await;
    kill(shim, Signal::SIGCONT).unwrap();
    assert_eq!(running(&mut client).await, 2);
    let second = home.spawn("").ends().await;
    assert!(second.1.contains(&format!("process {}", daemon.pid())), "{second:?}");
    fs::remove_file(home.runtime("daemon.lock")).unwrap();
    is_locked_by(&home, &daemon).await;
    assert_eq!(running(&mut client).await, 2);
    home.printed("stop");
    assert_eq!(daemon.ends().await.0, Some(0));
}

#[tokio::test]
async fn a_program_in_a_session_that_has_the_lock_keeps_no_daemon_from_starting() {
    let home = Home::new();
    let daemon = home.serve().await;
    let session = taker(&home, &mut home.client().await).await;
    daemon.kill().await;
    takes(&home).await;
    let daemon = home.serve().await;
    let mut client = home.client().await;
    assert_eq!(running(&mut client).await, 1);
    let lock = fs::read_to_string(home.runtime("daemon.lock")).unwrap();
    assert_eq!(lock.trim(), daemon.pid().to_string());
    home.printed("stop");
    assert_eq!(daemon.ends().await.0, Some(0));
    assert!(!crate::harness::processes::lives(session.pid));
}
