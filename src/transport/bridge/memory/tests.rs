//! What is remembered, what is replayed, and who is answered when a daemon dies.

use serde_json::Value;

use super::*;

fn send(memory: &mut ClientState, message: &Value) {
    let line = Bytes::from(message.to_string());
    let note = Remembered::of(&BridgedMessage::read(&line).unwrap());
    memory.on_sent(Outgoing { line, note });
}

fn receive(memory: &mut ClientState, message: &Value) -> For {
    memory.on_received(message.to_string().as_bytes())
}

fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Sends a request that is answered well.
fn answered(memory: &mut ClientState, method: &str, params: Value) {
    send(memory, &request(json!(1), method, params));
    assert_eq!(receive(memory, &json!({"jsonrpc": "2.0", "id": 1, "result": {}})), For::Client);
}

fn values(lines: Vec<Bytes>) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn methods(lines: Vec<Bytes>) -> Vec<String> {
    let method = |line: Value| line["method"].as_str().unwrap().to_owned();
    values(lines).into_iter().map(method).collect()
}

fn ids(lines: Vec<Bytes>) -> Vec<Value> {
    values(lines).into_iter().map(|mut line| line["id"].take()).collect()
}

#[test]
fn what_a_client_said_once_is_replayed_in_its_order() {
    let mut memory = ClientState::new();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"x": 1.50}});
    answered(&mut memory, "initialize", hello.clone());
    send(&mut memory, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    answered(&mut memory, "logging/setLevel", json!({"level": "error"}));
    answered(&mut memory, "resources/subscribe", json!({"uri": "u:1"}));
    answered(&mut memory, "resources/subscribe", json!({"uri": "u:2"}));
    answered(&mut memory, "resources/unsubscribe", json!({"uri": "u:1"}));
    let replay = values(memory.replay());
    let said: Vec<(&str, &Value)> =
        replay.iter().map(|line| (line["method"].as_str().unwrap(), &line["params"])).collect();
    let expected = [
        ("initialize", &hello),
        ("notifications/initialized", &json!({})),
        ("logging/setLevel", &json!({"level": "error"})),
        ("resources/subscribe", &json!({"uri": "u:2"})),
    ];
    assert_eq!(said, expected);
}

#[test]
fn answers_to_what_was_replayed_are_the_bridges_own() {
    let mut memory = ClientState::new();
    answered(&mut memory, "initialize", json!({}));
    let id = values(memory.replay())[0]["id"].clone();
    assert_eq!(receive(&mut memory, &json!({"id": id, "result": {}})), For::Bridge);
    assert_eq!(receive(&mut memory, &json!({"id": "another", "result": {}})), For::Client);
    let asked = json!({"id": id, "method": "ping"});
    assert_eq!(receive(&mut memory, &asked), For::Client);
}

#[test]
fn what_was_refused_is_not_replayed() {
    let mut memory = ClientState::new();
    send(&mut memory, &request(json!(1), "resources/subscribe", json!({"uri": "u"})));
    receive(&mut memory, &json!({"id": 1, "error": {"code": -32002, "message": "m"}}));
    assert_eq!(memory.replay(), Vec::<Bytes>::new());
}

#[test]
fn a_client_of_the_newer_era_has_nothing_replayed_and_is_told_nothing() {
    let mut memory = ClientState::new();
    answered(&mut memory, "tools/list", json!({"_meta": {}}));
    assert_eq!((memory.replay().len(), memory.catch_up().len()), (0, 0));
}

#[test]
fn a_client_of_the_older_era_is_told_that_all_it_knows_may_have_changed() {
    let mut memory = ClientState::new();
    answered(&mut memory, "initialize", json!({}));
    answered(&mut memory, "resources/subscribe", json!({"uri": "u"}));
    assert_eq!(memory.catch_up().len(), 0, "it has not said that it is ready");
    send(&mut memory, &json!({"method": "notifications/initialized"}));
    let expected = [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ];
    assert_eq!(methods(memory.catch_up()), expected);
}

#[test]
fn every_request_in_flight_is_answered_once_under_its_own_id() {
    let mut memory = ClientState::new();
    for id in [json!(1), json!("1"), json!("\u{e9}"), json!(2), json!(3), json!(4)] {
        send(&mut memory, &request(id, "tools/call", json!({})));
    }
    receive(&mut memory, &json!({"id": 2, "result": {}}));
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 3}});
    send(&mut memory, &cancel);
    memory.on_unread(&RequestId::Number(4));
    let Broken { again, lost } = memory.on_break();
    assert_eq!((again.len(), ids(lost)), (0, vec![json!(1), json!("1"), json!("\u{e9}")]));
    assert_eq!(memory.on_break().lost, Vec::<Bytes>::new());
}

/// Sends what is to be sent again, as the bridge does.
fn send_again(memory: &mut ClientState, again: Vec<Outgoing>) {
    again.into_iter().for_each(|outgoing| memory.on_sent(outgoing));
}

#[test]
fn what_only_asks_is_sent_again_as_it_was_and_in_its_order() {
    let mut memory = ClientState::new();
    let hello = request(json!("h"), "initialize", json!({"capabilities": {"x": 1.5}}));
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}});
    let tools = request(json!(7), "tools/list", json!({}));
    for message in [&hello, &ready, &request(json!(8), "tools/call", json!({})), &tools] {
        send(&mut memory, message);
    }
    assert_eq!((memory.replay().len(), memory.catch_up().len()), (0, 0), "nothing is agreed on");
    let Broken { again, lost } = memory.on_break();
    let lines = again.iter().map(|outgoing| outgoing.line.clone()).collect();
    assert_eq!((values(lines), ids(lost)), (vec![hello, ready, tools], vec![json!(8)]));
    send_again(&mut memory, again);
    receive(&mut memory, &json!({"jsonrpc": "2.0", "id": "h", "result": {}}));
    assert_eq!(methods(memory.replay()), ["initialize", "notifications/initialized"]);
}

#[test]
fn what_no_daemon_survives_is_not_sent_a_third_time() {
    let mut memory = ClientState::new();
    send(&mut memory, &request(json!(1), "tools/list", json!({})));
    let Broken { again, lost } = memory.on_break();
    assert_eq!((again.len(), lost.len()), (1, 0));
    send_again(&mut memory, again);
    let Broken { again, lost } = memory.on_break();
    assert_eq!((again.len(), ids(lost)), (0, vec![json!(1)]));
}

#[test]
fn what_is_too_long_to_be_kept_is_given_up() {
    let mut memory = ClientState::new();
    let pad = "x".repeat(AGAIN_MAX);
    send(&mut memory, &request(json!(1), "tools/list", json!({"pad": pad})));
    let Broken { again, lost } = memory.on_break();
    assert_eq!((again.len(), ids(lost)), (0, vec![json!(1)]));
}
