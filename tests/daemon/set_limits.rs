//! Limits that the operator set, each at its edge, seen from outside.

use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::harness::waiting::soon;

/// JSON-RPC's own code for what is no request.
const INVALID_REQUEST: i64 = -32600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_may_be_as_long_and_as_complex_as_it_was_set() {
    let daemon = TestDaemon::configured(|config| {
        config.connection.message_bytes = 64 * 1024;
        config.connection.message_tokens = 1_000;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let long = format!("\"{}\"\n", "x".repeat(64 * 1024));
    let complex = format!("[{}0]\n", "0,".repeat(1_000));
    let said = [
        (long, ["message too large: the limit is 64 KiB.", "Nothing was done."]),
        (complex, ["message too complex: it may have 1000 braces", "send less at once"]),
    ];
    for (line, words) in said {
        client.sender.raw(line.as_bytes()).await;
        let answer = client.receiver.next().await;
        assert_eq!(answer["error"]["code"], INVALID_REQUEST, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert_eq!(answer["error"]["data"]["error_code"], "too_large");
    }
    let padded = json!({"_meta": {"padding": "x".repeat(60 * 1024)}});
    client.request("tools/list", padded).await.unwrap();
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_long_requests_may_be_open_as_it_was_set() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.connection.long_requests = 1;
    })
    .await;
    let mut client = daemon.client(Era::Modern).await;
    let session = client.start("exec cat").await;
    let wait = json!({"session": session, "exit": true, "timeout_ms": 600_000});
    client.send_call("wait_for", wait.clone()).await;
    assert_eq!(client.error_code("wait_for", wait).await, "busy");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_for_as_long_as_it_was_set_is_hung_up_on() {
    let daemon = TestDaemon::configured(|config| {
        config.connection.first_message = Duration::from_millis(100);
    })
    .await;
    let mut silent = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    silent.receiver.hears_the_end().await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_as_many_connections_as_it_was_set() {
    let daemon = TestDaemon::configured(|config| config.connections.own = 2).await;
    let _other = daemon.client(Era::Legacy).await;
    let mut client = daemon.client(Era::Modern).await;
    let mut third = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    third.receiver.hears_the_end().await;
    client.structured("list_sessions", json!({})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_comes_in_and_subscribes_however_much_others_have() {
    let daemon = TestDaemon::configured(|config| {
        config.connections.own = 2;
        config.subscriptions.own = 1;
    })
    .await;
    let list = json!({"uri": "termgate://sessions"});
    let mut first = daemon.client(Era::Legacy).await;
    first.request("resources/subscribe", list.clone()).await.unwrap();
    let mut second = daemon.client(Era::Legacy).await;
    second.request("resources/subscribe", list.clone()).await.unwrap_err();
    let mut operator = daemon.operator().await;
    operator.structured("list_sessions", json!({})).await;
    operator.request("resources/subscribe", list).await.unwrap();
    daemon.stop_by(operator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_has_no_more_cells_than_it_was_set() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.cells = 10_000;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let large = |rows: u64| json!({"command": "cat", "rows": rows, "cols": 100});
    assert_eq!(client.error_code("create_session", large(101)).await, "invalid_argument");
    let created = client.structured("create_session", large(100)).await;
    let resize = json!({"session": created["session"]["id"], "rows": 101, "cols": 100});
    assert_eq!(client.error_code("resize", resize).await, "invalid_argument");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_callers_wait_for_a_lease_as_it_was_set() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.lease.waiters = 1;
    })
    .await;
    let mut holder = daemon.client(Era::Legacy).await;
    let session = holder.start("exec cat").await;
    holder.acquire(&session).await;
    let mut waiter = daemon.client(Era::Legacy).await;
    let wait = json!({"session": session, "wait_ms": 600_000});
    waiter.send_call("acquire_lease", wait.clone()).await;
    let listed = json!({"session": session});
    let waiting = async {
        loop {
            let list = holder.structured("list_sessions", listed.clone()).await;
            if list["sessions"][0]["lease"]["waiters"] == 1 {
                return;
            }
        }
    };
    soon("the first to wait", waiting).await;
    let mut other = daemon.client(Era::Modern).await;
    assert_eq!(other.error_code("acquire_lease", wait).await, "quota_exceeded");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_may_have_its_screen_keep_what_was_set() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.screen.title_characters_max = 16;
        config.screen.marks_max = 1;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let title = "t".repeat(17);
    let line = format!(r"printf '\033]2;{title}\007a\314\201\314\201|done'; exec cat");
    let session = client.start(&line).await;
    client.wait_for(json!({"session": session, "text": "done", "since": 0})).await;
    let screen: Value = client.structured("read_screen", json!({"session": session})).await;
    assert_eq!(screen["title"], "t".repeat(16));
    assert_eq!(screen["text"], "a\u{301}|done");
    daemon.stop().await;
}
