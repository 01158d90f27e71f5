//! Every call of the systems termgate learned from, made here with the same outcome in one call.
//!
//! What each of them offers besides terminals is no part of this table.

use serde_json::{Value, json};

use crate::daemon::driven::{self, screen, tell_until};
use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};

/// A shell that prompts with `$ ` and reads nobody's settings.
async fn shell(wire: &mut Wire, name: &str) -> String {
    let arguments =
        json!({"name": name, "command": "sh", "args": [], "env": {"PS1": "$ ", "ENV": ""}});
    let created = wire.structured("create_session", arguments).await;
    wire.wait_for(json!({"session": name, "text": "$ ", "since": 0})).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

async fn listed(wire: &mut Wire, session: &str) -> Value {
    let listed = wire.structured("list_sessions", json!({"session": session})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    listed["sessions"][0].clone()
}

/// The text of the rows that a waiting write says have changed.
fn changed(written: &Value) -> Vec<&str> {
    let updates = written["changed"]["updates"].as_array().unwrap();
    updates.iter().filter_map(|update| update["text"].as_str()).collect()
}

// SILC: tools that name a session by its port.

#[tokio::test]
async fn silc_send_types_a_line_and_gives_back_its_output() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    shell(&mut wire, "20000").await;
    // send(port, text, timeout_ms=5000)
    let line =
        json!({"session": "20000", "text": "echo $((40+2))", "enter": true, "wait_ms": 5000});
    let sent = wire.structured("send_text", line).await;
    assert_eq!(sent["wait"]["outcome"], "idle");
    assert!(changed(&sent).contains(&"42"), "{sent}");
    // send(port, text, timeout_ms=0)
    let line = json!({"session": "20000", "text": "echo $((50+5))", "enter": true, "wait_ms": 0});
    let sent = wire.structured("send_text", line).await;
    assert_eq!((&sent["wait"], &sent["changed"]), (&Value::Null, &Value::Null));
    wire.wait_for(json!({"session": "20000", "text": "55", "since": 0})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn silc_read_gives_the_output_and_read_tools_are_safe_to_approve() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = driven::start(&mut wire).await;
    tell_until(&mut wire, &session, "seq 1 200; printf over", "over").await;
    // read(port, lines=100)
    let read = wire.structured("read_history", json!({"session": session, "tail": 100})).await;
    assert_eq!(read["text"].as_str().unwrap().lines().count(), 100);
    let shown = screen(&mut wire, &session).await;
    assert!(shown["text"].as_str().unwrap().ends_with("199\n200\nover"));
    daemon.stop().await;
}

#[tokio::test]
async fn silc_send_key_knows_all_its_keys() {
    let keys = [
        ("ctrl+c", "03"),
        ("ctrl+d", "04"),
        ("ctrl+z", "1a"),
        ("ctrl+l", "0c"),
        ("ctrl+r", "12"),
        ("enter", "0d"),
        ("escape", "1b"),
        ("tab", "09"),
        ("backspace", "7f"),
        ("delete", "1b5b337e"),
        ("up", "1b5b41"),
        ("down", "1b5b42"),
        ("right", "1b5b43"),
        ("left", "1b5b44"),
        ("home", "1b5b48"),
        ("end", "1b5b46"),
    ];
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let log = daemon.file("keys");
    let bytes = keys.iter().map(|(_, bytes)| bytes.len() / 2).sum();
    let session = wire.start_recorder(&log, bytes).await;
    wire.acquire(&session).await;
    for (key, _) in keys {
        wire.structured("send_keys", json!({"session": session, "keys": key})).await;
    }
    wire.wait_for_exit(&session).await;
    let seen: Vec<String> =
        std::fs::read(log).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(seen.concat(), keys.map(|(_, bytes)| bytes).concat());
    daemon.stop().await;
}

#[tokio::test]
async fn silc_send_key_gives_back_what_the_key_did() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    shell(&mut wire, "20000").await;
    let line = json!({"session": "20000", "text": "sleep 1000; echo on", "enter": true});
    wire.structured("send_text", line).await;
    wire.wait_for(json!({"session": "20000", "text": "sleep 1000", "since": 0})).await;
    // send_key(port, key)
    let key = json!({"session": "20000", "keys": "ctrl+c", "until": {"text": "^C"}});
    let pressed = wire.structured("send_keys", key).await;
    assert_eq!(pressed["wait"]["outcome"], "matched");
    assert!(changed(&pressed).iter().any(|row| row.contains("^C")), "{pressed}");
    daemon.stop().await;
}

#[tokio::test]
async fn silc_sessions_are_started_listed_told_and_closed() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    // start_session(port, shell, cwd)
    let start = json!({"name": "20001", "command": "sh", "args": [], "cwd": "/tmp"});
    let started = wire.structured("create_session", start).await;
    assert_eq!(
        (&started["session"]["name"], &started["session"]["cwd"]),
        (&json!("20001"), &json!("/tmp"))
    );
    // start_session() finds the shell by itself.
    let own = wire.structured("create_session", json!({})).await;
    assert!(!own["session"]["command"].as_str().unwrap().is_empty());
    // list_sessions()
    let all = wire.structured("list_sessions", json!({})).await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 2);
    // get_status(port)
    let status = listed(&mut wire, "20001").await;
    assert_eq!((&status["state"], &status["id"]), (&json!("running"), &started["session"]["id"]));
    assert!(status["idle_ms"].is_u64() && status["last_line"].is_string());
    assert!(status["lease"]["held"].is_boolean());
    // close_session(port)
    let close = json!({"session": "20001", "action": "kill"});
    assert_eq!(wire.structured("manage_session", close).await["done"], "killed");
    wire.wait_for(json!({"session": "20001", "exit": true})).await;
    daemon.stop().await;
}

// Beach: a lease, structured keys, absolute rows.

#[tokio::test]
async fn beach_lists_sessions_with_their_history_and_clients() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = driven::start(&mut wire).await;
    let mut watcher = daemon.client(Era::Modern).await;
    watcher.send("termgate/observe", json!({"session": session})).await;
    watcher.receiver.notification("termgate/delta").await;
    // beach.sessions.list {filters}
    let listed = listed(&mut wire, &session).await;
    assert_eq!((&listed["history_rows"], &listed["observers"]), (&json!(0), &json!(1)));
    assert_eq!(listed["write_allowed"], true);
    daemon.stop().await;
}

#[tokio::test]
async fn beach_leases_are_acquired_used_and_released() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let mut other = daemon.client(Era::Modern).await;
    let session = wire.start("exec cat").await;
    let text = json!({"session": session, "text": "x"});
    assert_eq!(wire.error_code("send_text", text.clone()).await, "lease_required");
    // beach.terminal.acquireLease {session_id, scope, ttl_ms}
    let ask = json!({"session": session, "ttl_ms": 30_000});
    let grant = wire.structured("acquire_lease", ask.clone()).await;
    assert_eq!(grant["ttl_ms"], 30_000);
    assert!(grant["expires_at"].as_str().unwrap().ends_with('Z'), "{grant}");
    assert_eq!(other.error_code("acquire_lease", ask.clone()).await, "lease_held");
    assert_eq!(other.error_code("send_text", text.clone()).await, "lease_held");
    // beach.terminal.sendText {session_id, text, lease_id}
    let with_key = json!({"session": session, "text": "x", "lease_id": grant["lease_id"]});
    assert_eq!(wire.structured("send_text", with_key).await["written"], 1);
    assert_eq!(wire.structured("send_text", text).await["written"], 1);
    // beach.terminal.releaseLease {lease_id}
    let release = json!({"lease_id": grant["lease_id"]});
    assert_eq!(wire.structured("release_lease", release.clone()).await["outcome"], "freed");
    assert_eq!(wire.structured("release_lease", release).await["outcome"], "already_gone");
    let grant = other.structured("acquire_lease", ask).await;
    assert_eq!(grant["session"], session);
    daemon.stop().await;
}

#[tokio::test]
async fn beach_keys_are_a_list_of_objects() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let log = daemon.file("keys");
    let session = wire.start_recorder(&log, 5).await;
    let grant = wire.acquire(&session).await;
    // beach.terminal.sendKeys {session_id, keys, lease_id}
    let keys = json!([
        {"kind": "named", "name": "Enter"},
        {"kind": "char", "char": "a", "modifiers": ["ctrl"]},
        {"kind": "char", "char": "b"},
        {"kind": "char", "char": "c", "modifiers": ["alt"]},
    ]);
    let press = json!({"session": session, "keys": keys, "lease_id": grant["lease_id"]});
    assert_eq!(wire.structured("send_keys", press).await["written"], 5);
    wire.wait_for_exit(&session).await;
    assert_eq!(std::fs::read(log).unwrap(), b"\r\x01b\x1bc");
    daemon.stop().await;
}

#[tokio::test]
async fn beach_resizes_under_the_lease_and_fetches_history_by_row() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = driven::start(&mut wire).await;
    tell_until(&mut wire, &session, "seq 1 500; printf over", "over").await;
    // beach.terminal.requestHistory {session_id, start_row, count}
    let request = json!({"session": session, "start_row": 380, "count": 120});
    let rows = wire.structured("read_history", request).await;
    let expected: Vec<String> = (380..500).map(|row: u32| row.to_string()).collect();
    assert_eq!(rows["text"], expected.join("\n"));
    // beach.terminal.resize {session_id, cols, rows}
    let resize = json!({"session": session, "cols": 120, "rows": 32});
    let mut other = daemon.client(Era::Legacy).await;
    assert_eq!(other.error_code("resize", resize.clone()).await, "lease_held");
    wire.structured("resize", resize).await;
    tell_until(&mut wire, &session, "stty size; echo again", "again").await;
    let shown = screen(&mut wire, &session).await;
    assert!(shown["text"].as_str().unwrap().contains("32 120"), "{shown}");
    daemon.stop().await;
}

// wsh: sessions by name, lines and scrollback, waiting for silence.

#[tokio::test]
async fn wsh_sessions_are_created_listed_renamed_and_killed() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    // wsh_create_session {name, command, rows, cols, cwd, env}
    let create = json!({
        "name": "build", "command": "pwd; echo $COLOUR; stty size; exec cat",
        "rows": 24, "cols": 80, "cwd": "/usr", "env": {"COLOUR": "green"},
    });
    let created = wire.structured("create_session", create).await["session"].clone();
    assert_eq!((&created["rows"], &created["cols"]), (&json!(24), &json!(80)));
    assert!(created["pid"].as_i64().unwrap() > 1);
    wire.wait_for(json!({"session": "build", "text": "24 80", "since": 0})).await;
    let shown = screen(&mut wire, "build").await;
    assert_eq!(shown["text"], "/usr\ngreen\n24 80");
    // wsh_list_sessions {session}
    let one = listed(&mut wire, "build").await;
    assert_eq!((&one["pid"], &one["state"]), (&created["pid"], &json!("running")));
    // wsh_manage_session {session, action: rename, new_name}
    let rename = json!({"session": "build", "action": "rename", "new_name": "deploy"});
    assert_eq!(wire.structured("manage_session", rename).await["name"], "deploy");
    assert_eq!(listed(&mut wire, "deploy").await["id"], created["id"]);
    assert_eq!(
        wire.error_code("read_screen", json!({"session": "build"})).await,
        "session_not_found"
    );
    // wsh_manage_session {session, action: kill}
    wire.structured("manage_session", json!({"session": "deploy", "action": "kill"})).await;
    wire.wait_for(json!({"session": "deploy", "exit": true})).await;
    assert_eq!(listed(&mut wire, "deploy").await["state"], "exited");
    daemon.stop().await;
}

#[tokio::test]
async fn wsh_refuses_a_name_that_is_taken() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let create = json!({"name": "build", "command": "cat"});
    wire.structured("create_session", create.clone()).await;
    assert_eq!(wire.error_code("create_session", create).await, "session_exists");
    wire.structured("create_session", json!({"name": "other", "command": "cat"})).await;
    let rename = json!({"session": "other", "action": "rename", "new_name": "build"});
    assert_eq!(wire.error_code("manage_session", rename).await, "session_exists");
    daemon.stop().await;
}

#[tokio::test]
async fn wsh_input_is_text_or_bytes() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let log = daemon.file("input");
    let session = wire.start_recorder(&log, 9).await;
    wire.acquire(&session).await;
    // wsh_send_input {session, input}
    let text = json!({"session": session, "text": "ls\n"});
    assert_eq!(wire.structured("send_text", text).await["written"], 3);
    // wsh_send_input {session, input, encoding: base64}; the bytes 00 1b ff 0a 80 41
    let bytes = json!({"session": session, "text": "ABv/CoBB", "encoding": "base64"});
    assert_eq!(wire.structured("send_text", bytes).await["written"], 6);
    wire.wait_for_exit(&session).await;
    assert_eq!(std::fs::read(log).unwrap(), b"ls\r\x00\x1b\xff\x0a\x80A");
    daemon.stop().await;
}

#[tokio::test]
async fn wsh_screen_and_scrollback_come_styled_or_plain() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = driven::start(&mut wire).await;
    let line = r"printf '\033[1;32mgreen\033[0m\n'; seq 1 3; printf over";
    tell_until(&mut wire, &session, line, "over").await;
    // wsh_get_screen {session, format: styled}
    let styled = json!({"session": session, "format": "styled"});
    let styled = wire.structured("read_screen", styled).await;
    let run = json!([{"col": 0, "len": 5, "fg": "2", "attrs": ["bold"]}]);
    assert_eq!(styled["lines"][1], json!({"row": 1, "text": "green", "runs": run}));
    assert_eq!(
        (&styled["rows"], &styled["cols"], &styled["mode"]),
        (&json!(40), &json!(120), &json!("normal"))
    );
    assert_eq!((&styled["cursor"]["row"], &styled["cursor"]["col"]), (&json!(5), &json!(4)));
    // wsh_get_screen {session, format: plain}
    assert_eq!(screen(&mut wire, &session).await["text"], "ready\ngreen\n1\n2\n3\nover");
    tell_until(&mut wire, &session, "seq 1 300; printf fin", "fin").await;
    // wsh_get_scrollback {session, offset, limit, format}
    let plain = json!({"session": session, "start_row": 0, "count": 3});
    let plain = wire.structured("read_history", plain).await;
    // `over` has no line end of its own, so 1 stands behind it.
    assert_eq!((&plain["text"], &plain["end_row"]), (&json!("ready\ngreen\n1"), &json!(306)));
    let styled = json!({"session": session, "start_row": 1, "count": 1, "format": "ansi"});
    let styled = wire.structured("read_history", styled).await;
    assert!(styled["text"].as_str().unwrap().contains("\u{1b}["), "{styled}");
    daemon.stop().await;
}

#[tokio::test]
async fn wsh_awaits_quiescence() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let quiet = wire.start("echo quiet; exec cat").await;
    // wsh_await_quiesce {session, timeout_ms, max_wait_ms}
    let wait = json!({"session": quiet, "idle_ms": 50, "timeout_ms": 30_000});
    let waited = wire.structured("wait_for", wait).await;
    assert_eq!((&waited["outcome"], &waited["last_rows"]), (&json!("idle"), &json!(["quiet"])));
    let busy = wire.start("while :; do echo busy; done").await;
    let wait = json!({"session": busy, "idle_ms": 20_000, "timeout_ms": 100});
    assert_eq!(wire.structured("wait_for", wait).await["outcome"], "timeout");
    daemon.stop().await;
}

// wa: panes, dry runs, waiting for a pattern, reservations.

#[tokio::test]
async fn wa_state_and_text_of_a_pane() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = driven::start(&mut wire).await;
    // wa.state {pane_id}
    assert_eq!(listed(&mut wire, &session).await["last_line"], "ready");
    let tagged = json!({"command": "cat", "tags": ["agent:codex"]});
    wire.structured("create_session", tagged).await;
    // wa.state {agent}
    let of_agent = wire.structured("list_sessions", json!({"tag": "agent:codex"})).await;
    assert_eq!(of_agent["sessions"].as_array().unwrap().len(), 1);
    tell_until(&mut wire, &session, r"printf '\033[31m'; seq 1 100; printf over", "over").await;
    // wa.get_text {pane_id, tail}
    let plain = json!({"session": session, "tail": 50});
    let plain = wire.structured("read_history", plain).await;
    assert_eq!(plain["text"].as_str().unwrap().lines().count(), 50);
    // wa.get_text {pane_id, tail, escapes}
    let escapes = json!({"session": session, "tail": 2, "format": "ansi"});
    let escapes = wire.structured("read_history", escapes).await;
    assert!(escapes["text"].as_str().unwrap().starts_with("\u{1b}["), "{escapes}");
    daemon.stop().await;
}

#[tokio::test]
async fn wa_send_can_be_tried_without_sending_and_can_wait() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    shell(&mut wire, "pane").await;
    // wa.send {pane_id, text, dry_run}
    let text = json!({"session": "pane", "text": "echo $((40+2))", "enter": true, "dry_run": true});
    let tried = wire.structured("send_text", text.clone()).await;
    assert_eq!((&tried["dry_run"], &tried["written"]), (&json!(true), &json!(0)));
    assert_eq!(screen(&mut wire, "pane").await["text"], "$");
    let mut other = daemon.client(Era::Legacy).await;
    assert_eq!(other.error_code("send_text", text).await, "lease_held");
    // wa.send {pane_id, text, wait_for, timeout_secs, wait_for_regex}
    let text = json!({
        "session": "pane", "text": "echo $((40+2))", "enter": true,
        "until": {"pattern": "^4[0-9]$"}, "wait_ms": 30_000,
    });
    let sent = wire.structured("send_text", text).await;
    assert_eq!(
        (&sent["wait"]["outcome"], &sent["wait"]["text"]),
        (&json!("matched"), &json!("42"))
    );
    daemon.stop().await;
}

#[tokio::test]
async fn wa_waits_for_a_pattern_and_a_timeout_is_an_outcome() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = driven::start(&mut wire).await;
    // wa.wait_for {pane_id, pattern, timeout_secs, tail, regex}
    let wait = json!({"session": session, "pattern": "^re.dy$", "since": 0,
        "timeout_ms": 30_000});
    let waited = wire.structured("wait_for", wait).await;
    assert_eq!(
        (&waited["outcome"], &waited["row"], &waited["text"]),
        (&json!("matched"), &json!(0), &json!("ready"))
    );
    let wait = json!({"session": session, "text": "never", "timeout_ms": 1});
    assert_eq!(wire.structured("wait_for", wait).await["outcome"], "timeout");
    daemon.stop().await;
}

#[tokio::test]
async fn wa_explains_codes_and_wraps_answers_in_an_envelope() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    // wa.why {code}
    let result = wire.call("read_screen", json!({"session": "nobody"})).await;
    let code = error_code(&result);
    let why = wire.structured("why", json!({"code": code})).await;
    assert_eq!(why["code"], "session_not_found");
    let envelope = &result["_meta"]["dev.termgate/envelope"];
    assert_eq!((&envelope["ok"], &envelope["error_code"]), (&json!(false), &json!(code)));
    assert_eq!(envelope["hint"], result["structuredContent"]["hint"]);
    assert_eq!(envelope["mcp_version"], "2025-11-25");
    daemon.stop().await;
}

#[tokio::test]
async fn wa_reservations_are_made_listed_and_given_back() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = wire.start("exec cat").await;
    // wa.reserve {pane_id, owner, ttl_secs}
    let reserve =
        json!({"session": session, "ttl_ms": 60_000, "wait_ms": 1_000, "reason": "deploy"});
    let reserved = wire.structured("acquire_lease", reserve).await;
    assert_eq!(reserved["ttl_ms"], 60_000);
    // wa.reservations
    let uri = json!({"uri": "termgate://leases"});
    let read = wire.request("resources/read", uri).await.unwrap();
    let leases: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let lease = &leases["leases"][0];
    assert_eq!((&lease["session"], &lease["lease"]["reason"]), (&json!(session), &json!("deploy")));
    assert!(lease["lease"]["by"].as_str().unwrap().starts_with("tester#"), "{lease}");
    // wa.release {reservation_id}
    let release = json!({"lease_id": reserved["lease_id"]});
    assert_eq!(wire.structured("release_lease", release).await["outcome"], "freed");
    daemon.stop().await;
}
