//! `termgate serve --stdio`: one client, one process, and nothing left of either.

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, structured};
use crate::daemon::program::Piped;
use crate::harness::home::Home;
use crate::harness::processes::{dies, lives};

const WRITABLE: &str = "serve --stdio --allow-write";

/// Starts a program, and gives back its session and its process.
async fn start(client: &mut Piped, line: &str) -> (Value, i32) {
    let arguments = json!({"command": "sh", "args": ["-c", line]});
    let created = client.wire.structured("create_session", arguments).await;
    let session = created["session"].clone();
    let pid = session["pid"].as_i64().unwrap().try_into().unwrap();
    (session, pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_works_with_sessions_that_end_with_its_input() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client(WRITABLE, era).await;
        let (session, pid) = start(&mut client, "exec cat").await;
        let here = home.path("home").canonicalize().unwrap();
        assert_eq!(session["cwd"], here.to_str().unwrap());
        let typing = json!({
            "session": session["id"], "text": "typed", "enter": true,
            "until": {"text": "typed"}, "wait_ms": 20_000,
        });
        assert_eq!(client.wire.structured("send_text", typing).await["wait"]["outcome"], "matched");
        let listing = client.wire.send_call("list_sessions", json!({})).await;
        assert!(lives(pid));
        let (status, last) = client.end().await;
        assert_eq!(status.code(), Some(0));
        let answer = last.iter().find(|message| message["id"] == listing).expect("an answer");
        assert_eq!(structured(&answer["result"])["sessions"][0]["id"], session["id"]);
        dies(pid).await;
        assert!(!home.paths().root().exists(), "it has no sockets");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_hears_nothing_that_it_did_not_ask_for() {
    let home = Home::new();
    let mut client = home.client(WRITABLE, Era::Legacy).await;
    start(&mut client, "exec cat").await;
    client.wire.receiver.notification("notifications/resources/list_changed").await;
    // The session ends with the input, which changes the list again.
    let (_, last) = client.end().await;
    assert_eq!(last, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stubborn_program_ends_when_the_process_is_told_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let home = Home::new();
        let mut client = home.client(WRITABLE, Era::Legacy).await;
        let line = "trap '' HUP TERM; echo ready; while :; do sleep 1; done";
        let (session, pid) = start(&mut client, line).await;
        let ready = json!({"session": session["id"], "text": "ready", "since": 0});
        client.wire.wait_for(ready).await;
        let status = client.signalled(signal).await;
        assert_eq!((status.code(), status.signal()), (Some(0), None));
        dies(pid).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_leave_nothing_is_written() {
    let home = Home::new();
    let mut client = home.client("serve --stdio", Era::Modern).await;
    assert_eq!(client.wire.error_code("create_session", json!({})).await, "read_only");
    assert_eq!(client.end().await.0.code(), Some(0));
}
