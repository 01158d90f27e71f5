//! The log messages of mounted servers, which clients hear of during their calls.

use serde_json::{Value, json};
use termgate::core::mount::{MountMode, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, structured};
use crate::daemon::mount_asks::{Asking, Client, all};
use crate::daemon::mount_eras::NewerFake;
use crate::daemon::mounts::{daemon_of, view, wait_for};

const LOGGED: &str = "notifications/message";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A call during which the server logs this, so often.
fn logging(message: &Value, times: usize) -> Value {
    let arguments = json!({"method": LOGGED, "params": message, "times": times, "within": true});
    json!({"name": "fake__tell", "arguments": arguments})
}

/// A client that wants log messages from this level on.
struct Reader {
    client: Client,
    level: Option<&'static str>,
}

impl Reader {
    async fn new(daemon: &TestDaemon, era: Era, level: Option<&'static str>) -> Self {
        let mut client = Client::new(daemon, era, all()).await;
        if let (Era::Legacy, Some(level)) = (era, level) {
            client.wire.request("logging/setLevel", json!({"level": level})).await.unwrap();
        }
        Self { client, level }
    }

    /// What it is told during a call.
    async fn hears(&mut self, mut call: Value) -> Vec<Value> {
        if let (Era::Modern, Some(level)) = (self.client.wire.sender.era(), self.level) {
            call["_meta"] = json!({LEVEL: level});
        }
        let before = self.client.wire.receiver.kept().count();
        let id = self.client.send("tools/call", call).await;
        self.client.wire.answer(id).await;
        let told = self.client.wire.receiver.kept().skip(before);
        told.filter(|it| it["method"] == LOGGED).map(|it| it["params"].clone()).collect()
    }
}

#[tokio::test]
async fn a_client_hears_the_log_messages_of_its_calls_from_its_level_on() {
    for kind in ["lines", "http"] {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        for era in Era::BOTH {
            let mut reader = Reader::new(&daemon, era, Some("warning")).await;
            let mut silent = Reader::new(&daemon, era, None).await;
            let message = |level: &str| json!({"level": level, "logger": "db", "data": {"x": [1]}});
            let told = reader.hears(logging(&message("warning"), 1)).await;
            let expected = json!({"level": "warning", "logger": "fake/db", "data": {"x": [1]}});
            assert_eq!(told, [expected], "{kind} {era:?}");
            let nameless = json!({"level": "emergency", "data": "down"});
            let told = reader.hears(logging(&nameless, 1)).await;
            let expected = json!({"level": "emergency", "logger": "fake", "data": "down"});
            assert_eq!(told, [expected], "{kind} {era:?}");
            for message in [message("notice"), json!({"level": "loud", "data": "x"})] {
                let told = reader.hears(logging(&message, 1)).await;
                assert_eq!(told, [Value::Null; 0], "{kind} {era:?} {message}");
            }
            let told = silent.hears(logging(&message("emergency"), 1)).await;
            assert_eq!(told, [Value::Null; 0], "{kind} {era:?}");
        }
        let log = view(&mut daemon.operator().await).await["log"].to_string();
        assert!(log.contains("[notice] db: "), "all are kept: {log}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_message_that_may_be_of_several_clients_reaches_none_of_them() {
    let message = json!({"level": "error", "data": "whose"});
    for (kind, mode, heard) in [
        ("lines", MountMode::Shared, 0),
        ("lines", MountMode::PerClient, 1),
        ("http", MountMode::Shared, 1),
    ] {
        let mut server = Asking::start(kind).await;
        server.settings.mode = mode;
        let daemon = server.mounted().await;
        let mut ada = Reader::new(&daemon, Era::Legacy, Some("debug")).await;
        let mut bob = Reader::new(&daemon, Era::Legacy, Some("debug")).await;
        bob.client.wire.send_call("fake__hang", json!({})).await;
        server.hears("hang").await;
        let told = ada.hears(logging(&message, 1)).await;
        assert_eq!(told.len(), heard, "{kind} {mode}");
        bob.client.wire.request("ping", json!({})).await.unwrap();
        assert!(bob.client.wire.receiver.kept().all(|it| it["method"] != LOGGED), "{kind} {mode}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn messages_of_untrusted_servers_hide_nothing_and_none_is_too_long() {
    let mut server = Asking::start("lines").await;
    server.settings.trust = MountTrust::Untrusted;
    let daemon = server.mounted().await;
    let mut reader = Reader::new(&daemon, Era::Legacy, Some("info")).await;
    let hidden = json!({"level": "info", "logger": "d\u{200b}b", "data": {"a": "h\u{1b}i"}});
    let told = reader.hears(logging(&hidden, 1)).await;
    assert_eq!(told[0]["logger"], r"fake/d\u{200b}b");
    assert_eq!(told[0]["data"]["a"], r"h\u{1b}i");
    let long = json!({"level": "info", "data": "x".repeat(64 * 1024)});
    assert_eq!(reader.hears(logging(&long, 1)).await, [Value::Null; 0]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_logs_without_end_tells_clients_a_part_and_answers() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut reader = Reader::new(&daemon, Era::Legacy, Some("info")).await;
    let message = json!({"level": "info", "data": "again"});
    let told = reader.hears(logging(&message, 5_000)).await;
    assert!((1..2_000).contains(&told.len()), "{}", told.len());
    daemon.stop().await;
}

#[tokio::test]
async fn a_newer_server_is_told_the_level_of_its_caller_if_that_wants_more() {
    let server = NewerFake::lines("newer");
    let daemon = daemon_of(&server.settings, true, PolicyRules::default()).await;
    wait_for(&mut daemon.operator().await, |mount| mount["accepted"].is_u64()).await;
    for (level, told) in [(Some("debug"), "debug"), (Some("error"), "info"), (None, "info")] {
        let mut reader = Reader::new(&daemon, Era::Legacy, level).await;
        let called = reader.client.wire.call("fake__params", json!({})).await;
        assert_eq!(structured(&called)["params"]["_meta"][LEVEL], told, "{called}");
    }
    daemon.stop().await;
}
