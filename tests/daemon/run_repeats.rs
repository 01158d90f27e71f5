//! `run` that is repeated with its idempotency key: it follows the very command of the first call.

use serde_json::{Value, json};

use crate::daemon::harness::structured;
use crate::daemon::shells::{ALL, with_each};

/// What must be the same of every answer about one command.
const SAME: [&str; 5] = ["command_id", "status", "exit_code", "evidence", "output"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_follows_its_own_command_whatever_ran_since() {
    with_each(&ALL, async |shell| {
        shell.run("true").await;
        let keyed = json!({"idempotency_key": "one"});
        let command = "echo x >> ran; wc -l < ran | tr -d ' '";
        let first = shell.run_with(command, keyed.clone()).await;
        let other = shell.run(command).await;
        assert_eq!((first.output(), other.output()), ("1", "2"), "{}", shell.name);
        let again = shell.run_with(command, keyed).await;
        for told in SAME {
            assert_eq!(first.0[told], again.0[told], "{}: {}", shell.name, again.0);
        }
        shell.must("wc -l < ran | tr -d ' '; rm ran", 0, "2").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_of_a_command_that_waits_for_input_says_so_at_once() {
    with_each(&ALL, async |shell| {
        shell.run("true").await;
        let asking = json!({"idempotency_key": "asks", "timeout_ms": 20_000});
        let command = "sh -c 'printf \"Name: \"; read name; echo hello $name'";
        let first = shell.run_with(command, asking.clone()).await;
        let again = shell.run_with(command, asking.clone()).await;
        for told in ["command_id", "status", "prompt"] {
            assert_eq!(first.0[told], again.0[told], "{}: {}", shell.name, again.0);
        }
        assert_eq!(again.status(), "needs_input", "{}: {}", shell.name, again.0);
        shell.call("send_text", json!({"text": "you", "enter": true})).await;
        let ended = shell.run_with(command, asking).await;
        assert_eq!(ended.status(), "completed", "{}: {}", shell.name, ended.0);
        assert!(ended.output().ends_with("hello you"), "{}: {}", shell.name, ended.0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_while_the_command_runs_waits_for_the_same_end() {
    with_each(&ALL, async |shell| {
        shell.run("true").await;
        let call = json!({
            "session": shell.session, "idempotency_key": "two",
            "command": "sh -c 'echo x >> ran; sleep 1; wc -l < ran | tr -d \" \"'",
        });
        let mut sent = Vec::new();
        for _ in 0..4 {
            sent.push(shell.client.send_call("run", call.clone()).await);
        }
        let mut told: Vec<Value> = Vec::new();
        for call in sent {
            told.push(structured(&shell.client.answer(call).await));
        }
        for name in SAME {
            assert!(told.iter().all(|it| it[name] == told[0][name]), "{}: {told:?}", shell.name);
        }
        assert_eq!(told[0]["output"], "1", "{}: {told:?}", shell.name);
        shell.must("rm ran", 0, "").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_of_a_command_that_ended_its_shell_tells_that_end() {
    with_each(&["bash"], async |shell| {
        shell.run("true").await;
        let keyed = json!({"idempotency_key": "last"});
        let first = shell.run_with("exit 3", keyed.clone()).await;
        let again = shell.run_with("exit 3", keyed).await;
        assert_eq!((first.status(), &first.0["exit_code"]), ("exited", &json!(3)), "{}", first.0);
        for told in SAME {
            assert_eq!(first.0[told], again.0[told], "{}", again.0);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_of_a_command_that_is_forgotten_says_so_and_runs_nothing() {
    with_each(&["bash"], async |shell| {
        let run = json!({
            "session": shell.session, "command": "echo x >> ran", "idempotency_key": "old",
        });
        shell.client.structured("run", run.clone()).await;
        let typed = format!("{}echo al''l\n", "true\n".repeat(260));
        shell.call("send_text", json!({"text": typed, "paste": "never"})).await;
        shell.wait_for(json!({"text": "all", "since": 0})).await;
        let answer = shell.client.call("run", run).await;
        let told = &answer["structuredContent"];
        assert_eq!(told["error_code"], "invalid_argument", "{answer}");
        assert_eq!(told["details"]["parameter"], "idempotency_key", "{answer}");
        shell.must("cat ran; rm ran", 0, "x").await;
    })
    .await;
}
