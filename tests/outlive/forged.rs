//! Sockets that a program removed, or at which it listens itself: no session ends by that, and nobody
//! speaks with who is not a shim or a daemon.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::harness::processes::{lives, stands_still};
use crate::harness::waiting::{LOOK, SAFETY, until};
use crate::outlive::client::{Client, listed, start};
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;
use crate::outlive::storm::text_of;

/// Moves a socket aside and listens in its place, once it is told to; writes down whatever is said to it.
const FORGER: &str = "
import os, socket, sys
path, kind, told, ready = sys.argv[1:]
os.rename(path, path + '.aside')
listener = socket.socket(socket.AF_UNIX, getattr(socket, kind))
listener.bind(path)
listener.listen()
open(ready, 'w').close()
while True:
    came, _ = listener.accept()
    came.settimeout(5)
    try:
        said = came.recv(65536)
    except OSError:
        said = b''
    with open(told, 'ab') as log:
        log.write(said)
    came.close()
";

/// Comes to a shim as a daemon would, and goes once it is answered.
const STRANGER: &str = "
import socket, struct, sys
shim = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
shim.settimeout(20)
shim.connect(sys.argv[1])
shim.send(struct.pack('<HH4sH', 2, 0, b'tghd', 2))
sys.exit(0 if shim.recv(65536) else 1)
";

/// Starts a session in which a program listens at `path` from now on; what it is told is in the file.
async fn forge(home: &Home, client: &mut Client, path: &Path, kind: &str) -> PathBuf {
    let (told, ready) = start_forger(home, client, "", path, kind).await;
    until("it to listen", || ready.exists()).await;
    told
}

/// Starts a session in which a program listens at `path` after this shell line. What it is told is in the first file;
/// the second is there once it listens.
async fn start_forger(
    home: &Home,
    client: &mut Client,
    before: &str,
    path: &Path,
    kind: &str,
) -> (PathBuf, PathBuf) {
    let (script, told) = (home.path("forger.py"), home.path("told"));
    let ready = home.path("forged");
    fs::write(&script, FORGER).unwrap();
    fs::write(&told, "").unwrap();
    let words = [script.as_path(), path, Path::new(kind), &told, &ready];
    let words = words.map(|word| word.display().to_string()).join(" ");
    // It leaves its session as far as it can.
    start(client, &format!("{before} env -i setsid /usr/bin/python3 {words}")).await;
    (told, ready)
}

/// Waits until a session is told of as one that runs and answers.
async fn once_back(client: &mut Client, session: &str) {
    let looking = async {
        loop {
            let asked = client.call("list_sessions", json!({"session": session})).await.unwrap();
            let told = asked.map(|mut all| all["sessions"][0].take()).unwrap_or_default();
            assert_ne!(told["state"], "exited", "{told}");
            if told["state"] == "running" && told["activity"]["evidence"] != "silent" {
                return;
            }
            sleep(LOOK).await;
        }
    };
    timeout(SAFETY * 2, looking).await.expect("it comes back");
}

/// A session that records what it reads in a file.
async fn recording(home: &Home, client: &mut Client, log: &Path) -> (String, i32) {
    let session = start(client, &recorder(log)).await;
    let said = json!({"session": session.id, "text": "recording", "since": 0});
    client.must("wait_for", said).await;
    assert!(home.runtime(&format!("h/{}.sock", session.id)).exists());
    (session.id, session.pid)
}

/// Whether what is typed into a session reaches its program, and its screen is its own.
async fn is_itself(client: &mut Client, session: &str, log: &Path) {
    let screen = client.must("read_screen", json!({"session": session})).await;
    assert!(text_of(&screen).contains("recording"), "{screen}");
    let writing = async {
        loop {
            let lease = client.call("acquire_lease", json!({"session": session})).await.unwrap();
            let write = |lease: Value| json!({"session": session, "text": "typed.", "lease_id": lease["lease_id"]});
            let written = match lease {
                Ok(lease) => client.call("send_text", write(lease)).await.unwrap(),
                Err(refused) => Err(refused),
            };
            let Err(refused) = written else { return };
            // Its shim is being come to again.
            assert_eq!(refused["error_code"], "terminal_silent", "{refused}");
            sleep(LOOK).await;
        }
    };
    timeout(SAFETY, writing).await.expect("it answers again");
    let reads = || fs::read(log).unwrap().ends_with(b"typed.");
    until("the program to read", reads).await;
}

#[tokio::test]
async fn a_program_that_listens_in_the_place_of_a_shim_is_told_nothing_and_ends_no_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let log = home.path("read");
    let (victim, pid) = recording(&home, &mut client, &log).await;
    let socket = home.runtime(&format!("h/{victim}.sock"));
    let told = forge(&home, &mut client, &socket, "SOCK_SEQPACKET").await;
    daemon.kill().await;

    let daemon = home.serve().await;
    let mut client = home.client().await;
    once_back(&mut client, &victim).await;
    assert_eq!(listed(&mut client, &victim).await["pid"], pid);
    is_itself(&mut client, &victim, &log).await;
    assert_eq!(fs::read(&told).unwrap(), b"", "nothing was said to it");
    daemon.kill().await;
}

#[tokio::test]
async fn whatever_lies_in_the_place_of_a_socket_ends_no_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let damages: [fn(&Path); 5] = [
        |_| {},
        |path| fs::write(path, "plain").unwrap(),
        |path| drop(UnixListener::bind(path).unwrap()),
        |path| fs::create_dir(path).unwrap(),
        |path| fs::create_dir_all(path.join("not/empty")).unwrap(),
    ];
    let mut sessions = Vec::new();
    for (number, damage) in damages.into_iter().enumerate() {
        let log = home.path(&format!("read{number}"));
        let (session, pid) = recording(&home, &mut client, &log).await;
        let socket = home.runtime(&format!("h/{session}.sock"));
        fs::remove_file(&socket).unwrap();
        damage(&socket);
        sessions.push((session, pid, log));
    }
    daemon.kill().await;

    let daemon = home.serve().await;
    let mut client = home.client().await;
    for (session, pid, log) in &sessions {
        once_back(&mut client, session).await;
        assert!(lives(*pid));
        is_itself(&mut client, session, log).await;
    }
    daemon.kill().await;
}

#[tokio::test]
async fn a_daemon_whose_shim_hung_up_keeps_its_place_and_the_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let log = home.path("read");
    let (session, _) = recording(&home, &mut client, &log).await;
    let socket = home.runtime(&format!("h/{session}.sock"));
    for _ in 0..3 {
        // Whoever comes last is listened to, and goes at once.
        let came = Command::new("python3").args(["-c", STRANGER]).arg(&socket).status();
        assert!(came.await.unwrap().success(), "it was answered");
    }
    once_back(&mut client, &session).await;
    is_itself(&mut client, &session, &log).await;
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_that_listens_in_the_place_of_a_daemon_is_told_nothing_by_commands() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let operator = home.runtime("operator.sock");
    let session = start(&mut client, "exec sleep 1000").await;
    // A daemon that runs would make its socket again.
    let gate = home.path("gate");
    let waits = format!("until test -e {}; do sleep 0.01; done;", gate.display());
    let forger = start_forger(&home, &mut client, &waits, &operator, "SOCK_STREAM").await;
    let (told, ready) = forger;
    stands_still(daemon.pid()).await;
    fs::write(&gate, "").unwrap();
    until("it to listen", || ready.exists()).await;
    let ls = home.run("ls --json");
    let said = String::from_utf8_lossy(&ls.stdout).into_owned();
    assert_eq!(ls.status.code(), Some(7), "{said}");
    assert!(said.contains("lives in a session"), "{said}");
    let gateway = home.runtime("gateway.sock");
    fs::rename(&gateway, gateway.with_extension("gone")).unwrap();
    fs::rename(&operator, &gateway).unwrap();
    let bridge = home.run(&format!("mcp --session {}", session.id));
    let said = String::from_utf8_lossy(&bridge.stderr).into_owned();
    assert!(!bridge.status.success() && said.contains("lives in a session"), "{said}");
    assert_eq!(fs::read(&told).unwrap(), b"", "nothing was said to it");
    daemon.kill().await;
}
