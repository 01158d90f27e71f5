//! `wait_for` with what shells do: ends of commands, programs that ask, fresh output, several
//! sessions at once, and what is told meanwhile.

use serde_json::{Value, json};

use crate::daemon::driven::{screen, start, tell_until};
use crate::daemon::harness::{Era, TestDaemon, structured};
use crate::daemon::shells::{ALL, Shell, with_each};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_command_that_was_typed_is_told_with_its_code_where_the_shell_tells() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let typing = json!({
            "text": "sh -c 'sleep 0.1; exit 3'", "enter": true, "until": {"command_done": true},
            "wait_ms": 20_000,
        });
        let typed = shell.call("send_text", typing).await;
        assert_eq!(typed["wait"]["outcome"], "command_done", "{}: {typed}", shell.name);
        // dash tells no beginning, so that nothing is known of what was not sent as a command.
        let code = if shell.name == "dash" { Value::Null } else { json!(3) };
        assert_eq!(typed["wait"]["command"]["exit_code"], code, "{}: {typed}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ended_before_is_found_from_the_watermark_and_not_without() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let begun = shell.run_with("sh -c 'sleep 0.3; exit 2'", json!({"timeout_ms": 100})).await;
        assert_eq!(begun.status(), "timeout", "{}: {}", shell.name, begun.0);
        let id = begun.number("command_id");
        while shell.record(id).await["commands"][0]["status"] == "running" {}
        let since = json!({"command_done": true, "since": begun.number("watermark")});
        let waited = shell.wait_for(since).await;
        assert_eq!(waited["command"]["command_id"], id, "{}: {waited}", shell.name);
        let fresh = shell.call("wait_for", json!({"command_done": true, "timeout_ms": 0})).await;
        assert_eq!(fresh["outcome"], "timeout", "{}: {fresh}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_asks_is_told_and_one_that_works_is_not() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let working = shell.run_with("sleep 300", json!({"timeout_ms": 100})).await;
        let wait = json!({"needs_input": true, "timeout_ms": 600});
        assert_eq!(shell.call("wait_for", wait).await["outcome"], "timeout", "{}", shell.name);
        shell.interrupt(working.number("command_id")).await;
        let asking = json!({
            "text": "sh -c 'sleep 0.3; printf \"Sure? \"; read x'", "enter": true,
            "until": {"needs_input": true}, "wait_ms": 20_000,
        });
        let asked = shell.call("send_text", asking).await;
        let waited = &asked["wait"];
        assert_eq!(waited["outcome"], "needs_input", "{}: {asked}", shell.name);
        assert_eq!(waited["activity"]["state"], "needs_input", "{}: {asked}", shell.name);
        let last = waited["last_rows"].as_array().unwrap().last().unwrap();
        assert!(last.as_str().unwrap().starts_with("Sure?"), "{}: {asked}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_output_after_the_watermark_counts() {
    with_each(&ALL, async |shell| {
        let first = shell.must("echo need''le", 0, "needle").await;
        let mark = first.number("watermark");
        let old = json!({"text": "needle", "since": mark, "timeout_ms": 200});
        let missed = shell.call("wait_for", old).await;
        assert_eq!(missed["outcome"], "timeout", "{}", shell.name);
        let shown = missed["shown_before"]["text"].as_str();
        assert!(shown.is_some_and(|text| text.contains("needle")), "{}: {missed}", shell.name);
        shell.must("echo need''le", 0, "needle").await;
        let waited = shell.wait_for(json!({"pattern": "^needle$", "since": mark})).await;
        assert_eq!(waited["outcome"], "matched", "{}: {waited}", shell.name);
    })
    .await;
}

#[tokio::test]
async fn a_wait_says_which_of_its_texts_and_patterns_it_met() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let session = start(&mut client).await;
    for (conditions, outcome, which) in [
        (json!({"text": "r.ady", "pattern": "^r.ady$"}), "matched", "pattern"),
        (json!({"text": "ready", "pattern": "^r.ady$"}), "matched", "text"),
        (json!({"text": "never", "stop_text": "ready"}), "stopped", "stop_text"),
        (json!({"pattern": "ready.", "stop_pattern": "^ready$"}), "stopped", "stop_pattern"),
    ] {
        let mut asked = conditions.clone();
        (asked["session"], asked["since"]) = (json!(session), json!(0));
        let met = client.structured("wait_for", asked).await;
        assert_eq!((&met["outcome"], &met["pattern"]), (&json!(outcome), &json!(which)), "{met}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn whoever_follows_the_watermark_is_told_every_line_that_matches() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = start(&mut client).await;
    let mut since = screen(&mut client, &session).await["watermark"].clone();
    let mut found = Vec::new();
    for round in 0..3 {
        // What is found comes in one piece, and is looked at when all of it is there.
        let line =
            format!("for i in 1 2 3 4; do echo {round}.$i FAIL''ED; done; echo do''ne.{round}");
        tell_until(&mut client, &session, &line, &format!("done.{round}")).await;
        let arguments = json!({"session": session, "text": "FAILED", "since": since});
        let result = client.call("wait_for", arguments.clone()).await;
        let waited = structured(&result);
        let text = result["content"][0]["text"].as_str().unwrap();
        found.push(waited["text"].as_str().unwrap().to_owned());
        for other in waited["more_matches"].as_array().unwrap() {
            let (row, line) = (&other["row"], other["text"].as_str().unwrap());
            assert!(text.contains(&format!("\nalso text at row {row}: {line}\n")), "{text}");
            assert_eq!(other["pattern"], "text", "{waited}");
            found.push(line.to_owned());
        }
        since = waited["watermark"].clone();
        let rest = json!({"session": session, "text": "FAILED", "since": since, "timeout_ms": 0});
        assert_eq!(client.structured("wait_for", rest).await["outcome"], "timeout");
    }
    let all = (0..3).flat_map(|round| (1..5).map(move |i| format!("{round}.{i} FAILED")));
    assert_eq!(found, all.collect::<Vec<_>>());
    daemon.stop().await;
}

#[tokio::test]
async fn a_write_that_waits_tells_what_else_matched() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = start(&mut client).await;
    // Both lines come in one piece, since the terminal changes no line ends.
    let line = "stty -opost; printf 'F%s 1\\r\\nF%s 2\\r\\n' AIL AIL";
    let typing = json!({
        "session": session, "text": line, "enter": true, "until": {"text": "FAIL"},
        "wait_ms": 20_000,
    });
    let result = client.call("send_text", typing).await;
    let wait = structured(&result)["wait"].clone();
    assert_eq!(wait["more_matches"][0]["text"], "FAIL 2", "{wait}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(" at row 1: FAIL 1, after "), "{text}");
    assert!(text.contains("\nalso text at row 2: FAIL 2"), "{text}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_sessions_the_first_in_which_a_command_ends_is_told() {
    let daemon = TestDaemon::writable().await;
    let mut shells = Vec::new();
    for _ in 0..3 {
        shells.push(Shell::start(&daemon, "bash").await);
    }
    let mut watcher = daemon.client(Era::Legacy).await;
    for index in [1, 0, 2] {
        let sessions: Vec<_> = shells.iter().map(|shell| shell.session.clone()).collect();
        for shell in &mut shells {
            shell.run_with("sleep 300", json!({"timeout_ms": 100})).await;
        }
        let waiting = json!({"sessions": sessions, "command_done": true});
        let waiting = watcher.send_call("wait_for", waiting).await;
        // It waits by the time that another call of the same client is answered.
        watcher.structured("list_sessions", json!({})).await;
        shells[index].press("C-c").await;
        let waited = structured(&watcher.answer(waiting).await);
        assert_eq!(waited["outcome"], "command_done", "{waited}");
        assert_eq!(waited["session"], shells[index].session, "{waited}");
        for shell in &mut shells {
            let newest = shell.call("read_commands", json!({"limit": 1})).await;
            shell.interrupt(newest["commands"][0]["command_id"].as_u64().unwrap()).await;
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_on_several_sessions_that_times_out_names_none_of_them() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let sessions = [client.start("exec cat").await, client.start("exec cat").await];
    let waiting = json!({"sessions": sessions, "text": "never", "timeout_ms": 10});
    let answer = client.call("wait_for", waiting).await;
    let waited = structured(&answer);
    assert_eq!(waited["outcome"], "timeout", "{waited}");
    for member in ["session", "activity", "watermark"] {
        assert!(waited.get(member).is_none(), "{member}: {waited}");
    }
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("timeout in every session after "), "{text}");
    let waiting = json!({"sessions": [sessions[0]], "text": "never", "timeout_ms": 10});
    assert_eq!(client.structured("wait_for", waiting).await["session"], sessions[0]);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_progress_hears_that_the_call_is_on_its_way() {
    let daemon = TestDaemon::writable().await;
    let mut shell = Shell::start(&daemon, "bash").await;
    for (tool, arguments) in [
        ("run", json!({"command": "sleep 300", "on_cancel": "interrupt"})),
        ("wait_for", json!({"text": "never"})),
    ] {
        let mut arguments = arguments;
        arguments["session"] = json!(shell.session);
        let call = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}});
        let waiting = shell.client.send("tools/call", call).await;
        let told = shell.client.receiver.notification("notifications/progress").await;
        assert_eq!(told["progressToken"], tool, "{told}");
        assert!(told["progress"].as_f64().unwrap() > 0.0, "{told}");
        shell.client.sender.cancel(waiting).await;
    }
    daemon.stop().await;
}
