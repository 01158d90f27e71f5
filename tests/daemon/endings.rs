//! How things end: what a kill leaves, what a stop waits for, what a caller who vanished holds.

use std::path::Path;

use serde_json::json;

use crate::daemon::harness::{Era, TestDaemon};
use crate::harness::processes::lives;
use crate::harness::waiting::{line_in, soon};

/// The process whose number a program has written into a file.
async fn pid_in(path: &Path) -> i32 {
    line_in(path).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_session_that_ended_ends_what_it_left_behind() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let file = daemon.file("pid");
    let line = format!("trap '' HUP; sleep 1000 >/dev/null 2>&1 & echo $! > {}", file.display());
    let session = client.start(&line).await;
    client.wait_for_exit(&session).await;
    let pid = pid_in(&file).await;
    assert!(lives(pid));
    let kill = json!({"session": session, "action": "kill"});
    assert_eq!(client.structured("manage_session", kill).await["done"], "removed");
    assert!(!lives(pid));
    let listed = client.error_code("list_sessions", json!({"session": session})).await;
    assert_eq!(listed, "session_not_found");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_ended_gives_its_name_to_one_that_asks_for_it() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let build = json!({"name": "build", "command": "exec cat"});
    let kill = json!({"session": "build", "action": "kill"});
    let mut ids = Vec::new();
    for _ in 0..3 {
        let created = client.structured("create_session", build.clone()).await;
        assert_eq!(created["session"]["name"], "build", "{created}");
        ids.push(created["session"]["id"].clone());
        client.structured("manage_session", kill.clone()).await;
    }
    // By another name as well, and only where that one has ended.
    let other =
        client.structured("create_session", json!({"name": "other", "command": "exec cat"}));
    ids.push(other.await["session"]["id"].clone());
    let rename = json!({"session": "other", "action": "rename", "new_name": "build"});
    client.structured("manage_session", rename).await;
    assert_eq!(client.error_code("create_session", build).await, "session_exists");
    let names = ["build-ended", "build-ended-2", "build-ended-3", "build"];
    for (id, name) in ids.iter().zip(names) {
        for known in [json!(name), id.clone()] {
            let listed = client.structured("list_sessions", json!({"session": known})).await;
            let told = &listed["sessions"][0];
            assert_eq!((&told["id"], &told["name"]), (id, &json!(name)), "{listed}");
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_stops_although_programs_ignore_it_and_clients_go_on_creating() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let stubborn = client.start("trap '' HUP TERM; echo ready; while :; do sleep 1; done").await;
    client.wait_for(json!({"session": stubborn, "text": "ready", "since": 0})).await;
    let mut eager = daemon.client(Era::Legacy).await;
    for _ in 0..20 {
        eager.send_call("create_session", json!({"command": "exec cat"})).await;
    }
    soon("the end of the daemon", daemon.stop()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_and_made_again_with_its_key_is_answered() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut holder = daemon.client(era).await;
        let session = holder.start("exec cat").await;
        let lease = holder.acquire(&session).await;
        let mut client = daemon.client(era).await;
        let wish = json!({"session": session, "wait_ms": 20_000, "idempotency_key": "k"});
        for _ in 0..20 {
            let first = client.send_call("acquire_lease", wish.clone()).await;
            client.sender.cancel(first).await;
        }
        let last = client.send_call("acquire_lease", wish).await;
        let waiting = json!({"session": session});
        soon("one waiter", async {
            while holder.structured("list_sessions", waiting.clone()).await["sessions"][0]["lease"]
                ["waiters"]
                != 1
            {}
        })
        .await;
        holder.structured("release_lease", json!({"lease_id": lease["lease_id"]})).await;
        let granted = client.answer(last).await;
        assert_ne!(granted["isError"], json!(true), "{granted}");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_handed_only_to_somebody_who_is_connected() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = client.start("exec cat").await;
    let lease = client.acquire(&session).await;
    let nobody = json!({"lease_id": lease["lease_id"], "hand_to": "nobody#p99999"});
    assert_eq!(client.error_code("release_lease", nobody).await, "invalid_argument");
    client.structured("send_text", json!({"session": session, "text": "still mine"})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_handed_to_nobody_whose_whole_name_does_not_fit_and_not_to_its_holder() {
    for era in [Era::Legacy, Era::Modern] {
        let daemon = TestDaemon::writable().await;
        let (mut giver, mut taker) = (daemon.client(era).await, daemon.client(era).await);
        let (session, other) = (giver.start("exec cat").await, taker.start("exec cat").await);
        let lease = giver.acquire(&session).await["lease_id"].clone();
        taker.acquire(&other).await;
        let listed = giver.structured("list_sessions", json!({})).await;
        let by = |id: &str| {
            let mut all = listed["sessions"].as_array().unwrap().iter();
            let of = all.find(|session| session["id"] == id).unwrap();
            of["lease"]["by"].as_str().unwrap().to_owned()
        };
        let (own, name) = (by(&session), by(&other));
        let number = name.rsplit('#').next().unwrap();
        for wrong in [own, format!("xyz#{number}"), format!("agent#{number}")] {
            let hand = json!({"lease_id": lease, "hand_to": wrong});
            let refused = giver.call("release_lease", hand).await["structuredContent"].clone();
            assert_eq!(refused["error_code"], "invalid_argument", "{wrong}: {refused}");
            assert_eq!(refused["details"]["parameter"], "hand_to", "{wrong}: {refused}");
        }
        let hand = json!({"lease_id": lease, "hand_to": name});
        assert_eq!(giver.structured("release_lease", hand).await["outcome"], "offered");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_offered_a_lease_is_told_to_whom_until_it_is_taken_back() {
    let daemon = TestDaemon::writable().await;
    let (mut giver, mut taker) =
        (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let (session, other) = (giver.start("exec cat").await, taker.start("exec cat").await);
    let lease = giver.acquire(&session).await;
    taker.acquire(&other).await;
    let listed = taker.structured("list_sessions", json!({"session": other})).await;
    let name = listed["sessions"][0]["lease"]["by"].clone();
    let hand = json!({"lease_id": lease["lease_id"], "hand_to": name});
    assert_eq!(giver.structured("release_lease", hand).await["outcome"], "offered");

    for (tool, arguments) in [
        ("send_text", json!({"session": session, "text": "x"})),
        ("send_text", json!({"session": session, "text": "x", "lease_id": lease["lease_id"]})),
        ("renew_lease", json!({"lease_id": lease["lease_id"]})),
    ] {
        let refused = giver.call(tool, arguments).await["structuredContent"].clone();
        assert_eq!(refused["error_code"], "lease_held", "{tool}: {refused}");
        assert_eq!(refused["details"]["offered_to"], name, "{tool}: {refused}");
    }
    giver.acquire(&session).await;
    giver.structured("send_text", json!({"session": session, "text": "mine again"})).await;
    daemon.stop().await;
}
