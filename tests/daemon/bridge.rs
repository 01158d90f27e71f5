//! `termgate mcp`: the daemon behind standard input and output, whatever becomes of either end.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rmcp::model::CallToolRequestParams;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::program::{Piped, piped};
use crate::harness::home::Home;
use crate::harness::processes::{dies, lives, stands_still};
use crate::harness::waiting::{line_in, soon, until};
use std::os::unix::net::UnixStream;

/// The code of what the bridge answers in the daemon's place.
const UPSTREAM: i64 = -32010;

async fn ends_well(piped: Piped) -> Vec<Value> {
    let (status, last) = piped.end().await;
    assert_eq!(status.code(), Some(0));
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_starts_the_daemon_which_ends_with_its_last_client() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut one = home.client("mcp --allow-write", era).await;
        let daemon = home.daemon().expect("a daemon runs");
        let other = home.client("mcp", era).await;
        assert_eq!(home.daemon(), Some(daemon), "one daemon serves both");
        assert_eq!(one.wire.structured("list_sessions", json!({})).await["write_allowed"], true);
        ends_well(one).await;
        assert!(lives(daemon));
        ends_well(other).await;
        dies(daemon).await;
        assert!(!home.paths().gateway().exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_with_a_session_outlives_its_bridge_until_the_session_is_removed() {
    let home = Home::new();
    let mut first = home.client("mcp --allow-write", Era::Modern).await;
    let session = first.wire.start("exec cat").await;
    let daemon = home.daemon().expect("a daemon runs");
    ends_well(first).await;

    let mut second = home.client("mcp", Era::Legacy).await;
    assert_eq!(home.daemon(), Some(daemon));
    let kill = json!({"session": session, "action": "kill"});
    second.wire.structured("manage_session", kill.clone()).await;
    second.wire.wait_for_exit(&session).await;
    second.wire.structured("manage_session", kill).await;
    ends_well(second).await;
    dies(daemon).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_new_started_was_told_to_end_by_itself() {
    let home = Home::new();
    let (code, ..) = home.outcome("new --allow-write -- cat");
    assert_eq!(code, 0);
    let daemon = home.daemon().expect("a daemon runs");
    let words = fs::read(format!("/proc/{daemon}/cmdline")).unwrap();
    let words = String::from_utf8(words).unwrap();
    assert!(words.contains("--linger\0"), "{words:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_daemon_was_killed_the_next_call_works() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client("mcp --allow-write", era).await;
        for _ in 0..3 {
            client.wire.start("exec cat").await;
            home.kill_daemon().await;
        }
        let listed = client.wire.structured("list_sessions", json!({})).await;
        let sessions = listed["sessions"].as_array().unwrap();
        assert_eq!((sessions.len(), &listed["write_allowed"]), (3, &json!(true)));
        assert!(sessions.iter().all(|session| session["state"] == "running"), "{listed}");
        ends_well(client).await;
        home.outcome("stop");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_of_the_older_era_lives_on_in_the_next_daemon() {
    let home = Home::new();
    let mut client = home.client("mcp --allow-write", Era::Legacy).await;
    let list = json!({"uri": "termgate://sessions"});
    client.wire.request("resources/subscribe", list.clone()).await.unwrap();
    home.kill_daemon().await;
    client.wire.structured("list_sessions", json!({})).await;
    // What may have changed meanwhile is told once, whether or not it did.
    client.wire.receiver.notification("notifications/tools/list_changed").await;
    let updated = "notifications/resources/updated";
    assert_eq!(client.wire.receiver.notification(updated).await, list);
    client.wire.start("exec cat").await;
    assert_eq!(client.wire.receiver.notification(updated).await, list);
    let answers = client.wire.receiver.kept().filter(|message| message["method"].is_null());
    assert_eq!(answers.count(), 0, "an answer nobody asked for");
    ends_well(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_when_the_daemon_dies_are_answered_and_not_repeated() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client("mcp --allow-write", era).await;
        let session = client.wire.start("exec cat").await;
        let never = json!({"session": session, "text": "never"});
        let cancelled = client.wire.send_call("wait_for", never.clone()).await;
        let waiting = client.wire.send_call("wait_for", never).await;
        let observing = client.wire.send("termgate/observe", json!({"session": session})).await;
        client.wire.sender.cancel(cancelled).await;
        // Once a delta came, all that was sent before has been read.
        client.wire.receiver.notification("termgate/delta").await;
        home.kill_daemon().await;
        for id in [waiting, observing] {
            let error = client.wire.receiver.answer(id).await.unwrap_err();
            assert_eq!(error["code"], UPSTREAM, "{error}");
            assert_eq!(error["data"]["error_code"], "upstream_restarted");
        }
        client.wire.structured("list_sessions", json!({})).await;
        let last = ends_well(client).await;
        assert!(last.iter().all(|message| message["id"] != cancelled), "{last:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_the_daemon_had_not_read_when_it_died_goes_to_the_next() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client("mcp --allow-write", era).await;
        let stopped = home.daemon().expect("a daemon runs");
        stands_still(stopped).await;
        let creating = client.wire.send_call("create_session", json!({"command": "cat"})).await;
        home.kill_daemon().await;
        structured(&client.wire.answer(creating).await);
        let listed = client.wire.structured("list_sessions", json!({})).await;
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
        ends_well(client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_no_daemon_can_be_reached_requests_are_answered_all_the_same() {
    let home = Home::new();
    let mut other = home.client("mcp", Era::Legacy).await;
    let mut client = home.client("mcp --no-spawn", Era::Legacy).await;
    other.child.kill().await.unwrap();
    home.kill_daemon().await;
    let listing = || json!({"name": "list_sessions", "arguments": {}});
    for _ in 0..2 {
        let error = client.wire.request("tools/call", listing()).await.unwrap_err();
        assert_eq!(error["code"], UPSTREAM, "{error}");
        assert_eq!(error["data"]["error_code"], "upstream_unavailable");
    }
    client.wire.sender.raw(b"{]\n").await;
    let refused = client.wire.receiver.first(|message| message["id"].is_null()).await;
    assert_eq!(refused["error"]["code"], -32700);

    let _daemon = home.spawn("");
    soon("the daemon to be reached", async {
        while client.wire.request("tools/call", listing()).await.is_err() {}
    })
    .await;
    ends_well(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_input_ends_short_calls_are_answered_and_waits_are_not_waited_for() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client("mcp --allow-write", era).await;
        let session = client.wire.start("exec cat").await;
        let exit = json!({"session": session, "exit": true, "timeout_ms": 600_000});
        let waiting = client.wire.send_call("wait_for", exit).await;
        let short = client.wire.send_call("list_sessions", json!({})).await;
        let last = soon("the bridge ends", ends_well(client)).await;
        assert!(last.iter().any(|message| message["id"] == short), "{last:?}");
        assert!(!last.iter().any(|message| message["id"] == waiting), "{last:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_no_daemon_takes_are_answered_as_a_daemon_does() {
    let too_long = vec![b'x'; 1024 * 1024 + 1];
    let beyond_any_daemon = vec![b'x'; 4 * 1024 * 1024 + 1];
    let too_complex = [b"[".repeat(200), b"]".repeat(200)].concat();
    let lines: [(&[u8], i64); 7] = [
        (b"not json", -32700),
        (b"[]", -32600),
        (br#"{"jsonrpc":"2.0","id":9.5,"method":"ping"}"#, -32600),
        (b"\xff\xfe", -32700),
        (&too_complex, -32600),
        (&too_long, -32600),
        (&beyond_any_daemon, -32600),
    ];
    let daemon = TestDaemon::read_only().await;
    let mut direct = daemon.client(Era::Legacy).await;
    let home = Home::new();
    let mut client = home.client("mcp", Era::Legacy).await;
    for (line, code) in lines {
        let mut answers = Vec::new();
        for wire in [&mut direct, &mut client.wire] {
            wire.sender.raw(line).await;
            wire.sender.raw(b"\n").await;
            answers.push(wire.receiver.first(|message| message["error"].is_object()).await);
        }
        assert_eq!(answers[0]["error"]["code"], code);
        if line.len() > 4 * 1024 * 1024 {
            // Each names the limit that it knows.
            for (answer, limit) in answers.iter_mut().zip(["is 1 MiB.", "is 4 MiB."]) {
                let message = answer["error"]["message"].take();
                assert!(message.as_str().unwrap().contains(limit), "{message}");
            }
        }
        assert_eq!(answers[0], answers[1]);
    }
    client.wire.structured("list_sessions", json!({})).await;
    ends_well(client).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_leave_to_start_one_a_bridge_without_a_daemon_ends_with_seven() {
    let home = Home::new();
    let mut forbidden = home.termgate("mcp");
    forbidden.env("TERMGATE_AUTOSTART", "0");
    for mut command in [home.termgate("mcp --no-spawn"), forbidden] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("no daemon is running"), "{said}");
    }
    assert_eq!(home.daemon(), None);
    let (code, ..) = home.outcome("mcp --session any");
    assert_eq!((code, home.daemon()), (7, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_bridge_cannot_promise_at_a_given_socket_is_refused_wherever_the_socket_stands() {
    let home = Home::new();
    for words in ["mcp --allow-write", "mcp --read-only", "new --allow-write"] {
        for line in [format!("--socket /nowhere {words}"), format!("{words} --socket /nowhere")] {
            let (code, _, said) = home.outcome(&line);
            assert_eq!(code, 2, "{line}: {said}");
            assert!(said.contains("cannot be used with"), "{line}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_does_not_start_is_told_with_its_reason_and_its_log() {
    let home = Home::new();
    home.configure("no_such_key = 1\n");
    let (code, out, said) = home.outcome("mcp");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(said.contains("no_such_key"), "{said}");
    let log = home.path("state/termgate/daemon.log");
    assert!(fs::read_to_string(&log).unwrap().contains("no_such_key"));
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_to_one_session_shows_nothing_else() {
    let home = Home::new();
    let mut creator = home.client("mcp --allow-write", Era::Legacy).await;
    let named = json!({"name": "build", "command": "exec cat", "lease": false});
    let created = creator.wire.structured("create_session", named).await;
    let session = created["session"]["id"].clone();
    let other = creator.wire.start("exec cat").await;
    for era in Era::BOTH {
        let mut bound = home.client("mcp --session build", era).await;
        let listed = bound.wire.structured("list_sessions", json!({})).await;
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(bound.wire.structured("read_screen", json!({})).await["session"], session);
        let reading = json!({"session": other});
        assert_eq!(bound.wire.error_code("read_screen", reading).await, "session_not_found");
        ends_well(bound).await;
    }
    let (code, _, said) = home.outcome("mcp --session nothing-like-it");
    assert_eq!(code, 3, "{said}");
    ends_well(creator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_to_a_session_that_the_next_daemon_does_not_have_says_so() {
    for words in ["mcp --session build", "mcp --read-only --session build"] {
        let home = Home::new();
        let (code, _, said) = home.outcome("new --allow-write --name build -- cat");
        assert_eq!(code, 0, "{said}");
        let mut bound = home.client(words, Era::Modern).await;
        bound.wire.structured("read_screen", json!({})).await;
        let (code, _, said) = home.outcome("stop");
        assert_eq!(code, 0, "{said}");
        let mut next = home.start(home.termgate("serve"));
        next.is_ready().await;
        let reading = || json!({"name": "read_screen", "arguments": {}});
        for _ in 0..2 {
            let error = bound.wire.request("tools/call", reading()).await.unwrap_err();
            assert_eq!(error["data"]["error_code"], "session_not_found", "{error}");
        }
        ends_well(bound).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_bridge_never_writes_whatever_the_daemon_allows() {
    let home = Home::new();
    let mut creator = home.client("mcp --allow-write", Era::Modern).await;
    let session = creator.wire.start("exec cat").await;
    for words in ["mcp --read-only", &format!("mcp --read-only --session {session}")] {
        for era in Era::BOTH {
            let mut client = home.client(words, era).await;
            assert!(!client.wire.tools().await.iter().any(|tool| tool == "send_text"));
            for (tool, arguments) in [
                ("create_session", json!({})),
                ("acquire_lease", json!({"session": session})),
                ("send_text", json!({"session": session, "text": "x"})),
                ("manage_session", json!({"session": session, "action": "kill"})),
            ] {
                assert_eq!(client.wire.error_code(tool, arguments).await, "read_only", "{tool}");
            }
            let screen = client.wire.structured("read_screen", json!({"session": session})).await;
            assert_eq!(screen["session"], session.as_str());
            ends_well(client).await;
        }
    }
    ends_well(creator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_start_in_the_directory_and_with_the_locale_of_the_bridge() {
    for era in Era::BOTH {
        let home = Home::new();
        let place = home.path("place");
        fs::create_dir(&place).unwrap();
        // Another bridge has started the daemon elsewhere, with other variables.
        let starter = home.client("mcp --allow-write", era).await;
        let mut command = home.termgate("mcp");
        command.current_dir(&place).env("LC_ALL", "C.UTF-8").env("SECRET", "x");
        command.env("SSH_AUTH_SOCK", "/run/agent");
        let (child, stream) = piped(command);
        let mut client = Piped { child, wire: Wire::over(stream, era) };
        client.wire.greet().await;
        let file = home.path("seen");
        let line = format!("echo $PWD $LC_ALL $SSH_AUTH_SOCK $SECRET. > {}", file.display());
        client.wire.start(&line).await;
        let expected = format!("{} C.UTF-8 /run/agent .", place.display());
        assert_eq!(line_in(&file).await, expected);
        ends_well(client).await;
        ends_well(starter).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_that_is_told_to_end_ends_and_leaves_the_daemon_to_others() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let home = Home::new();
        let mut other = home.client("mcp", Era::Legacy).await;
        let mut client = home.client("mcp", Era::Modern).await;
        client.wire.structured("list_sessions", json!({})).await;
        assert_eq!(client.signalled(signal).await.code(), Some(0));
        other.wire.structured("list_sessions", json!({})).await;
        ends_well(other).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_starts_the_daemon_before_its_client_says_a_word() {
    let home = Home::new();
    let client = home.silent("mcp", Era::Legacy);
    until("a daemon", || home.daemon().is_some()).await;
    ends_well(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_librarys_own_client_speaks_through_the_bridge_in_both_eras() {
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for mode in [ClientLifecycleMode::Initialize, modern] {
        let home = Home::new();
        let (mut child, stream) = piped(home.termgate("mcp --allow-write"));
        let client = soon("the greeting", ().serve_with_lifecycle(stream, mode)).await.unwrap();
        let tools = soon("the tools", client.list_all_tools()).await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "create_session"));
        let arguments = json!({"command": "exec cat"}).as_object().cloned().unwrap();
        let call = CallToolRequestParams::new("create_session").with_arguments(arguments);
        let created = soon("a session", client.call_tool(call.clone())).await.unwrap();
        assert_ne!(created.is_error, Some(true));
        home.kill_daemon().await;
        let again = soon("another session", client.call_tool(call)).await.unwrap();
        assert_ne!(again.is_error, Some(true));
        client.cancel().await.unwrap();
        assert_eq!(soon("the end", child.wait()).await.unwrap().code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_ended_under_a_bridge_is_collected() {
    let home = Home::new();
    let client = home.client("mcp", Era::Legacy).await;
    let daemon = home.daemon().expect("a daemon runs");
    kill(Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
    let collected = || kill(Pid::from_raw(daemon), None).is_err();
    until("the daemon's process to be collected", collected).await;
    ends_well(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_large_is_answered_at_once_under_its_id() {
    for era in Era::BOTH {
        let home = Home::new();
        let mut client = home.client("mcp --allow-write", era).await;
        let session = client.wire.start("exec cat").await;
        for bytes in [1_500_000, 5_000_000] {
            let text = json!({"session": session, "text": "x".repeat(bytes)});
            let call = json!({"name": "send_text", "arguments": text});
            let refused = client.wire.request("tools/call", call).await.unwrap_err();
            assert_eq!(refused["data"]["error_code"], "too_large", "{refused}");
        }
        let next = json!({"session": session, "exit": true, "timeout_ms": 0});
        assert_eq!(client.wire.structured("wait_for", next).await["outcome"], "timeout");
        ends_well(client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_daemon_ends_the_next_one_is_waited_for() {
    let home = Home::new();
    let mut client = home.client("mcp --allow-write", Era::Modern).await;
    let stubborn = "trap '' HUP TERM; echo armed; while :; do sleep 1; done";
    let session = client.wire.start(stubborn).await;
    client.wire.wait_for(json!({"session": session, "text": "armed", "since": 0})).await;
    ends_well(client).await;
    let daemon = home.daemon().expect("a daemon runs");
    kill(Pid::from_raw(daemon), Signal::SIGTERM).unwrap();
    for socket in ["gateway.sock", "operator.sock"] {
        let closed = || UnixStream::connect(home.runtime(socket)).is_err();
        until("its sockets to be closed", closed).await;
    }
    // Its session takes a while to end, and the lock is its own until then.
    let (code, _, said) = home.outcome("new --allow-write --name next -- cat");
    assert_eq!(code, 0, "{said}");
    let mut next = home.client("mcp", Era::Legacy).await;
    let listed = next.wire.structured("list_sessions", json!({})).await;
    assert_eq!(listed["sessions"][0]["name"], "next");
    assert_ne!(home.daemon(), Some(daemon));
    ends_well(next).await;
}
