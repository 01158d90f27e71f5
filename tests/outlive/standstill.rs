//! Shims that stand still for a while: their sessions wait for them, and can be ended all the same.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::processes::{lives, stands_still};
use crate::harness::waiting::{SAFETY, until};
use crate::outlive::client::{Client, Started, listed, start};
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;

/// Lets the shim of a session stand still, and gives back its number.
async fn stop_shim(home: &Home, session: &Started) -> Pid {
    let shim = home.shim(&session.id);
    stands_still(shim).await;
    Pid::from_raw(shim)
}

fn write(session: &Started, lease: &Value, text: &str) -> Value {
    json!({"session": session.id, "text": text, "lease_id": lease})
}

/// Starts a program that writes what it reads into `read`, and takes its lease.
async fn recording(home: &Home, client: &mut Client) -> (Started, Value) {
    let session = start(client, &recorder(&home.path("read"))).await;
    let said = json!({"session": session.id, "text": "recording", "since": 0});
    client.must("wait_for", said).await;
    // From then on nobody asks its shim for anything.
    client.must("wait_for", json!({"session": session.id, "idle_ms": 500})).await;
    let granted = json!({"session": session.id, "ttl_ms": 120_000});
    let lease = client.must("acquire_lease", granted).await["lease_id"].clone();
    (session, lease)
}

/// Writes until the session is known to be silent, and gives back what was acknowledged.
async fn write_until_silent(client: &mut Client, session: &Started, lease: &Value) -> String {
    let mut acknowledged = String::new();
    let writing = async {
        for number in 0.. {
            let text = format!("{number}.");
            match client.call("send_text", write(session, lease, &text)).await.unwrap() {
                Ok(written) => assert_eq!(written["written"], text.len(), "{written}"),
                Err(refused) => {
                    assert_eq!(refused["error_code"], "terminal_silent", "{refused}");
                    return;
                }
            }
            acknowledged.push_str(&text);
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SAFETY, writing).await.expect("it is known to be silent");
    assert!(!acknowledged.is_empty());
    assert_eq!(listed(client, &session.id).await["state"], "running");
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_shim_stood_still_goes_on_with_its_lease() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (session, lease) = recording(&home, &mut client).await;
    let shim = stop_shim(&home, &session).await;
    let acknowledged = write_until_silent(&mut client, &session, &lease).await;

    kill(shim, Signal::SIGCONT).unwrap();
    let writing = async {
        loop {
            match client.call("send_text", write(&session, &lease, "third.")).await.unwrap() {
                Ok(written) => return written,
                Err(refused) => assert_eq!(refused["error_code"], "terminal_silent"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let third = timeout(SAFETY, writing).await.expect("the session comes back");
    assert_eq!(third["warning"], Value::Null, "{third}");
    // What was acknowledged arrives, once and in its order.
    let (log, expected) = (home.path("read"), format!("{acknowledged}third."));
    let reads = || fs::read(&log).unwrap().len() >= expected.len();
    until("the program to read", reads).await;
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);

    // The next daemon finds all of it, too.
    daemon.kill().await;
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let fourth = client.must("send_text", write(&session, &lease, "fourth.")).await;
    assert_eq!(fourth["written"], 7, "{fourth}");
    let screen = client.must("read_screen", json!({"session": session.id})).await;
    assert!(screen["text"].as_str().unwrap().contains("recording"), "{screen}");
    daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_shim_stands_still_can_be_killed() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (noticed, lease) = recording(&home, &mut client).await;
    let unnoticed = start(&mut client, "exec sleep 1000").await;
    stop_shim(&home, &noticed).await;
    stop_shim(&home, &unnoticed).await;
    write_until_silent(&mut client, &noticed, &lease).await;
    for session in [&noticed, &unnoticed] {
        let killed = json!({"session": session.id, "action": "kill"});
        client.must("manage_session", killed).await;
        assert!(!lives(session.pid));
        let state = listed(&mut client, &session.id).await["state"].clone();
        assert_eq!(state, "exited");
    }
    daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_stopped_leaves_no_shim_that_stands_still() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (session, lease) = recording(&home, &mut client).await;
    stop_shim(&home, &session).await;
    write_until_silent(&mut client, &session, &lease).await;
    daemon.signal(Signal::SIGTERM);
    daemon.ends().await;
    assert_eq!(home.sessions_processes(), Vec::<String>::new());
    assert!(!home.runtime(&format!("h/{}.sock", session.id)).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shim_that_is_killed_while_it_stands_still_ends_its_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (session, lease) = recording(&home, &mut client).await;
    let shim = stop_shim(&home, &session).await;
    write_until_silent(&mut client, &session, &lease).await;
    kill(shim, Signal::SIGKILL).unwrap();
    let ends = json!({"session": session.id, "exit": true});
    assert_eq!(client.must("wait_for", ends).await["outcome"], "exited");
    let exit = listed(&mut client, &session.id).await["exit"].clone();
    assert_eq!(exit, json!({"cause": "shim_lost"}));
    daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_was_stopped_is_named_with_what_to_do_about_it() {
    let home = Home::new();
    let daemon = home.serve().await;
    start(&mut home.client().await, "exec sleep 1000").await;
    stands_still(daemon.pid()).await;
    let pid = daemon.pid();

    let second = home.envelope("serve");
    assert_eq!(second["error_code"], "daemon_running", "{second}");
    let error = second["error"].as_str().unwrap();
    assert!(error.contains(&format!("process {pid}")) && error.contains("suspended"), "{error}");
    assert!(second["hint"].as_str().unwrap().contains("kill -CONT"), "{second}");

    let doctor = home.envelope("doctor");
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let of = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    let advice = of("daemon")["advice"].as_str().unwrap();
    assert!(advice.contains(&format!("kill -CONT {pid}")), "{doctor}");
    assert!(!of("sockets")["advice"].as_str().unwrap().contains("Nothing"), "{doctor}");
    daemon.signal(Signal::SIGCONT);
    daemon.kill().await;
}
