//! What clients choose keeps nobody else waiting: the daemon answers others while it works on it.

use serde_json::{Value, json};

use crate::daemon::driven::{start, tell_until};
use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};

/// Each byte of a long line of digits begins another way through it, and none comes to an end.
const HOSTILE: &str = "1[01]{12000}[^01]";

/// A session as wide as they may be, full of one line of digits.
async fn wide(client: &mut Wire) -> String {
    let line = "yes 1 | head -n 90000 | tr -d '\\n'; echo; echo ready; read end";
    let asked = json!({"command": "sh", "args": ["-c", line], "rows": 100, "cols": 1_000});
    let created = client.structured("create_session", asked).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    client.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
    session
}

fn hostile(session: &str) -> Value {
    json!({
        "session": session, "pattern": HOSTILE, "since": 0, "timeout_ms": 600_000,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_answered_before_a_costly_pattern_was_searched_for() {
    const WATCHERS: usize = 4;
    let daemon = TestDaemon::writable().await;
    let mut other = daemon.client(Era::Legacy).await;
    let free = start(&mut other).await;
    let watched = wide(&mut other).await;
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watcher = daemon.client(Era::Legacy).await;
        let waiting = watcher.send_call("wait_for", hostile(&watched)).await;
        watchers.push((watcher, waiting));
    }
    for (watcher, _) in &mut watchers {
        // Its wait has begun when its next call is answered.
        watcher.structured("list_sessions", json!({})).await;
    }
    for round in 0..5 {
        other.request("ping", json!({})).await.unwrap();
        tell_until(&mut other, &free, &format!("echo ro''und.{round}"), &format!("round.{round}"))
            .await;
    }
    for (watcher, waiting) in &mut watchers {
        watcher.structured("list_sessions", json!({})).await;
        let ended: Vec<_> = watcher.receiver.kept().collect();
        assert!(ended.is_empty(), "a wait ended before others were answered: {ended:?}");
        watcher.sender.cancel(*waiting).await;
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_that_takes_too_many_steps_ends_its_wait_and_says_so() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = wide(&mut client).await;
    let result = client.call("wait_for", hostile(&session)).await;
    let waited = structured(&result);
    assert_eq!(waited["outcome"], "pattern_too_costly", "{waited}");
    // Whoever goes on from there misses nothing of what was not compared.
    assert_eq!(waited["watermark"], 0, "{waited}");
    let found = json!({"session": session, "pattern": "^rea.y$", "since": 0});
    assert_eq!(client.structured("wait_for", found).await["outcome"], "matched");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_behind_the_costly_patterns_of_others_ends_with_its_time() {
    const OTHERS: usize = 4;
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = wide(&mut client).await;
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        let mut other = daemon.client(Era::Legacy).await;
        let waiting = other.send_call("wait_for", hostile(&session)).await;
        other.structured("list_sessions", json!({})).await;
        others.push((other, waiting));
    }
    let mut wait = hostile(&session);
    wait["timeout_ms"] = json!(100);
    let waited = client.structured("wait_for", wait).await;
    assert_eq!(waited["outcome"], "timeout", "{waited}");
    for (other, waiting) in &mut others {
        other.sender.cancel(*waiting).await;
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_patterns_of_a_user_take_no_more_memory_than_they_may() {
    const WAITS_MAX: usize = 100;
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = start(&mut client).await;
    let wait = json!({
        "session": session, "pattern": HOSTILE, "timeout_ms": 600_000,
    });
    let asked = json!({"session": session, "pattern": HOSTILE, "timeout_ms": 0});
    let mut open = Vec::new();
    let refused = loop {
        let result = client.call("wait_for", asked.clone()).await;
        if result["isError"] == true {
            break result;
        }
        assert_eq!(structured(&result)["outcome"], "timeout");
        open.push(client.send_call("wait_for", wait.clone()).await);
        assert!(open.len() < WAITS_MAX, "as many patterns as anybody wants are kept");
    };
    assert_eq!(error_code(&refused), "quota_exceeded");
    assert!(open.len() > 4, "only {} fit", open.len());
    // A text takes next to nothing, and others are not refused for it.
    let text = json!({"session": session, "text": "never", "timeout_ms": 0});
    assert_eq!(client.structured("wait_for", text).await["outcome"], "timeout");
    client.sender.cancel(open[0]).await;
    while client.call("wait_for", asked.clone()).await["isError"] == true {}
    daemon.stop().await;
}
