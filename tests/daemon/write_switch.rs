//! Read-only is read-only: at which doors, for how long, and how clients learn of a change.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The tools of the contract that write.
const WRITING: [&str; 10] = [
    "create_session",
    "manage_session",
    "acquire_lease",
    "renew_lease",
    "release_lease",
    "run",
    "send_text",
    "send_keys",
    "send_mouse",
    "resize",
];

/// Arguments that would do something where writing is allowed.
fn arguments(tool: &str, session: &str, lease: &Value) -> Value {
    match tool {
        "create_session" => json!({"command": "touch created"}),
        "manage_session" => json!({"session": session, "action": "kill"}),
        "acquire_lease" => json!({"session": session, "lease_id": lease}),
        "renew_lease" | "release_lease" => json!({"lease_id": lease}),
        "run" => json!({"session": session, "command": "touch ran", "lease_id": lease}),
        "send_text" => json!({"session": session, "text": "written", "lease_id": lease}),
        "send_keys" => json!({"session": session, "keys": "a", "lease_id": lease}),
        "send_mouse" => {
            json!({"session": session, "action": "click", "row": 0, "col": 0, "lease_id": lease})
        }
        "resize" => json!({"session": session, "rows": 9, "cols": 9, "lease_id": lease}),
        unknown => panic!("give the tool {unknown} arguments here"),
    }
}

async fn no_write_passes(client: &mut Wire, session: &str, lease: &Value) {
    for tool in WRITING {
        let code = client.error_code(tool, arguments(tool, session, lease)).await;
        assert_eq!(code, "read_only", "{tool}");
    }
}

async fn lists_writing(client: &mut Wire) -> bool {
    let listed = client.tools().await;
    // Sessions are created at the gateway alone, whatever else a door allows.
    let writing: Vec<_> = WRITING.iter().filter(|tool| **tool != "create_session").collect();
    let count = writing.iter().filter(|tool| listed.iter().any(|name| name == **tool)).count();
    assert!([0, writing.len()].contains(&count), "only some are listed: {listed:?}");
    count > 0
}

/// A client that is told when its tools change.
async fn told(daemon: &TestDaemon, era: Era) -> Wire {
    let mut client = daemon.client(era).await;
    if era == Era::Modern {
        let filter = json!({"notifications": {"toolsListChanged": true}});
        client.send("subscriptions/listen", filter).await;
        client.receiver.notification("notifications/subscriptions/acknowledged").await;
    }
    client
}

async fn holds(client: &mut Wire, session: &str) -> bool {
    let listed = client.structured("list_sessions", json!({"session": session})).await;
    listed["sessions"][0]["lease"]["held"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_that_is_not_marked_as_reading_is_among_those_tested_here() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    let writes = |tool: &&Value| tool["annotations"]["readOnlyHint"] != true;
    let mut writing: Vec<_> = tools.iter().filter(writes).map(|tool| &tool["name"]).collect();
    writing.sort_by_key(|name| WRITING.iter().position(|tool| *name == tool));
    assert_eq!(writing, WRITING);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ever_written_through_the_door_of_observers() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let log = daemon.file("log");
        let mut holder = daemon.client(era).await;
        let session = holder.start_recorder(&log, 2).await;
        let lease = holder.acquire(&session).await["lease_id"].clone();
        let mut observer = daemon.at_read_only(&session, era).await;
        assert!(!lists_writing(&mut observer).await);
        no_write_passes(&mut observer, &session, &lease).await;
        let screen = observer.structured("read_screen", json!({})).await;
        assert_eq!((&screen["rows"], &screen["cols"]), (&json!(40), &json!(120)));
        assert!(holds(&mut holder, &session).await);
        holder.structured("send_text", json!({"session": session, "text": "ok"})).await;
        holder.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(log).unwrap(), "ok");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_at_any_door_while_writing_is_switched_off() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let log = daemon.file("log");
        let mut holder = daemon.client(era).await;
        let session = holder.start_recorder(&log, 2).await;
        let lease = holder.acquire(&session).await["lease_id"].clone();
        let mut operator = daemon.operator().await;
        operator.structured("set_write", json!({"state": "off"})).await;
        no_write_passes(&mut holder, &session, &lease).await;
        no_write_passes(&mut operator, &session, &lease).await;
        let mut inside = daemon.at_session(&session, era).await;
        no_write_passes(&mut inside, &session, &lease).await;

        operator.structured("set_write", json!({"state": "on"})).await;
        holder.acquire(&session).await;
        holder.structured("send_text", json!({"session": session, "text": "ok"})).await;
        holder.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(log).unwrap(), "ok");
        assert!(!daemon.file("created").exists());
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_told_when_writing_is_switched_and_leases_end_with_it() {
    for era in Era::BOTH {
        let daemon = TestDaemon::read_only().await;
        let mut client = told(&daemon, era).await;
        assert!(!lists_writing(&mut client).await);
        assert_eq!(client.error_code("create_session", json!({})).await, "read_only");
        let mut operator = daemon.operator().await;

        operator.structured("set_write", json!({"state": "on"})).await;
        client.receiver.notification(LIST_CHANGED).await;
        assert!(lists_writing(&mut client).await);
        let session = client.start("exec cat").await;
        client.acquire(&session).await;
        assert!(holds(&mut client, &session).await);

        operator.structured("set_write", json!({"state": "off"})).await;
        client.receiver.notification(LIST_CHANGED).await;
        assert!(!lists_writing(&mut client).await);
        // The screen's own time shows it; nothing can be written meanwhile.
        while holds(&mut client, &session).await {}
        let text = json!({"session": session, "text": "x"});
        assert_eq!(client.error_code("send_text", text).await, "read_only");
        if era == Era::Legacy {
            let told = client.receiver.notification("notifications/message").await;
            assert_eq!(told["data"]["cause"], "writing_switched_off", "{told}");
        }
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_that_is_on_for_a_time_switches_itself_off() {
    for era in Era::BOTH {
        let daemon = TestDaemon::read_only().await;
        let mut client = told(&daemon, era).await;
        assert!(!lists_writing(&mut client).await);
        let mut operator = daemon.operator().await;
        let on = json!({"state": "on", "for_ms": 1_500});
        operator.structured("set_write", on).await;
        client.receiver.notification(LIST_CHANGED).await;
        let session = client.start("exec cat").await;
        client.acquire(&session).await;

        client.receiver.notification(LIST_CHANGED).await;
        assert!(!lists_writing(&mut client).await);
        // The screen's own time shows it; nothing can be written meanwhile.
        while holds(&mut client, &session).await {}
        let text = json!({"session": session, "text": "x"});
        assert_eq!(client.error_code("send_text", text).await, "read_only");
        let switches = operator.structured("set_write", json!({"state": "status"})).await;
        assert_eq!(switches["on"], json!([]));
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_one_session_opens_that_session_alone() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let (open, closed) = (client.start("exec cat").await, client.start("exec cat").await);
        let mut operator = daemon.operator().await;
        operator.structured("set_write", json!({"state": "off"})).await;
        operator.structured("set_write", json!({"state": "on", "session": open})).await;
        client.acquire(&open).await;
        client.structured("send_text", json!({"session": open, "text": "x"})).await;
        assert_eq!(
            client.error_code("acquire_lease", json!({"session": closed})).await,
            "read_only"
        );
        assert_eq!(client.error_code("create_session", json!({})).await, "read_only");
        let mut at_open = daemon.at_session(&open, era).await;
        let mut at_closed = daemon.at_session(&closed, era).await;
        assert!(lists_writing(&mut at_open).await);
        assert!(!lists_writing(&mut at_closed).await);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_switch_takes_only_names_that_a_tenant_could_have() {
    let daemon = TestDaemon::read_only().await;
    let mut operator = daemon.operator().await;
    for tenant in ["", "ada", "1000", "uid:ada", "uid:007"] {
        let on = json!({"state": "on", "tenant": tenant});
        let refused = operator.call("set_write", on).await["structuredContent"].clone();
        assert_eq!(refused["error_code"], "invalid_argument", "{tenant}: {refused}");
        assert_eq!(refused["details"]["parameter"], "tenant", "{tenant}");
        assert!(refused["message"].as_str().unwrap().contains("uid:1000"), "{refused}");
    }
    let on = json!({"state": "on", "tenant": "uid:4000000000"});
    let switches = operator.structured("set_write", on).await;
    assert_eq!(switches["on"], json!([{"scope": "uid:4000000000"}]));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_session_is_protected_while_everything_is_on() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let (spared, other) = (client.start("exec cat").await, client.start("exec cat").await);
    client.acquire(&spared).await;
    let mut operator = daemon.operator().await;
    let set = |state: &str| json!({"state": state, "session": spared});
    let switches = operator.structured("set_write", set("off")).await;
    assert_eq!(switches["protected"], json!([spared]));
    // The screen's own time shows it; nothing can be written meanwhile.
    while holds(&mut client, &spared).await {}
    let type_in = |session: &str| json!({"session": session, "text": "x"});
    let refused = client.call("send_text", type_in(&spared)).await;
    assert_eq!(refused["structuredContent"]["details"]["cause"], "protected", "{refused}");
    client.acquire(&other).await;
    client.structured("send_text", type_in(&other)).await;

    let told = operator.call("set_write", json!({"state": "on"})).await;
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("writing is on for everything\nwriting is off for session"), "{text}");
    assert_eq!(client.error_code("send_text", type_in(&spared)).await, "read_only");
    let switches = operator.structured("set_write", set("on")).await;
    assert_eq!(switches["protected"], Value::Null);
    client.acquire(&spared).await;
    client.structured("send_text", type_in(&spared)).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_over_writing_that_is_on_without_a_limit_takes_nothing_away() {
    let daemon = TestDaemon::writable().await;
    let mut operator = daemon.operator().await;
    let switches = operator.structured("set_write", json!({"state": "on", "for_ms": 1})).await;
    assert_eq!(switches["on"], json!([{"scope": "everything"}]));
    assert!(switches["warning"].as_str().unwrap().contains("stays on"), "{switches}");
    daemon.stop().await;
}
