//! A daemon that stood still while another took its place does no harm when it goes on.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::outlive::client::{Answer, Client, Gone, SAFETY, listed, start, within};
use crate::outlive::home::{Home, is_stopped};
use crate::outlive::programs::recorder;

/// What clients of the old daemon write once there is a new one.
const FORMER: &str = "former.";

fn write(session: &str, lease: &Value, text: &str) -> Value {
    json!({"session": session, "text": text, "lease_id": lease})
}

async fn has_read(log: &Path, text: &str) {
    let what = format!("the program to read {text:?}");
    within(SAFETY, &what, || fs::read_to_string(log).unwrap().len() >= text.len()).await;
    assert_eq!(fs::read_to_string(log).unwrap(), text);
}

/// A write has no effect, and whoever made it is told so: the connection is gone, the call failed,
/// or not a byte was taken.
fn has_no_effect(answer: Result<Answer, Gone>) {
    if let Ok(Ok(answer)) = answer {
        assert_eq!(answer["discarded"], FORMER.len(), "{answer}");
    }
}

#[tokio::test]
async fn a_daemon_that_stood_still_while_it_was_replaced_writes_nothing_any_more() {
    let home = Home::new();
    let old = home.serve().await;
    let mut former = home.client().await;
    let log = home.file("read");
    let session = start(&mut former, &recorder(&log)).await;
    let said = json!({"session": session.id, "pattern": "recording", "since": 0});
    former.must("wait_for", said).await;
    let lease = former.must("acquire_lease", json!({"session": session.id})).await;
    let lease = &lease["lease_id"];
    former.must("send_text", write(&session.id, lease, "before.")).await;
    has_read(&log, "before.").await;

    old.signal(Signal::SIGSTOP);
    within(SAFETY, "the old daemon to stand still", || is_stopped(old.pid())).await;
    let asked = former.send_call("send_text", write(&session.id, lease, FORMER)).await;
    // The lock is the old daemon's for as long as it lives; only an operator can take it away.
    fs::remove_file(home.runtime("daemon.lock")).unwrap();
    let new = home.serve().await;
    let mut latter = home.client().await;
    let taken = json!({"session": session.id, "lease_id": lease});
    assert_eq!(latter.must("acquire_lease", taken).await["lease_id"], *lease);
    latter.must("send_text", write(&session.id, lease, "latter.")).await;
    has_read(&log, "before.latter.").await;

    old.signal(Signal::SIGCONT);
    has_no_effect(former.answer_of_call(asked.unwrap()).await);
    has_no_effect(former.call("send_text", write(&session.id, lease, FORMER)).await);
    let taken = json!({"session": session.id, "lease_id": lease});
    drop(former.call("acquire_lease", taken).await);
    has_no_effect(former.call("send_text", write(&session.id, lease, FORMER)).await);
    latter.must("send_text", write(&session.id, lease, "more.")).await;
    has_read(&log, "before.latter.more.").await;

    old.signal(Signal::SIGTERM);
    old.ends().await;
    let mut found = Client::connect(&home.gateway()).await.expect("the new daemon is found");
    let there = listed(&mut found, &session.id).await;
    assert_eq!((&there["pid"], &there["state"]), (&json!(session.pid), &json!("running")));
    assert!(home.runtime(&format!("s/{}.sock", session.id)).exists());
    latter.must("send_text", write(&session.id, lease, "last.")).await;
    has_read(&log, "before.latter.more.last.").await;
    new.kill().await;
}
