//! `run` as a call: one after the other, beside others, repeated, given up, and longer than a lease.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};
use crate::daemon::shells::{ALL, POSIX, Shell, with_each};
use crate::harness::waiting::soon;

impl Shell {
    /// Runs a command, cancels the call after as many others, and waits for the end of the command.
    async fn run_and_cancel(&mut self, run: Value, calls_between: usize) {
        let running = self.client.send_call("run", run).await;
        // Any call gives the session a little time.
        for _ in 0..calls_between {
            self.call("read_screen", json!({})).await;
        }
        self.client.sender.cancel(running).await;
        let known = self.call("read_commands", json!({"limit": 1})).await;
        let id = known["commands"][0]["command_id"].as_u64().unwrap();
        // Whoever asks for it has the kernel asked.
        let done = json!({"command_done": true, "timeout_ms": 1});
        while self.record(id).await["commands"][0]["status"] == "running" {
            self.call("wait_for", done.clone()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_commands_one_after_the_other_each_has_its_own_output_and_code() {
    with_each(&["bash", "zsh"], async |shell| {
        for number in 0..200 {
            let code = number % 3;
            let ended = shell
                .must(&format!("echo {number}; (exit {code})"), code, &number.to_string())
                .await;
            assert_eq!(ended.number("command_id"), number as u64 + 1);
        }
    })
    .await;
    with_each(&["fish", "dash"], async |shell| {
        for number in 0..40 {
            let command = format!("echo {number}; sh -c 'exit {number}'");
            shell.must(&command, number, &number.to_string()).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_command_runs_another_is_refused_and_nothing_of_it_is_typed() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let ended = shell.run_with("sleep 300", json!({"timeout_ms": 100})).await;
        assert_eq!(ended.status(), "timeout", "{}: {}", shell.name, ended.0);
        let other = json!({"session": shell.session, "command": "echo intr''uder"});
        assert_eq!(shell.client.error_code("run", other).await, "busy");
        shell.interrupt(ended.number("command_id")).await;
        shell.must("echo fine", 0, "fine").await;
        let screen = shell.call("read_screen", json!({})).await;
        assert!(!screen.to_string().contains("intr"), "{}: {screen}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_takes_too_long_goes_on_and_its_end_can_be_waited_for() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let go = format!("go-{}", shell.name);
        let command = "echo begun; while not_yet; sleep 0.02; end; echo done; sh -c 'exit 3'";
        let waiting = match shell.name {
            "fish" => command.replace("while not_yet;", &format!("while not test -e {go};")),
            _ => command
                .replace("while not_yet;", &format!("while ! test -e {go}; do"))
                .replace("end;", "done;"),
        };
        let ended = shell.run_with(&waiting, json!({"timeout_ms": 200})).await;
        assert_eq!(
            (ended.status(), &ended.0["exit_code"]),
            ("timeout", &Value::Null),
            "{}",
            ended.0
        );
        // A slow shell has not even begun by then.
        assert!(["", "begun"].contains(&ended.output()), "{}", ended.0);
        let home = shell.call("list_sessions", json!({})).await["sessions"][0]["cwd"].clone();
        std::fs::write(format!("{}/{go}", home.as_str().unwrap()), "").unwrap();
        let mark = ended.number("watermark");
        let waited = shell.wait_for(json!({"command_done": true, "since": mark})).await;
        assert_eq!(waited["outcome"], "command_done", "{waited}");
        assert_eq!(waited["command"]["command_id"], ended.0["command_id"], "{waited}");
        let record = shell.record(ended.number("command_id")).await;
        let code = json!(3);
        assert_eq!(record["commands"][0]["exit_code"], code, "{}: {record}", shell.name);
        assert_eq!(record["output"], "begun\ndone", "{}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_interrupts_its_command_when_that_was_asked_for_and_never_otherwise() {
    with_each(&ALL, async |shell| {
        for (on_cancel, goes_on) in [(json!("interrupt"), false), (Value::Null, true)] {
            let mut call = json!({"session": shell.session, "command": "sh -c 'echo be''gun; exec sleep 300'"});
            if !on_cancel.is_null() {
                call["on_cancel"] = on_cancel;
            }
            let before = shell.call("read_commands", json!({})).await["watermark"].clone();
            let running = shell.client.send_call("run", call).await;
            shell.wait_for(json!({"text": "begun", "since": before})).await;
            shell.client.sender.cancel(running).await;
            let newest = shell.call("read_commands", json!({"limit": 1})).await;
            let id = newest["commands"][0]["command_id"].as_u64().unwrap();
            if goes_on {
                let seen = shell.call("wait_for", json!({"command_done": true, "timeout_ms": 300})).await;
                assert_eq!(seen["outcome"], "timeout", "{}: {seen}", shell.name);
                shell.interrupt(id).await;
            } else {
                while shell.record(id).await["commands"][0]["status"] == "running" {}
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_interrupts_its_command_when_that_was_asked_for() {
    let daemon = TestDaemon::writable().await;
    let mut observer = daemon.client(Era::Legacy).await;
    let mut shell = Shell::start(&daemon, "bash").await;
    let session = shell.session.clone();
    shell
        .client
        .send_call(
            "run",
            json!({
                "session": session, "command": "echo be''gun; sleep 300", "on_cancel": "interrupt",
            }),
        )
        .await;
    let begun = json!({"session": session, "text": "begun", "since": 0});
    observer.wait_for(begun).await;
    drop(shell);
    let ended = json!({"session": session, "command_done": true, "since": 0});
    let ended = observer.wait_for(ended).await;
    assert_eq!(ended["command"]["exit_code"], 130, "{ended}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_a_command_interrupts_it_only_where_it_may_write() {
    let daemon = TestDaemon::writable().await;
    let mut shell = Shell::start(&daemon, "bash").await;
    shell.must("true", 0, "").await;
    let lease = shell.client.acquire(&shell.session).await;
    let line = r#"sh -c 'trap "echo hit; exit 3" INT; echo be""gun; while :; do sleep 0.05; done'"#;
    let ended = shell.run_with(line, json!({"timeout_ms": 1})).await;
    assert_eq!(ended.0["status"], "timeout", "{}", ended.0);
    shell.wait_for(json!({"text": "begun", "since": 0})).await;
    let mut operator = daemon.operator().await;
    let follow = json!({
        "session": shell.session, "id": ended.number("command_id"), "on_cancel": "interrupt",
    });
    let mut look = follow.clone();
    look["timeout_ms"] = json!(0);
    let still = json!({"command_done": true, "timeout_ms": 300});

    let told = operator.structured("follow_command", look.clone()).await;
    assert!(told["warning"].as_str().unwrap().contains("held by"), "{told}");
    hang_up(&daemon, &mut operator, &follow, async || {}).await;
    let seen = shell.call("wait_for", still.clone()).await;
    assert_eq!(seen["outcome"], "timeout", "past the lease of another: {seen}");

    let held = json!({"lease_id": lease["lease_id"]});
    shell.client.structured("release_lease", held).await;
    let told = operator.structured("follow_command", look.clone()).await;
    assert_eq!(told["warning"], Value::Null, "{told}");
    hang_up(&daemon, &mut operator, &follow, async || {
        let off = json!({"state": "off"});
        daemon.operator().await.structured("set_write", off).await;
    })
    .await;
    let told = operator.structured("follow_command", look).await;
    assert!(told["warning"].as_str().unwrap().contains("read-only"), "{told}");
    hang_up(&daemon, &mut operator, &follow, async || {}).await;
    let seen = shell.call("wait_for", still).await;
    assert_eq!(seen["outcome"], "timeout", "while writing is off: {seen}");

    operator.structured("set_write", json!({"state": "on"})).await;
    hang_up(&daemon, &mut operator, &follow, async || {}).await;
    let since = ended.number("watermark");
    let done = shell.wait_for(json!({"command_done": true, "since": since})).await;
    assert_eq!(done["command"]["exit_code"], 3, "{done}");
    daemon.stop().await;
}

/// Follows a command, hangs up after something else was done, and waits until that is known.
async fn hang_up(
    daemon: &TestDaemon,
    operator: &mut Wire,
    follow: &Value,
    meanwhile: impl AsyncFnOnce(),
) {
    let before = connections(operator).await;
    let mut follower = daemon.operator().await;
    follower.send_call("follow_command", follow.clone()).await;
    // A connection's calls are taken up in order.
    follower.structured("list_sessions", json!({})).await;
    meanwhile().await;
    drop(follower);
    soon("the end of its connection", async { while connections(operator).await != before {} })
        .await;
}

async fn connections(operator: &mut Wire) -> Value {
    let uri = json!({"uri": "termgate://daemon"});
    let read = operator.request("resources/read", uri).await.unwrap();
    let daemon: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    daemon["connections"]["open"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_at_once_leaves_its_command_whole_or_does_not_send_it() {
    with_each(&POSIX, async |shell| {
        shell.must("true", 0, "").await;
        let here = format!("cat > /dev/null <<'EOF'\n{}EOF", "y\n".repeat(10_000));
        for round in 0..40 {
            let run = json!({"session": shell.session, "command": here});
            shell.run_and_cancel(run, round % 4).await;
        }
        let history = shell.call("read_history", json!({"count": 500})).await;
        let text = history["text"].as_str().unwrap();
        assert!(!text.contains("No such") && !text.contains("no such"), "{}: {text}", shell.name);
        assert!(!text.contains("not found"), "{}: {text}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_at_once_interrupts_what_it_sent_when_that_was_asked_for() {
    with_each(&POSIX, async |shell| {
        shell.must("true", 0, "").await;
        for round in 0..24 {
            let run = json!({
                "session": shell.session, "command": "sleep 300", "on_cancel": "interrupt",
            });
            shell.run_and_cancel(run, round % 4).await;
        }
        // The last may have been sent so late that it is not interrupted yet.
        let fine = json!({"session": shell.session, "command": "echo fine"});
        let ended = soon("the last to be interrupted", async {
            loop {
                let ran = shell.client.call("run", fine.clone()).await;
                if ran["isError"] != true {
                    return structured(&ran);
                }
                assert_eq!(error_code(&ran), "busy", "{ran}");
                shell.call("wait_for", json!({"command_done": true, "timeout_ms": 100})).await;
            }
        })
        .await;
        // Nothing of what was interrupted is left on the line.
        assert_eq!((&ended["output"], &ended["status"]), (&json!("fine"), &json!("completed")));
        let known = shell.call("read_commands", json!({})).await;
        let commands = known["commands"].as_array().unwrap();
        let whole = ["true", "sleep 300", "echo fine"];
        let is_whole = |it: &Value| whole.contains(&it["command"].as_str().unwrap());
        assert!(commands.iter().all(is_whole), "{}: {known}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_lasts_as_long_as_the_command_that_was_sent_under_it() {
    let daemon = TestDaemon::writable().await;
    for name in ["bash", "dash"] {
        let mut shell = Shell::start(&daemon, name).await;
        let held = shell.call("list_sessions", json!({})).await["sessions"][0]["lease"].clone();
        let released =
            json!({"lease_id": shell.call("acquire_lease", json!({})).await["lease_id"]});
        shell.client.structured("release_lease", released).await;
        let lease = shell.call("acquire_lease", json!({"ttl_ms": 1_000})).await;
        assert_ne!(held, Value::Null);
        let mut other = daemon.client(Era::Legacy).await;
        let command = json!({"session": shell.session, "command": "sleep 3; echo mine", "lease_id": lease["lease_id"]});
        let running = shell.client.send_call("run", command).await;
        let taking = json!({"session": shell.session, "wait_ms": 2_000});
        assert_eq!(other.error_code("acquire_lease", taking).await, "lease_held", "{name}");
        let ended = structured(&shell.client.answer(running).await);
        assert_eq!(
            (&ended["status"], &ended["output"]),
            (&json!("completed"), &json!("mine")),
            "{ended}"
        );
        // Nothing keeps it any more, so the other gets it.
        other.acquire(&shell.session).await;
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_repeated_with_its_key_runs_once_and_answers_the_same() {
    with_each(&ALL, async |shell| {
        let keyed = json!({"idempotency_key": "one"});
        let command = "echo x >> ran; echo out; sh -c 'exit 2'";
        let first = shell.run_with(command, keyed.clone()).await;
        let second = shell.run_with(command, keyed).await;
        for told in ["command_id", "status", "exit_code", "evidence", "output"] {
            assert_eq!(first.0[told], second.0[told], "{}: {}", shell.name, second.0);
        }
        shell.must("cat ran; rm ran", 0, "x").await;
        // So does one that is repeated while the command still runs.
        let call = json!({"session": shell.session, "idempotency_key": "two", "command": "sh -c 'echo x >> ran; sleep 1; echo out'"});
        let first = shell.client.send_call("run", call.clone()).await;
        let second = shell.client.send_call("run", call).await;
        let first = structured(&shell.client.answer(first).await);
        let second = structured(&shell.client.answer(second).await);
        for told in ["command_id", "status", "exit_code", "output"] {
            assert_eq!(first[told], second[told], "{}: {second}", shell.name);
        }
        shell.must("cat ran; rm ran", 0, "x").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_is_no_command_is_refused() {
    with_each(&["bash"], async |shell| {
        for text in ["", "  ", "\n\n", "echo \u{3}", "echo \u{1b}[A"] {
            let run = json!({"session": shell.session, "command": text});
            assert_eq!(shell.client.error_code("run", run).await, "invalid_argument", "{text:?}");
        }
        shell.must("true", 0, "").await;
    })
    .await;
}
