//! Calls in both eras of the protocol: which revision they are answered for, and when they are not.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_VERSION: i64 = -32022;

fn envelope(result: &Value) -> &Value {
    &result["_meta"]["dev.termgate/envelope"]
}

#[tokio::test]
async fn a_call_right_behind_the_greeting_is_answered_for_the_revision_agreed_on() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    let (greeting, first) = wire.sender.line("initialize", hello);
    let (call, second) = wire.sender.line("tools/call", json!({"name": "list_sessions"}));
    wire.sender.raw(format!("{first}{second}").as_bytes()).await;
    assert_eq!(wire.receiver.next().await["id"], greeting);
    let answer = wire.receiver.next().await;
    assert_eq!(answer["id"], call);
    assert_eq!(envelope(&answer["result"])["mcp_version"], "2025-06-18");
    assert_eq!(answer["result"].get("resultType"), None);
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_that_names_its_revision_is_answered_for_that_one() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Modern).await;
    let result = wire.request("tools/call", json!({"name": "list_sessions"})).await.unwrap();
    assert_eq!(envelope(&result)["mcp_version"], "2026-07-28");
    assert_eq!(result["resultType"], "complete");
    daemon.stop().await;
}

#[tokio::test]
async fn a_request_without_greeting_and_revision_is_refused() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    let requests = [
        ("tools/call", json!({"name": "list_sessions"})),
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "termgate://sessions"})),
        ("termgate/observe", json!({})),
    ];
    for (method, params) in requests {
        let refused = wire.request(method, params).await.unwrap_err();
        assert_eq!(refused["code"], INVALID_PARAMS, "{method}");
        let message = refused["message"].as_str().unwrap();
        let both =
            message.contains("`initialize` before") && message.contains("clientCapabilities");
        assert!(both, "{method}: {refused}");
    }
    wire.request("ping", json!({})).await.unwrap();
    daemon.stop().await;
}

#[tokio::test]
async fn a_greeting_of_another_form_says_what_is_wrong_with_it() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    let without = |place: &str, name: &str| {
        let mut hello = hello.clone();
        hello.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
        hello
    };
    let mut numeric = hello.clone();
    numeric["protocolVersion"] = json!(20251125);
    for (params, problem) in [
        (without("/clientInfo", "version"), "clientInfo: missing field `version`"),
        (without("", "capabilities"), "capabilities: missing field `capabilities`"),
        (numeric, "protocolVersion: invalid type: integer `20251125`"),
    ] {
        let refused = wire.request("initialize", params).await.unwrap_err();
        assert_eq!(refused["code"], INVALID_PARAMS, "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("invalid params for initialize: {problem}")),
            "{refused}"
        );
    }
    wire.request("initialize", hello).await.unwrap();
    daemon.stop().await;
}

#[tokio::test]
async fn parameters_of_another_form_are_told_from_no_method() {
    let daemon = TestDaemon::read_only().await;
    for era in Era::BOTH {
        let mut wire = daemon.client(era).await;
        for (method, params, problem) in [
            ("resources/read", json!({"uri": 7}), "expected a string"),
            ("logging/setLevel", json!({"level": "loud"}), "unknown variant `loud`"),
            ("prompts/get", json!({}), "missing field `name`"),
            ("resources/subscribe", json!({}), "missing field `uri`"),
        ] {
            let refused = wire.request(method, params).await.unwrap_err();
            assert_eq!(refused["code"], INVALID_PARAMS, "{method}");
            let message = refused["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("invalid params for {method}: ")), "{refused}");
            assert!(message.contains(problem), "{refused}");
        }
        let refused = wire.request("resources/eat", json!({})).await.unwrap_err();
        assert_eq!(refused["code"], METHOD_NOT_FOUND);
        let words = "no method is named `resources/eat`";
        assert!(refused["message"].as_str().unwrap().contains(words), "{refused}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_of_a_revision_nobody_knows_is_told_those_we_know() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"name": "list_sessions", "_meta": meta});
    let refused = wire.request("tools/call", call).await.unwrap_err();
    assert_eq!(refused["code"], UNSUPPORTED_VERSION);
    assert!(refused["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    daemon.stop().await;
}

#[tokio::test]
async fn a_client_that_has_called_without_greeting_may_still_greet() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Modern).await;
    wire.structured("list_sessions", json!({})).await;
    wire.sender.notify("notifications/roots/list_changed", json!({})).await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    let welcome = wire.request("initialize", hello).await.unwrap();
    assert_eq!(welcome["protocolVersion"], "2025-11-25");
    wire.structured("list_sessions", json!({})).await;
    daemon.stop().await;
}
