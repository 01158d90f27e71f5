//! A call that must be approved waits for a person, passes once, and not at another state of its terminal.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::policy::{daemon_with, journal, refused, shell, take_lease};
use crate::daemon::tokens::owner;
use crate::harness::home::Home;
use crate::harness::waiting::until;

const ASK_BEFORE_TOUCH: &str = r#"
    unknown = "allow"

    [[rule]]
    name = "ask-touch"
    effect = "ask"
    reason = "it makes files"
    command = { program = "touch" }

    [[rule]]
    name = "ask-keys"
    effect = "ask"
    tool = "send_*"
"#;

async fn waiting(operator: &mut Wire) -> Vec<Value> {
    let list = operator.structured("list_approvals", json!({})).await;
    list["approvals"].as_array().unwrap().clone()
}

/// Waits until one call waits, and gives back its id.
async fn one_waits(operator: &mut Wire) -> Value {
    loop {
        if let [call] = waiting(operator).await.as_slice() {
            return call["approval_id"].clone();
        }
        tokio::task::yield_now().await;
    }
}

/// A call of `run` that answers at once.
fn at_once(session: &str, command: &str) -> Value {
    json!({"session": session, "command": command, "timeout_ms": 1})
}

struct Place {
    daemon: TestDaemon,
    client: Wire,
    operator: Wire,
    session: String,
}

impl Place {
    async fn new() -> Self {
        let daemon = daemon_with(ASK_BEFORE_TOUCH).await;
        let mut client = daemon.client(Era::Modern).await;
        let session = shell(&mut client).await;
        let ready = json!({"session": session, "command": "true"});
        client.structured("run", ready).await;
        let operator = daemon.operator().await;
        Self { daemon, client, operator, session }
    }

    /// Makes a call that is to be approved, and gives back the id of its approval.
    async fn asks(&mut self, command: &str) -> Value {
        let arguments = at_once(&self.session, command);
        let error = refused(&mut self.client, "run", arguments).await;
        assert_eq!(error["error_code"], "approval_required", "{error}");
        error["details"]["approval_id"].clone()
    }

    async fn approve(&mut self, id: &Value) {
        let approved = self.operator.structured("approve", json!({"approval_id": id})).await;
        assert_eq!(approved["granted"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_until_an_operator_approves_it_and_then_runs_once() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let command = format!("touch {}", made.display());
    let call = json!({"session": place.session, "command": command});
    let running = place.client.send_call("run", call).await;
    let id = one_waits(&mut place.operator).await;
    assert!(!made.exists());
    let listed = &waiting(&mut place.operator).await[0];
    assert_eq!((&listed["what"], &listed["rule"]), (&json!(command), &json!("ask-touch")));
    place.approve(&id).await;
    let ran = structured(&place.client.answer(running).await);
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(made.exists());
    // The same call again asks again.
    fs::remove_file(&made).unwrap();
    let again = place.asks(&command).await;
    assert_ne!(again, id);
    assert!(!made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_may_not_wait_is_told_at_once_what_to_do_and_passes_when_it_is_made_again() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let command = format!("touch {}", made.display());
    let arguments = at_once(&place.session, &command);
    let error = refused(&mut place.client, "run", arguments).await;
    let details = &error["details"];
    let id = details["approval_id"].as_str().unwrap();
    assert!(details["expires_in_ms"].as_u64().unwrap() > 500_000, "{error}");
    let expected = format!("`termgate approve {id}`");
    assert!(error["hint"].as_str().unwrap().contains(&expected), "{error}");
    assert_eq!(error["message"], "the rule `ask-touch` wants this to be approved: it makes files");
    // It is one approval, however often the call is made.
    assert_eq!(place.asks(&command).await, *id);
    place.approve(&json!(id)).await;
    let call = json!({"session": place.session, "command": command});
    let ran = place.client.structured("run", call).await;
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_racing_uses_of_one_approval_one_passes() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let command = format!("touch {}; echo x >> {0}", made.display());
    // One principal on two connections would be a token; one connection sends two calls at once instead.
    let id = place.asks(&command).await;
    place.approve(&id).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        calls.push(place.client.send_call("run", at_once(&place.session, &command)).await);
    }
    let mut passed = 0;
    for call in calls {
        let answer = place.client.answer(call).await;
        passed += usize::from(answer["structuredContent"]["error_code"] != "approval_required");
    }
    assert_eq!(passed, 1);
    until("the command to run", || fs::read_to_string(&made).is_ok_and(|it| it == "x\n")).await;
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_stale_once_another_command_ran_or_the_directory_changed() {
    let mut place = Place::new().await;
    for change in ["true", "cd /"] {
        let id = place.asks("touch x").await;
        place.approve(&id).await;
        let run = json!({"session": place.session, "command": change});
        place.client.structured("run", run).await;
        let call = at_once(&place.session, "touch x");
        let error = refused(&mut place.client, "run", call).await;
        assert_eq!(error["error_code"], "approval_stale", "{change}: {error}");
    }
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_typed_is_stale_once_the_screen_has_changed() {
    let mut place = Place::new().await;
    let keys = json!({"session": place.session, "keys": ["Enter"]});
    let error = refused(&mut place.client, "send_keys", keys.clone()).await;
    let id = error["details"]["approval_id"].clone();
    place.approve(&id).await;
    let run = json!({"session": place.session, "command": "true"});
    place.client.structured("run", run).await;
    let error = refused(&mut place.client, "send_keys", keys.clone()).await;
    assert_eq!(error["error_code"], "approval_stale", "{error}");
    // Whoever approves it too late is told, and so is the caller that waits.
    let meta = json!({"dev.termgate/wait_ms": 60_000});
    let waits = json!({"name": "send_keys", "arguments": &keys, "_meta": meta});
    let sending = place.client.send("tools/call", waits).await;
    let id = one_waits(&mut place.operator).await;
    let run = json!({"session": place.session, "command": "true"});
    place.client.structured("run", run).await;
    let late = refused(&mut place.operator, "approve", json!({"approval_id": id})).await;
    assert!(late["message"].as_str().unwrap().contains("the terminal has changed"), "{late}");
    let error = &place.client.answer(sending).await["structuredContent"];
    assert_eq!(error["error_code"], "approval_stale", "{error}");
    let id = {
        let error = refused(&mut place.client, "send_keys", keys.clone()).await;
        error["details"]["approval_id"].clone()
    };
    place.approve(&id).await;
    place.client.structured("send_keys", keys).await;
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_decides_a_call_is_recorded_with_the_session_of_the_call() {
    let mut place = Place::new().await;
    let id = place.asks("touch x").await;
    place.approve(&id).await;
    let id = place.asks("touch y").await;
    place.operator.structured("deny", json!({"approval_id": id})).await;
    let unknown = json!({"approval_id": "00000000"});
    refused(&mut place.operator, "approve", unknown).await;
    let records = journal(&place.daemon);
    let about = |act: &str| {
        let decides = |record: &&Value| record["kind"] == "intent" && record["act"] == act;
        records.iter().filter(decides).map(|it| it["session"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(about("approve"), [json!(place.session), Value::Null]);
    assert_eq!(about("deny"), [json!(place.session)]);
    // What was asked about is recorded like what is denied.
    let asked = records.iter().filter(|record| record["code"] == "approval_required");
    let asked: Vec<_> = asked.map(|record| &record["command"]).collect();
    assert_eq!(asked, ["touch x", "touch y"]);
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_call_is_told_by_whom_and_is_not_asked_about_again() {
    let mut place = Place::new().await;
    let call = json!({"session": place.session, "command": "touch x"});
    let running = place.client.send_call("run", call.clone()).await;
    let id = one_waits(&mut place.operator).await;
    place.operator.structured("deny", json!({"approval_id": id})).await;
    // Other blanks and quotes are the same command.
    let rewritten = json!({"session": place.session, "command": "  touch   'x' "});
    for answer in [
        place.client.answer(running).await,
        place.client.call("run", call).await,
        place.client.call("run", rewritten).await,
    ] {
        let error = &answer["structuredContent"];
        assert_eq!(error["error_code"], "policy_denied", "{error}");
        assert!(error["message"].as_str().unwrap().ends_with("denied this"), "{error}");
        assert!(error["retry_after_ms"].as_u64().unwrap() > 0);
    }
    assert!(waiting(&mut place.operator).await.is_empty());
    place.asks("touch y").await;
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_of_an_approved_call_can_pass_for_a_time() {
    let mut place = Place::new().await;
    let (one, other) = (place.daemon.file("one"), place.daemon.file("other"));
    let id = place.asks(&format!("touch {}", one.display())).await;
    let approve = json!({"approval_id": id, "for_ms": 60_000});
    place.operator.structured("approve", approve).await;
    for file in [&one, &other] {
        let call =
            json!({"session": place.session, "command": format!("touch {}", file.display())});
        assert_eq!(place.client.structured("run", call).await["exit_code"], 0);
        assert!(file.exists());
    }
    let error = refused(&mut place.client, "run", at_once(&place.session, "touch x; rm x")).await;
    assert_eq!(error["error_code"], "approval_required");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_but_an_operator_sees_or_decides_approvals() {
    let mut place = Place::new().await;
    let id = place.asks("touch x").await;
    let mut other = place.daemon.client(Era::Legacy).await;
    for tool in ["list_approvals", "approve", "deny", "explain_decision"] {
        let answer =
            other.request("tools/call", json!({"name": tool, "arguments": {"approval_id": id}}));
        assert!(answer.await.is_err(), "{tool} does not exist there");
    }
    let read = other.request("resources/read", json!({"uri": "termgate://approvals"})).await;
    assert!(read.is_err());
    let subscribed = other.request("resources/subscribe", json!({"uri": "termgate://approvals"}));
    assert!(subscribed.await.is_err());
    // A program inside of the session is no operator, however it is started.
    let (script, said) = (place.daemon.file("connect.py"), place.daemon.file("said"));
    let operator = place.daemon.paths.operator();
    let connect = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({operator:?})\n\
         said = s.recv(99)\nopen({said:?}, 'w').write('%d bytes' % len(said))\n"
    );
    fs::write(&script, connect).unwrap();
    let python = format!("python3 {}", script.display());
    for line in [
        python.clone(),
        format!("setsid {python}"),
        format!("(setsid sh -c '{python} & true' &)"),
        format!("script -qc '{python}' /dev/null"),
    ] {
        let run = json!({"session": place.session, "command": line});
        place.client.structured("run", run).await;
        let hung_up = || fs::read_to_string(&said).is_ok_and(|said| said == "0 bytes");
        until("the daemon to hang up", hung_up).await;
        fs::remove_file(&said).unwrap();
    }
    // Nobody has decided it, though it is stale by now.
    let late = refused(&mut place.operator, "approve", json!({"approval_id": id})).await;
    assert!(late["message"].as_str().unwrap().contains("the terminal has changed"), "{late}");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_asked_for_goes_with_it() {
    let mut place = Place::new().await;
    place.asks("touch x").await;
    drop(place.client);
    let mut operator = place.operator;
    while !waiting(&mut operator).await.is_empty() {
        tokio::task::yield_now().await;
    }
    place.daemon.stop_by(operator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_is_told_when_a_call_waits_and_when_it_was_decided() {
    let mut place = Place::new().await;
    let uri = json!({"uri": "termgate://approvals"});
    place.operator.request("resources/subscribe", uri.clone()).await.unwrap();
    let id = place.asks("touch x").await;
    let told = "notifications/resources/updated";
    assert_eq!(place.operator.receiver.notification(told).await, uri);
    let read = place.operator.request("resources/read", uri).await.unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    let list: Value = serde_json::from_str(text).unwrap();
    assert_eq!(list["approvals"][0]["approval_id"], id);
    place.approve(&id).await;
    place.operator.receiver.notification(told).await;
    let events = place.operator.structured("list_events", json!({"kind": "approval"})).await;
    let kinds: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["approval_asked", "approval_granted"]);
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_was_of_no_use_can_be_used_again() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let command = format!("touch {}", made.display());
    let id = place.asks(&command).await;
    place.approve(&id).await;
    // The call is refused by the session, since its lease is not one.
    let wrong = json!({
        "session": place.session,
        "command": command,
        "lease_id": "00000000-0000-4000-8000-000000000000",
    });
    let error = refused(&mut place.client, "run", wrong).await;
    assert!(error["error_code"].as_str().unwrap().starts_with("lease"), "{error}");
    let call = json!({"session": place.session, "command": command});
    assert_eq!(place.client.structured("run", call).await["exit_code"], 0);
    assert!(made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_asks_nobody() {
    let mut place = Place::new().await;
    let arguments = json!({"session": place.session, "text": "x", "dry_run": true});
    let error = refused(&mut place.client, "send_text", arguments).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    assert_eq!(error["details"]["approval_id"], Value::Null);
    assert!(waiting(&mut place.operator).await.is_empty());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_made_again_elsewhere_needs_another_approval() {
    let mut place = Place::new().await;
    let first = place.asks("touch x").await;
    let run = json!({"session": place.session, "command": "cd /"});
    place.client.structured("run", run).await;
    let second = place.asks("touch x").await;
    assert_ne!(first, second);
    let refused = place.operator.error_code("approve", json!({"approval_id": first})).await;
    assert_eq!(refused, "invalid_argument");
    assert_eq!(waiting(&mut place.operator).await[0]["directory"], "/");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_waits_for_nobody() {
    for is_made_again in [false, true] {
        let mut place = Place::new().await;
        if is_made_again {
            place.asks("touch x").await;
        }
        let call = json!({"session": place.session, "command": "touch x"});
        let running = place.client.send_call("run", call).await;
        let id = one_waits(&mut place.operator).await;
        // The answer to another call shows that this one has come.
        place.client.structured("list_sessions", json!({})).await;
        place.client.sender.cancel(running).await;
        while !waiting(&mut place.operator).await.is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = place.operator.error_code("approve", json!({"approval_id": id})).await;
        assert_eq!(refused, "invalid_argument");
        place.daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_equal_calls_that_wait_one_approval_lets_one_pass() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let command = format!("touch {}; echo x >> {0}", made.display());
    let call = json!({"session": place.session, "command": command});
    let calls = [
        place.client.send_call("run", call.clone()).await,
        place.client.send_call("run", call).await,
    ];
    let id = one_waits(&mut place.operator).await;
    place.approve(&id).await;
    until("one to run", || fs::read_to_string(&made).is_ok_and(|it| it == "x\n")).await;
    // The other one asks anew, by another id.
    let other = one_waits(&mut place.operator).await;
    assert_ne!(other, id);
    place.operator.structured("deny", json!({"approval_id": other})).await;
    let mut outcomes = Vec::new();
    for call in calls {
        let answer = place.client.answer(call).await;
        outcomes.push(answer["isError"] == true);
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true]);
    assert_eq!(fs::read_to_string(&made).unwrap(), "x\n");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_refuses_is_asked_of_nobody_and_texts_are_read_as_the_tool_reads_them() {
    let mut place = Place::new().await;
    let wrong = json!({"session": place.session, "command": "touch x", "nonsense": 1});
    assert_eq!(place.client.error_code("run", wrong).await, "invalid_argument");
    assert!(waiting(&mut place.operator).await.is_empty());
    let quoted = json!({"session": place.session, "command": "touch x", "timeout_ms": "1"});
    let error = refused(&mut place.client, "run", quoted).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    place.daemon.stop().await;
}

#[tokio::test]
async fn an_approval_ends_with_its_daemon_before_it_is_used() {
    let home = Home::new();
    let rules = home.configure("").with_file_name("policy.toml");
    fs::write(rules, ASK_BEFORE_TOUCH).unwrap();
    let token = home.path("ci.token");
    home.printed(&format!("token new ci --out {}", token.display()));
    let secret = fs::read_to_string(&token).unwrap().trim().to_owned();
    let gateway = home.runtime("gateway.sock");
    let file = home.path("made");
    let daemon = home.serve().await;
    let mut client = owner(&gateway, Era::Modern, &secret).await;
    let session = shell(&mut client).await;
    // A prompt that is painted later would make the call stale.
    let ready = json!({"session": session, "command": "true"});
    client.structured("run", ready.clone()).await;
    let call = at_once(&session, &format!("touch {}", file.display()));
    let asked = refused(&mut client, "run", call.clone()).await;
    assert_eq!(asked["error_code"], "approval_required", "{asked}");
    let id = asked["details"]["approval_id"].clone();
    home.printed(&format!("approve {}", id.as_str().unwrap()));
    daemon.kill().await;

    let daemon = home.serve().await;
    let mut client = owner(&gateway, Era::Modern, &secret).await;
    client.structured("run", ready).await;
    let again = refused(&mut client, "run", call).await;
    assert_eq!(again["error_code"], "approval_required", "{again}");
    let next = again["details"]["approval_id"].clone();
    assert_ne!(next, id);
    let listed = home.envelope("approve");
    assert_eq!(listed["data"]["approvals"][0]["approval_id"], next, "{listed}");
    assert!(!file.exists());
    daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_repeated_under_its_key_is_answered_and_asks_nobody() {
    let mut place = Place::new().await;
    let made = place.daemon.file("made");
    let mut call = json!({
        "session": place.session, "idempotency_key": "once", "timeout_ms": 60_000,
        "command": format!("touch {}", made.display()),
    });
    let running = place.client.send_call("run", call.clone()).await;
    let id = one_waits(&mut place.operator).await;
    place.approve(&id).await;
    let first = structured(&place.client.answer(running).await);
    assert_eq!(first["exit_code"], 0, "{first}");
    fs::remove_file(&made).unwrap();
    let again = place.client.structured("run", call.clone()).await;
    assert_eq!(again["command_id"], first["command_id"], "{again}");
    assert!(!made.exists(), "it ran again");
    // Whatever else the key is used for is not done either.
    call["command"] = json!(format!("touch {0} {0}2", made.display()));
    assert_eq!(place.client.error_code("run", call.clone()).await, "invalid_argument");
    assert_eq!(waiting(&mut place.operator).await, [Value::Null; 0]);
    // For somebody else it is another key.
    let mut other = place.daemon.client(Era::Modern).await;
    take_lease(&place.daemon, &mut other, &place.session).await;
    call["timeout_ms"] = json!(1);
    let error = refused(&mut other, "run", call).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    assert!(!made.exists());
    place.daemon.stop().await;
}

#[tokio::test]
async fn a_lease_tool_that_is_repeated_under_its_key_is_answered_and_asks_nobody() {
    let rules = "[[rule]]\nname = 'asks'\neffect = 'ask'\ntool = '*_lease'\n";
    let daemon = daemon_with(rules).await;
    let (mut client, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let session = shell(&mut client).await;
    // While a shell starts, its terminal changes.
    client.structured("run", json!({"session": session, "command": "true"})).await;
    let of_session = json!({"session": session, "idempotency_key": "a"});
    let mut lease = asked_once(&mut client, &mut operator, "acquire_lease", of_session).await;
    for (tool, key) in [("renew_lease", "b"), ("release_lease", "c")] {
        let call = json!({"lease_id": lease["lease_id"], "idempotency_key": key});
        let answer = asked_once(&mut client, &mut operator, tool, call.clone()).await;
        if tool == "renew_lease" {
            lease = answer;
        }
        // What the key was not used for is not done.
        let other = json!({"lease_id": lease["lease_id"], "idempotency_key": "a"});
        assert_eq!(client.error_code(tool, other).await, "invalid_argument");
    }
    daemon.stop().await;
}

/// Makes a call that is asked about, has it approved, and makes it twice more. It is done once.
pub(crate) async fn asked_once(
    client: &mut Wire,
    operator: &mut Wire,
    tool: &str,
    call: Value,
) -> Value {
    let error = refused(client, tool, call.clone()).await;
    let id = &error["details"]["approval_id"];
    assert!(id.is_string(), "{error}");
    operator.structured("approve", json!({"approval_id": id})).await;
    let first = client.structured(tool, call.clone()).await;
    let again = client.structured(tool, call).await;
    for member in ["lease_id", "epoch", "outcome"] {
        assert_eq!(again[member], first[member], "{again}");
    }
    assert_eq!(waiting(operator).await, [Value::Null; 0]);
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_for_the_screen_waits_as_long_for_its_approval() {
    let mut place = Place::new().await;
    let write = json!({"session": place.session, "text": "x", "until": {"idle_ms": 1}});
    let call = place.client.send_call("send_text", write).await;
    let id = one_waits(&mut place.operator).await;
    place.approve(&id).await;
    let written = structured(&place.client.answer(call).await);
    assert_eq!(written["written"], 1, "{written}");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_approves_a_line_that_is_typed_in_pieces_sees_all_of_it() {
    let rules = "[[rule]]\nname = 'touch'\neffect = 'ask'\ncommand = { program = 'touch' }\n";
    let daemon = daemon_with(rules).await;
    let (mut client, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let created = json!({"command": "bash", "cols": 30, "rows": 10});
    let created = client.structured("create_session", created).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    client.structured("run", json!({"session": session, "command": "true"})).await;
    let mut typed = async |text: &str| {
        let write = json!({"session": session, "text": text, "until": {"idle_ms": 200}});
        client.call("send_text", write).await
    };
    // It takes several rows.
    let (first, last) = ("touch /nowhere/with-a-long-name/and  /nowhere/an", "other");
    assert_eq!(typed(first).await["isError"], false);
    let refused = typed(&format!("{last}\n")).await;
    assert_eq!(refused["structuredContent"]["details"]["rule"], "touch", "{refused}");
    let listed = &waiting(&mut operator).await[0];
    let what = listed["what"].as_str().unwrap();
    assert!(what.ends_with(&format!(", which ends the line: {first}{last}")), "{what}");
    // Of a line that is edited by keys, it sees the beginning.
    let keys = json!({"session": session, "keys": ["Left", "Enter"]});
    let asked = client.call("send_keys", keys).await;
    let id = &asked["structuredContent"]["details"]["approval_id"];
    let all = waiting(&mut operator).await;
    let edited = all.iter().find(|call| call["approval_id"] == *id).unwrap();
    let what = edited["what"].as_str().unwrap();
    assert!(what.ends_with(&format!(", where the line begins with: {first}")), "{what}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_about_a_call_whose_caller_does_not_have_the_lease() {
    let tools = "['run', 'send_text', 'resize', 'manage_session']";
    let rules = format!("[[rule]]\nname = 'asks'\neffect = 'ask'\ntool = {tools}\n");
    let daemon = daemon_with(&rules).await;
    let mut operator = daemon.operator().await;
    let mut ada = daemon.client(Era::Modern).await;
    let mut bob = daemon.client(Era::Modern).await;
    let session = shell(&mut ada).await;
    operator.structured("preempt_lease", json!({"session": session})).await;
    let line = json!({"session": session, "command": "touch x", "timeout_ms": 1});
    let text = json!({"session": session, "text": "touch x"});
    let size = json!({"session": session, "rows": 20, "cols": 40});
    for (tool, arguments) in [("run", &line), ("send_text", &text), ("resize", &size)] {
        let code = ada.error_code(tool, arguments.clone()).await;
        assert_eq!(code, "lease_lost", "{tool}");
    }
    take_lease(&daemon, &mut ada, &session).await;
    let kill = json!({"session": session, "action": "kill"});
    for (tool, arguments) in
        [("run", &line), ("send_text", &text), ("resize", &size), ("manage_session", &kill)]
    {
        assert_eq!(bob.error_code(tool, arguments.clone()).await, "lease_held", "{tool}");
    }
    assert!(waiting(&mut operator).await.is_empty());
    // What its holder has not seen is no better.
    let mut unseen = text.clone();
    unseen["expect_text"] = json!("no such text");
    assert_eq!(ada.error_code("send_text", unseen).await, "screen_changed");
    for (tool, arguments) in [("run", line), ("send_text", text), ("resize", size)] {
        assert_eq!(ada.error_code(tool, arguments).await, "approval_required", "{tool}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_sees_all_of_a_call_and_is_asked_about_none_that_is_longer() {
    let mut place = Place::new().await;
    let filler = "a".repeat(2_000);
    let command = format!("touch x; echo {filler}; touch hidden; echo {filler}");
    place.asks(&command).await;
    assert_eq!(waiting(&mut place.operator).await[0]["what"], json!(command));
    let command = format!("touch x; echo {}", "a".repeat(9_000));
    let arguments = at_once(&place.session, &command);
    let error = refused(&mut place.client, "run", arguments).await;
    assert_eq!(error["error_code"], "policy_denied", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("to a file"), "{error}");
    assert_eq!(waiting(&mut place.operator).await.len(), 1);
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_come_first_and_those_that_cannot_pass_any_more_are_not_listed() {
    let mut place = Place::new().await;
    let left = place.asks("touch left").await;
    let call = json!({"session": place.session, "command": "touch waits"});
    let running = place.client.send_call("run", call).await;
    let listed = loop {
        let listed = waiting(&mut place.operator).await;
        if listed.len() == 2 {
            break listed;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(listed[0]["what"], "touch waits");
    assert_eq!(listed[1]["approval_id"], left);
    let deny = json!({"approval_id": listed[0]["approval_id"]});
    place.operator.structured("deny", deny).await;
    place.client.answer(running).await;
    let elsewhere = json!({"session": place.session, "command": "cd /"});
    place.client.structured("run", elsewhere).await;
    assert_eq!(waiting(&mut place.operator).await, [Value::Null; 0]);
    place.daemon.stop().await;
}

#[tokio::test]
async fn who_approves_and_who_looks_back_sees_no_values_of_variables() {
    let daemon = daemon_with("[[rule]]\nname = 'new'\neffect = 'ask'\ntool = 'create_session'\n");
    let daemon = daemon.await;
    let (mut client, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let mut call = json!({"command": "cat", "args": [], "env": {"API_TOKEN": "s3cret-1"}});
    let error = refused(&mut client, "create_session", call.clone()).await;
    let what = waiting(&mut operator).await[0]["what"].to_string();
    assert!(what.contains("API_TOKEN") && !what.contains("s3cret"), "{what}");
    let events = operator.structured("list_events", json!({})).await.to_string();
    assert!(events.contains("API_TOKEN") && !events.contains("s3cret"), "{events}");
    let records = json!(journal(&daemon)).to_string();
    assert!(records.contains("API_TOKEN") && !records.contains("s3cret"), "{records}");
    // It is one call with these values alone.
    let approve = json!({"approval_id": error["details"]["approval_id"]});
    operator.structured("approve", approve).await;
    call["env"]["API_TOKEN"] = json!("s3cret-2");
    assert_eq!(client.error_code("create_session", call.clone()).await, "approval_required");
    call["env"]["API_TOKEN"] = json!("s3cret-1");
    client.structured("create_session", call).await;
    daemon.stop().await;
}

#[tokio::test]
async fn who_approves_sees_which_variables_may_change_what_runs() {
    let daemon =
        daemon_with("[[rule]]\nname = 'rm'\neffect = 'ask'\ncommand = { program = 'rm' }\n");
    let daemon = daemon.await;
    let (mut client, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let variables = json!({
        "A": "1", "BASH_ENV": "s3cret", "HOME": daemon.variable("HOME"), "LD_PRELOAD": "s3cret",
    });
    refused(&mut client, "create_session", json!({"env": variables})).await;
    let what = waiting(&mut operator).await[0]["what"].to_string();
    assert!(what.contains("; these may change which programs run: BASH_ENV, LD_PRELOAD"), "{what}");
    assert!(!what.contains("s3cret"), "{what}");
    daemon.stop().await;
}

/// Asks about each kill.
const ASK_BEFORE_KILL: &str = r#"
    [[rule]]
    name = "ask-kill"
    effect = "ask"
    tool = "manage_session"
    arguments = { action = "kill" }
"#;

/// A session for one command that its creator does not lease.
async fn for_one_command(client: &mut Wire, program: &str) -> String {
    let wanted = json!({"command": program, "args": [], "lease": false, "one_command": true});
    let created = client.structured("create_session", wanted).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creator_ends_its_session_for_one_command_unasked_until_another_has_used_it() {
    let daemon = daemon_with(ASK_BEFORE_KILL).await;
    let (mut ada, mut bob) = (daemon.client(Era::Modern).await, daemon.client(Era::Modern).await);
    let kill = |session: &str| json!({"session": session, "action": "kill"});
    let own = for_one_command(&mut ada, "cat").await;
    let lease = ada.structured("acquire_lease", json!({"session": own})).await;
    ada.structured("send_text", json!({"session": own, "text": "x"})).await;
    let held = lease["lease_id"].clone();
    ada.structured("release_lease", json!({"lease_id": held})).await;
    assert_eq!(bob.error_code("manage_session", kill(&own)).await, "approval_required");
    ada.structured("manage_session", kill(&own)).await;
    // No rule let it pass.
    let records = journal(&daemon);
    let killed = records.iter().filter(|it| it["kind"] == "intent" && it["act"] == "kill");
    let killed: Vec<_> = killed.map(|it| &it["decision"]).collect();
    assert_eq!(killed, [&Value::Null], "{records:?}");
    let shared = for_one_command(&mut ada, "cat").await;
    let lease = bob.structured("acquire_lease", json!({"session": shared})).await;
    bob.structured("send_text", json!({"session": shared, "text": "x"})).await;
    let held = lease["lease_id"].clone();
    bob.structured("release_lease", json!({"lease_id": held})).await;
    for client in [&mut ada, &mut bob] {
        assert_eq!(client.error_code("manage_session", kill(&shared)).await, "approval_required");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creator_is_asked_about_its_session_where_a_rule_may_deny_its_end() {
    let deny = r#"
        [[rule]]
        name = "no-kill-of-make"
        effect = "deny"
        tool = "manage_session"
        foreground = "make"
    "#;
    let daemon = daemon_with(&format!("{ASK_BEFORE_KILL}{deny}")).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = for_one_command(&mut client, "true").await;
    client.wait_for_exit(&session).await;
    // Nothing is in front, so that it is not known what the rule is about.
    let kill = json!({"session": session, "action": "kill"});
    let error = refused(&mut client, "manage_session", kill).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    assert_eq!(error["details"]["rule"], "ask-kill", "{error}");
    daemon.stop().await;
}
