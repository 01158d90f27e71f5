//! Bad arguments: each is refused with the name of its parameter, before anything is done.

use serde_json::{Value, json};

use crate::daemon::driven::{screen, start};
use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};

/// Calls a tool with a bad argument and checks that the answer names it.
async fn refused(wire: &mut Wire, tool: &str, arguments: Value, parameter: &str) {
    let case = format!("{tool} {arguments:.200}");
    let result = wire.call(tool, arguments).await;
    assert_eq!(error_code(&result), "invalid_argument", "{case}");
    let error = &result["structuredContent"];
    assert_eq!(error["details"]["parameter"], parameter, "{case}: {error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(parameter), "{case}: {message}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("invalid_argument: ") && text.contains(message), "{case}: {text}");
}

/// A table of tool, arguments besides `session`, and the parameter that is wrong.
async fn all_refused(cases: &[(&str, Value, &str)]) {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = start(&mut wire).await;
    let before = screen(&mut wire, &session).await;
    for (tool, rest, parameter) in cases {
        let mut arguments = rest.clone();
        if arguments.get("session").is_none() {
            arguments["session"] = json!(session);
        }
        refused(&mut wire, tool, arguments, parameter).await;
    }
    assert_eq!(screen(&mut wire, &session).await, before, "something was done");
    daemon.stop().await;
}

#[tokio::test]
async fn bad_arguments_of_reading_tools() {
    all_refused(&[
        ("list_sessions", json!({"session": 5}), "session"),
        ("list_sessions", json!({"tag": ["x"]}), "tag"),
        ("list_sessions", json!({"state": "asleep"}), "state"),
        ("list_sessions", json!({"sort": "name"}), "sort"),
        ("read_screen", json!({"session": {}}), "session"),
        ("read_screen", json!({"format": "html"}), "format"),
        ("read_screen", json!({"format": 1}), "format"),
        ("read_screen", json!({"since": -1}), "since"),
        ("read_screen", json!({"since": 1.5}), "since"),
        ("read_screen", json!({"since": "one"}), "since"),
        ("read_screen", json!({"top": 1000}), "top"),
        ("read_screen", json!({"count": 0}), "count"),
        ("read_screen", json!({"count": 1001}), "count"),
        ("read_screen", json!({"lines": 5}), "lines"),
        ("read_history", json!({"count": 0}), "count"),
        ("read_history", json!({"count": 501}), "count"),
        ("read_history", json!({"tail": 0}), "tail"),
        ("read_history", json!({"tail": 501}), "tail"),
        ("read_history", json!({"tail": 1, "start_row": 1}), "tail"),
        ("read_history", json!({"start_row": -5}), "start_row"),
        ("read_history", json!({"format": "styled"}), "format"),
        ("wait_for", json!({}), "text"),
        ("wait_for", json!({"text": 5}), "text"),
        ("wait_for", json!({"pattern": ""}), "pattern"),
        ("wait_for", json!({"pattern": "("}), "pattern"),
        ("wait_for", json!({"stop_pattern": "["}), "stop_pattern"),
        ("wait_for", json!({"text": "x", "regex": true}), "regex"),
        ("wait_for", json!({"idle_ms": 0}), "idle_ms"),
        ("wait_for", json!({"idle_ms": 600_001}), "idle_ms"),
        ("wait_for", json!({"change": 1}), "change"),
        ("wait_for", json!({"exit": "soon"}), "exit"),
        ("wait_for", json!({"change": true, "timeout_ms": 600_001}), "timeout_ms"),
        ("wait_for", json!({"change": true, "timeout_ms": -1}), "timeout_ms"),
        ("wait_for", json!({"change": true, "since": true}), "since"),
        ("wait_for", json!({"change": true, "sessions": "all"}), "sessions"),
        ("wait_for", json!({"change": true, "sessions": ["x"]}), "sessions"),
        ("wait_for", json!({"command": "done"}), "command"),
    ])
    .await;
}

#[tokio::test]
async fn what_is_wrong_within_an_argument_is_named_by_its_path() {
    all_refused(&[
        ("send_keys", json!({"keys": [{"name": "Up"}, [null, "x"]]}), "keys[1]"),
        ("send_text", json!({"text": "x", "until": ["x"]}), "until"),
    ])
    .await;
}

#[tokio::test]
async fn bad_arguments_of_tools_that_write() {
    all_refused(&[
        ("send_text", json!({}), "text"),
        ("send_text", json!({"text": ""}), "text"),
        ("send_text", json!({"text": 5}), "text"),
        ("send_text", json!({"text": "*", "encoding": "base64"}), "text"),
        ("send_text", json!({"text": "x", "encoding": "latin1"}), "encoding"),
        ("send_text", json!({"text": "x", "paste": true}), "paste"),
        ("send_text", json!({"text": "x", "paste": "sometimes"}), "paste"),
        ("send_text", json!({"text": "x", "enter": "yes"}), "enter"),
        ("send_text", json!({"text": "x", "newline": true}), "newline"),
        ("send_text", json!({"text": "x", "lease_id": "mine"}), "lease_id"),
        ("send_text", json!({"text": "x", "lease_id": 1}), "lease_id"),
        ("send_text", json!({"text": "x", "expect_watermark": -1}), "expect_watermark"),
        ("send_text", json!({"text": "x", "expect_text": 1}), "expect_text"),
        ("send_text", json!({"text": "x", "idempotency_key": ""}), "idempotency_key"),
        ("send_text", json!({"text": "x", "dry_run": 1}), "dry_run"),
        ("send_text", json!({"text": "x", "wait_ms": 600_001}), "wait_ms"),
        ("send_text", json!({"text": "x", "wait_ms": "5s"}), "wait_ms"),
        ("send_text", json!({"text": "x", "until": "idle"}), "until"),
        ("send_text", json!({"text": "x", "until": {}}), "until.text"),
        ("send_text", json!({"text": "x", "until": {"text": 5}}), "until.text"),
        ("send_text", json!({"text": "x", "until": {"needle": "x"}}), "until.needle"),
        ("send_text", json!({"text": "x", "until": {"idle_ms": 0}}), "until.idle_ms"),
        ("send_keys", json!({}), "keys"),
        ("send_keys", json!({"keys": ""}), "keys"),
        ("send_keys", json!({"keys": []}), "keys"),
        ("send_keys", json!({"keys": 5}), "keys"),
        ("send_keys", json!({"keys": "Entr"}), "keys"),
        ("send_keys", json!({"keys": "a NoSuchKey b"}), "keys"),
        ("send_keys", json!({"keys": [{"name": "NoSuchKey"}]}), "keys"),
        ("send_keys", json!({"keys": [{"char": "ab"}]}), "keys"),
        ("send_keys", json!({"keys": [{"char": "a", "modifiers": ["hyper"]}]}), "keys"),
        ("send_keys", json!({"keys": [{}]}), "keys"),
        ("send_mouse", json!({"row": 0, "col": 0}), "action"),
        ("send_mouse", json!({"action": "click", "col": 0}), "row"),
        ("send_mouse", json!({"action": "click", "row": 0}), "col"),
        ("send_mouse", json!({"action": "drag", "row": 0, "col": 0}), "action"),
        ("send_mouse", json!({"action": "click", "row": -1, "col": 0}), "row"),
        ("send_mouse", json!({"action": "click", "row": 1000, "col": 0}), "row"),
        ("send_mouse", json!({"action": "click", "row": 0, "col": 70_000}), "col"),
        (
            "send_mouse",
            json!({"action": "click", "row": 0, "col": 0, "button": "fourth"}),
            "button",
        ),
        (
            "send_mouse",
            json!({"action": "click", "row": 0, "col": 0, "modifiers": "ctrl"}),
            "modifiers",
        ),
        ("resize", json!({"rows": 24}), "cols"),
        ("resize", json!({"cols": 80}), "rows"),
        ("resize", json!({"cols": 1, "rows": 24}), "cols"),
        ("resize", json!({"cols": 80, "rows": 1001}), "rows"),
        ("resize", json!({"cols": 80, "rows": 0}), "rows"),
        ("resize", json!({"cols": 80, "rows": 4_294_967_320_u64}), "rows"),
        ("resize", json!({"cols": 1000, "rows": 1000}), "cols"),
        ("resize", json!({"cols": "wide", "rows": 24}), "cols"),
        ("manage_session", json!({}), "action"),
        ("manage_session", json!({"action": "pause"}), "action"),
        ("manage_session", json!({"action": "rename"}), "new_name"),
        ("manage_session", json!({"action": "rename", "new_name": "a b"}), "new_name"),
        ("manage_session", json!({"action": "rename", "new_name": 5}), "new_name"),
        ("manage_session", json!({"action": "signal"}), "signal"),
        ("manage_session", json!({"action": "signal", "signal": "BANG"}), "signal"),
    ])
    .await;
}

#[tokio::test]
async fn bad_arguments_of_leases() {
    all_refused(&[
        ("acquire_lease", json!({"ttl_ms": 999}), "ttl_ms"),
        ("acquire_lease", json!({"ttl_ms": 600_001}), "ttl_ms"),
        ("acquire_lease", json!({"ttl_ms": "30s"}), "ttl_ms"),
        ("acquire_lease", json!({"wait_ms": 600_001}), "wait_ms"),
        ("acquire_lease", json!({"reason": 5}), "reason"),
        ("acquire_lease", json!({"reason": "x".repeat(201)}), "reason"),
        ("acquire_lease", json!({"lease_id": "mine"}), "lease_id"),
        ("acquire_lease", json!({"idempotency_key": "x".repeat(1_000)}), "idempotency_key"),
        ("acquire_lease", json!({"force": true}), "force"),
    ])
    .await;
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    let key = wire.acquire(&session).await["lease_id"].clone();
    for (tool, arguments, parameter) in [
        ("renew_lease", json!({}), "lease_id"),
        ("renew_lease", json!({"lease_id": "mine"}), "lease_id"),
        ("renew_lease", json!({"lease_id": key, "ttl_ms": 1}), "ttl_ms"),
        ("renew_lease", json!({"lease_id": key, "session": session}), "session"),
        ("release_lease", json!({}), "lease_id"),
        ("release_lease", json!({"lease_id": 7}), "lease_id"),
        ("release_lease", json!({"lease_id": key, "hand_to": "nobody"}), "hand_to"),
        ("release_lease", json!({"lease_id": key, "hand_to": 5}), "hand_to"),
        ("why", json!({}), "code"),
        ("why", json!({"code": "no_such_code"}), "code"),
        ("why", json!({"code": 5}), "code"),
    ] {
        refused(&mut wire, tool, arguments, parameter).await;
    }
    daemon.stop().await;
}

#[tokio::test]
async fn bad_arguments_of_a_new_session_leave_nothing_behind() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    for (arguments, parameter) in [
        (json!({"name": "a b"}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(65)}), "name"),
        (json!({"name": 5}), "name"),
        (json!({"command": ["cat"]}), "command"),
        (json!({"command": "no-such-program", "args": []}), "command"),
        (json!({"command": "/etc/passwd", "args": []}), "command"),
        (json!({"args": ["x"]}), "command"),
        (json!({"command": "cat", "args": "x"}), "args"),
        (json!({"command": "cat", "args": ["a\u{0}b"]}), "args"),
        (json!({"cwd": "relative"}), "cwd"),
        (json!({"cwd": "/no/such/place"}), "cwd"),
        (json!({"cwd": 5}), "cwd"),
        (json!({"env": ["A=b"]}), "env"),
        (json!({"env": {"A=B": "c"}}), "env"),
        (json!({"rows": 1}), "rows"),
        (json!({"rows": 1001}), "rows"),
        (json!({"cols": 0}), "cols"),
        (json!({"cols": -80}), "cols"),
        (json!({"cols": 1000, "rows": 1000}), "cols"),
        (json!({"tags": "x"}), "tags"),
        (json!({"tags": ["x".repeat(65)]}), "tags"),
        (json!({"tags": vec!["x"; 17]}), "tags"),
        (json!({"lease": "yes"}), "lease"),
        (json!({"shell": "bash"}), "shell"),
    ] {
        refused(&mut wire, "create_session", arguments, parameter).await;
    }
    let listed = wire.structured("list_sessions", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    daemon.stop().await;
}

#[tokio::test]
async fn bad_arguments_of_operators_tools() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.operator().await;
    let session = start(&mut wire).await;
    for (tool, arguments, parameter) in [
        ("follow_command", json!({"session": session}), "id"),
        ("follow_command", json!({"session": session, "id": 9}), "id"),
        ("follow_command", json!({"session": session, "id": 9, "max_lines": 0}), "max_lines"),
        ("find_lease", json!({}), "session"),
        ("preempt_lease", json!({}), "session"),
        ("preempt_lease", json!({"session": 5}), "session"),
        ("set_write", json!({}), "state"),
        ("set_write", json!({"state": "maybe"}), "state"),
        ("set_write", json!({"state": "on", "for_ms": 0}), "for_ms"),
        ("set_write", json!({"state": "on", "for_ms": -1}), "for_ms"),
        ("set_write", json!({"state": "on", "session": session, "tenant": "uid:0"}), "tenant"),
    ] {
        refused(&mut wire, tool, arguments, parameter).await;
    }
    daemon.stop().await;
}

#[tokio::test]
async fn an_unknown_key_is_answered_with_the_nearest_ones() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    let arguments = json!({"session": session, "keys": "Entr"});
    let result = wire.call("send_keys", arguments).await;
    let message = result["structuredContent"]["message"].as_str().unwrap();
    assert!(message.contains("Enter"), "{message}");
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_null_counts_as_left_out() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    let arguments = json!({"session": session, "since": null, "format": null, "count": null});
    assert_eq!(wire.structured("read_screen", arguments).await["text"], "ready");
    daemon.stop().await;
}

#[tokio::test]
async fn numbers_and_booleans_may_be_strings() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    let arguments = json!({"session": session, "top": "0", "count": " 1 "});
    assert_eq!(wire.structured("read_screen", arguments).await["text"], "ready");
    let arguments = json!({
        "session": session, "text": "echo $((6*7))", "enter": "true", "wait_ms": "20000",
        "until": {"text": "42", "change": "false"},
    });
    let sent = wire.structured("send_text", arguments).await;
    assert_eq!(sent["wait"]["outcome"], "matched", "{sent}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_text_that_ends_in_a_line_end_is_entered_once() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = start(&mut wire).await;
    for (number, (end, enter)) in
        [("\n", false), ("\r\n", false), ("\r", true)].into_iter().enumerate()
    {
        let line = format!("echo $(({number}+500))");
        let arguments = json!({
            "session": session, "text": format!("{line}{end}"), "enter": enter, "wait_ms": 20_000,
            "until": {"text": format!("{}", number + 500)},
        });
        let sent = wire.structured("send_text", arguments).await;
        assert_eq!(sent["wait"]["outcome"], "matched", "{sent}");
        assert_eq!(sent["written"], line.len() + 1, "{sent}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_paste_that_was_asked_for_is_not_entered_by_its_line_end() {
    const BRACKETS: usize = "\x1b[200~\x1b[201~".len();
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = start(&mut wire).await;
    let text = "echo $((70*10))\n";
    let arguments = json!({"session": session, "text": text, "paste": "always"});
    let sent = wire.structured("send_text", arguments).await;
    assert_eq!(sent["written"], text.len() + BRACKETS, "{sent}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_list_of_keys_may_have_names_and_objects() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    let keys = json!(["e c h o", "Space", {"char": "4"}, "2", "Enter"]);
    let arguments = json!({
        "session": session, "keys": keys, "wait_ms": 20_000, "until": {"text": "42"},
    });
    let sent = wire.structured("send_keys", arguments).await;
    assert_eq!((&sent["written"], &sent["wait"]["outcome"]), (&json!(8), &json!("matched")));
    let keys = json!(["a", {"char": "c", "ctrl": true}]);
    let refused = wire.call("send_keys", json!({"session": session, "keys": keys})).await;
    assert_eq!(error_code(&refused), "invalid_argument");
    assert!(
        refused["structuredContent"]["message"].as_str().unwrap().contains("`ctrl`"),
        "{refused}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        for name in ["no_such_tool", "", "READ_SCREEN", "Run"] {
            let call = json!({"name": name, "arguments": {}});
            let error = wire.request("tools/call", call).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{name}");
        }
        daemon.stop().await;
    }
}
