//! Events: what each caller learns of what happens, by call, resource, notification and command line.

use serde_json::{Value, json};
use termgate::core::event::EventKinds;

use crate::daemon::driven::{start, tell};
use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::resource_reader::UPDATED;
use crate::harness::waiting::until;

const EVENTS: &str = "termgate://events";

impl Wire {
    /// Reads on from `since` until an event of this kind is recorded, and returns it.
    async fn event(&mut self, since: &mut Value, kind: &str) -> Value {
        loop {
            let asked = json!({"since": since, "kind": kind, "limit": 1});
            let list = self.structured("list_events", asked).await;
            *since = list["next_since"].clone();
            if let Some(event) = list["events"].get(0) {
                return event.clone();
            }
            self.receiver.notification(UPDATED).await;
        }
    }
}

#[tokio::test]
async fn what_happens_in_a_session_is_told_in_its_order() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        wire.subscribe(EVENTS).await;
        let session = start(&mut wire).await;
        let mut since = json!(0);
        let created = wire.event(&mut since, "session_created").await;
        assert_eq!(created["session"], session, "{created}");
        let granted = wire.event(&mut since, "lease_granted").await;
        assert!(
            granted["by"].as_str().unwrap().contains('#') && granted["epoch"] == 1,
            "{granted}"
        );
        let waits = wire.event(&mut since, "needs_input").await;
        assert_eq!(waits["session"], session, "{waits}");
        tell(&mut wire, &session, r"printf '\007\033]777;notify;build;all done\007'").await;
        let note = wire.event(&mut since, "notification").await;
        assert_eq!((&note["title"], &note["body"]), (&json!("build"), &json!("all done")));
        tell(&mut wire, &session, r"printf '\033]9;4;1;30\007'; exit 3").await;
        let progress = wire.event(&mut since, "progress").await;
        assert_eq!((&progress["state"], &progress["percent"]), (&json!("running"), &json!(30)));
        let ended = wire.event(&mut since, "session_ended").await;
        assert_eq!(ended["exit_code"], 3, "{ended}");

        let bell = wire.structured("list_events", json!({"kind": "bell"})).await;
        assert_eq!((&bell["events"][0]["count"], &bell["untrusted"]), (&json!(1), &json!(true)));
        let all = wire.structured("list_events", json!({"limit": 500})).await;
        let read = wire.facts(&format!("{EVENTS}?limit=500")).await;
        assert_eq!(read["events"], all["events"]);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_argument_that_names_nothing_is_an_error() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    for arguments in [json!({"limit": 0}), json!({"limit": 501}), json!({"kind": "bel"})] {
        let code = wire.error_code("list_events", arguments.clone()).await;
        assert_eq!(code, "invalid_argument", "{arguments}");
    }
    let code = wire.error_code("list_events", json!({"session": "nowhere"})).await;
    assert_eq!(code, "session_not_found");
    daemon.stop().await;
}

#[tokio::test]
async fn at_the_socket_of_a_session_nothing_of_others_is_told() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let (one, other) = (start(&mut wire).await, wire.start("cat").await);
    let mut bound = daemon.at_session(&one, Era::Modern).await;
    bound.subscribe(EVENTS).await;
    let mut since = bound.structured("list_events", json!({})).await["next_since"].clone();
    // What happens in the other one comes first, and is not told here.
    wire.structured("manage_session", json!({"session": other, "action": "kill"})).await;
    tell(&mut wire, &one, r"printf '\033]9;here\007'").await;
    let note = bound.event(&mut since, "notification").await;
    assert_eq!(note["body"], "here");
    // Nor does the number tell that something was recorded elsewhere.
    let last = bound.structured("list_events", json!({"since": since})).await["next_since"].clone();
    let still = other_still(&mut wire).await;
    wire.acquire(&still).await;
    let after = bound.structured("list_events", json!({"since": last})).await;
    assert_eq!((&after["events"], &after["next_since"]), (&json!([]), &last));
    let named = bound.structured("list_events", json!({"session": other, "since": 0})).await;
    assert_eq!(named["events"], json!([]));
    let all = bound.structured("list_events", json!({"since": 0, "limit": 500})).await;
    for event in all["events"].as_array().unwrap() {
        assert_eq!(event["session"], one, "{event}");
    }
    daemon.stop().await;
}

/// Another session, whose lease is free.
async fn other_still(wire: &mut Wire) -> String {
    let created = json!({"command": "cat", "lease": false});
    let created = wire.structured("create_session", created).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_command_as_long_as_an_answer_hides_no_events() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let line = format!("true {}", "x".repeat(20_000));
    wire.structured("create_session", json!({"command": line})).await;
    let list = wire.structured("list_events", json!({"kind": "session_created"})).await;
    assert_eq!(list["events"][0]["command"].as_str().unwrap().len(), 1_024);
    daemon.stop().await;
}

#[tokio::test]
async fn refusals_and_switches_are_events() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = wire.start("cat").await;
    let mut operator = daemon.operator().await;
    operator.structured("set_write", json!({"state": "off"})).await;
    let text = json!({"session": session, "text": "x"});
    assert_eq!(wire.error_code("send_text", text).await, "read_only");
    let list = wire.structured("list_events", json!({"kind": "refused"})).await;
    let refused = &list["events"][0];
    assert_eq!((&refused["act"], &refused["code"]), (&json!("send_text"), &json!("read_only")));
    let list = wire.structured("list_events", json!({"kind": "writing"})).await;
    let switched = &list["events"][0];
    assert_eq!(switched["writing"], "off", "{switched}");
    assert!(switched["by"].as_str().unwrap().contains('#'), "{switched}");
    daemon.stop_by(operator).await;
}

#[tokio::test]
async fn the_command_of_the_configuration_runs_for_each_chosen_event() {
    let home = tempfile::tempdir().unwrap();
    let told = home.path().join("told");
    let line = format!(
        "printf '%s %s %s: ' $TERMGATE_EVENT $TERMGATE_EVENT_NAME \"$TERMGATE_EVENT_TEXT\" >> {0}; \
         cat >> {0}",
        told.display()
    );
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.notify.events = EventKinds::of(["notification", "session"]).unwrap();
        config.notify.command = line.into();
    })
    .await;
    let mut wire = daemon.client(Era::Modern).await;
    let bells = r"printf '\007\033]777;notify;build;done; rm -r x\007'; exit 4";
    let named = json!({"name": "work", "command": bells});
    let created = wire.structured("create_session", named).await;
    let id = created["session"]["id"].clone();
    let said = || std::fs::read_to_string(&told).unwrap_or_default();
    until("all three", || said().ends_with("}\n") && said().lines().count() == 3).await;
    let (words, events): (Vec<_>, Vec<_>) = said()
        .lines()
        .map(|line| line.split_once(": {").unwrap())
        .map(|(words, event)| {
            let event: Value = serde_json::from_str(&format!("{{{event}")).unwrap();
            (words.to_owned(), event)
        })
        .unzip();
    let expected = [
        "session_created work session created",
        "notification work build: done; rm -r x",
        "session_ended work session ended, exit code 4",
    ];
    assert_eq!(words, expected);
    assert!(events.iter().all(|event| event["session"] == id), "{events:?}");
    daemon.stop().await;
}
