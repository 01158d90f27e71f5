//! What the daemon counts, and who is told.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::harness::waiting::soon;

const STATUS: &str = "termgate://daemon";

/// The daemon's state as an operator reads it.
pub(crate) async fn status(daemon: &TestDaemon) -> Value {
    let mut operator = daemon.operator().await;
    let read = operator.request("resources/read", json!({"uri": STATUS})).await.unwrap();
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

fn number(status: &Value, path: &str) -> u64 {
    status.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {status}"))
}

/// By how much a counter moved.
fn moved(before: &Value, after: &Value, path: &str) -> u64 {
    number(after, path).checked_sub(number(before, path)).unwrap()
}

#[tokio::test]
async fn a_daemon_says_what_it_is() {
    let daemon = TestDaemon::writable().await;
    let status = status(&daemon).await;
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    // The daemon runs in the process of the test.
    assert_eq!(number(&status, "/pid"), u64::from(std::process::id()));
    assert!(number(&status, "/resident_bytes") > 0);
    assert_eq!(status["write"], json!({"on": [{"scope": "everything"}]}));
    assert_eq!(number(&status, "/connections/open"), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn sessions_are_counted_while_they_run_when_they_ended_and_for_ever() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    wire.start("cat").await;
    let short = wire.start("true").await;
    wire.wait_for_exit(&short).await;
    let told = status(&daemon).await;
    assert_eq!(told["sessions"], json!({"running": 1, "ended": 1, "created_total": 2}));
    wire.structured("manage_session", json!({"session": short, "action": "kill"})).await;
    while wire.structured("list_sessions", json!({})).await["sessions"].as_array().unwrap().len()
        > 1
    {}
    let told = status(&daemon).await;
    assert_eq!(told["sessions"], json!({"running": 1, "ended": 0, "created_total": 2}));
    daemon.stop().await;
}

#[tokio::test]
async fn bytes_are_counted_in_both_directions() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session =
        wire.start("stty raw -echo; printf ready; head -c 5; printf done; sleep 1000").await;
    wire.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
    let before = status(&daemon).await;
    wire.acquire(&session).await;
    wire.structured("send_text", json!({"session": session, "text": "12345"})).await;
    wire.wait_for(json!({"session": session, "text": "done", "since": 0})).await;
    let after = status(&daemon).await;
    assert_eq!(moved(&before, &after, "/pty/written_bytes"), 5);
    // The five as they were, and the word after them.
    assert_eq!(moved(&before, &after, "/pty/read_bytes"), 9);
    assert!(moved(&before, &after, "/frames/published") >= 2);
    let listed = wire.structured("list_sessions", json!({"session": session})).await;
    assert_eq!(listed["sessions"][0]["output_bytes"], 5 + 9);
    daemon.stop().await;
}

#[tokio::test]
async fn leases_are_counted_with_those_who_wait_and_those_who_were_refused() {
    let daemon = TestDaemon::writable().await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let session = ada.start("cat").await;
    ada.acquire(&session).await;
    let write = json!({"session": session, "text": "x"});
    assert_eq!(bob.error_code("send_text", write).await, "lease_held");
    let waiting =
        bob.send_call("acquire_lease", json!({"session": session, "wait_ms": 30_000})).await;
    let told = soon("bob to wait in line", async {
        loop {
            let told = status(&daemon).await;
            if number(&told, "/leases/waiters") == 1 {
                return told;
            }
        }
    })
    .await;
    assert_eq!(number(&told, "/leases/held"), 1);
    assert_eq!(number(&told, "/leases/granted_total"), 1);
    assert_eq!(told["leases"]["denied"], json!({"lease_held": 1}));
    let lease = ada.acquire(&session).await["lease_id"].clone();
    ada.structured("release_lease", json!({"lease_id": lease})).await;
    bob.answer(waiting).await;
    let told = status(&daemon).await;
    assert_eq!((number(&told, "/leases/granted_total"), number(&told, "/leases/waiters")), (2, 0));
    daemon.stop().await;
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_by_how_they_ended() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    wire.structured("list_sessions", json!({})).await;
    wire.structured("list_sessions", json!({})).await;
    assert_eq!(
        wire.error_code("read_screen", json!({"session": "none"})).await,
        "session_not_found"
    );
    let session = wire.start("cat").await;
    let waiting = wire.send_call("wait_for", json!({"session": session, "exit": true})).await;
    wire.sender.notify("notifications/cancelled", json!({"requestId": waiting})).await;
    let told = soon("the wait to be given up", async {
        loop {
            let told = status(&daemon).await;
            if told["calls"]["wait_for"]["given_up"] == 1 {
                return told;
            }
        }
    })
    .await;
    let expected = json!({
        "create_session": {"ok": 1},
        "list_sessions": {"ok": 2},
        "read_screen": {"session_not_found": 1},
        "wait_for": {"given_up": 1},
    });
    assert_eq!(told["calls"], expected);
    daemon.stop().await;
}

#[tokio::test]
async fn a_slow_observer_shows_in_the_frames_it_skipped() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = wire.start("while :; do printf x; sleep 0.02; done").await;
    let params = json!({"session": session, "max_rate_hz": 1});
    wire.send("termgate/observe", params).await;
    for _ in 0..2 {
        wire.receiver.notification("termgate/delta").await;
    }
    let told = status(&daemon).await;
    assert!(number(&told, "/deltas_sent") >= 2, "{told}");
    assert!(number(&told, "/frames/skipped") >= 2, "{told}");
    assert_eq!(number(&told, "/observers"), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn connections_are_counted_now_and_for_ever() {
    let daemon = TestDaemon::read_only().await;
    let before = status(&daemon).await;
    let staying = daemon.client(Era::Legacy).await;
    drop(daemon.client(Era::Modern).await);
    let after = soon("the other to be gone", async {
        loop {
            let after = status(&daemon).await;
            if number(&after, "/connections/open") == 2 {
                return after;
            }
        }
    })
    .await;
    assert!(moved(&before, &after, "/connections/total") >= 3);
    drop(staying);
    daemon.stop().await;
}

#[tokio::test]
async fn only_the_operators_door_knows_of_the_counters() {
    let daemon = TestDaemon::writable().await;
    for era in Era::BOTH {
        let mut gateway = daemon.client(era).await;
        let session = gateway.start("cat").await;
        let doors = [
            gateway,
            daemon.at_session(&session, era).await,
            daemon.at_read_only(&session, era).await,
        ];
        for mut wire in doors {
            assert!(!lists(&mut wire).await);
            // It is answered like a resource that nobody ever heard of.
            let asked = wire.request("resources/read", json!({"uri": STATUS})).await.unwrap_err();
            let unknown = json!({"uri": "termgate://deamon"});
            let unheard = wire.request("resources/read", unknown).await.unwrap_err();
            assert_eq!(asked["code"], unheard["code"]);
            let message = asked["message"].as_str().unwrap().replace("daemon", "deamon");
            assert_eq!(message, unheard["message"].as_str().unwrap());
        }
    }
    let mut operator = daemon.operator().await;
    assert!(lists(&mut operator).await);
    let asked = operator.request("resources/subscribe", json!({"uri": STATUS})).await.unwrap_err();
    assert!(asked["message"].as_str().unwrap().contains("read it"), "{asked}");
    let mut agent = daemon.client(Era::Legacy).await;
    let asked = agent.request("resources/subscribe", json!({"uri": STATUS})).await.unwrap_err();
    assert!(!asked["message"].as_str().unwrap().contains("read it"), "{asked}");
    daemon.stop().await;
}

async fn lists(wire: &mut Wire) -> bool {
    let listed = wire.request("resources/list", json!({})).await.unwrap();
    let listed = listed["resources"].as_array().unwrap();
    listed.iter().any(|resource| resource["uri"] == STATUS)
}
