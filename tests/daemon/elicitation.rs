//! The person in front of a client approves its call where the rules say so, in both eras of the protocol, and no answer
//! lets another call pass.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};
use crate::daemon::policy::{daemon_with, journal, refused, rules_of, shell, take_lease};
use crate::harness::home::Home;
use crate::harness::line_client::hello;

const ASK: &str = r#"
    unknown = "allow"

    [[rule]]
    name = "ask-touch"
    effect = "ask"
    reason = "it makes files"
    client_may_approve = true
    command = { program = "touch" }

    [[rule]]
    name = "ask-operator"
    effect = "ask"
    command = { program = "mkdir" }
"#;

const METHOD: &str = "elicitation/create";

struct Place {
    daemon: TestDaemon,
    client: Wire,
    session: String,
    made: PathBuf,
    command: String,
}

impl Place {
    /// A client of this era, with these capabilities.
    async fn new(era: Era, capabilities: Value) -> Self {
        let daemon = daemon_with(ASK).await;
        let mut client = Wire::silent(daemon.paths.gateway(), era).await;
        match era {
            Era::Legacy => greet_with(&mut client, capabilities).await,
            Era::Modern => client.greet().await,
        }
        let session = shell(&mut client).await;
        client.structured("run", json!({"session": session, "command": "true"})).await;
        let made = daemon.file("made");
        let command = format!("touch {}", made.display());
        Self { daemon, client, session, made, command }
    }

    fn run(&self, command: &str) -> Value {
        json!({"session": self.session, "command": command})
    }

    /// The next question to the person, and its id.
    async fn asked(&mut self) -> (Value, Value) {
        let is_question = |message: &Value| message["method"] == METHOD;
        let question = self.client.receiver.first(is_question).await;
        (question["id"].clone(), question["params"].clone())
    }

    /// Waits until this question is taken back. One that was answered late may be taken back before it.
    async fn taken_back(&mut self, id: &Value) {
        let is_such = |message: &Value| {
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == *id
        };
        self.client.receiver.first(is_such).await;
    }

    async fn answer(&mut self, id: &Value, action: &str) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": action}});
        self.client.sender.raw(format!("{answer}\n").as_bytes()).await;
    }

    /// Makes a call of the newer era, by a client that shows forms, with what it brings back.
    async fn calls(&mut self, client: Option<&mut Wire>, command: &str, returned: Value) -> Value {
        let mut params = json!({"name": "run", "arguments": self.run(command)});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"form": {}}});
        for (name, value) in returned.as_object().unwrap() {
            params[name] = value.clone();
        }
        let client = client.unwrap_or(&mut self.client);
        client.request("tools/call", params).await.unwrap()
    }
}

/// Greets as an older client with these capabilities.
async fn greet_with(client: &mut Wire, capabilities: Value) {
    let mut hello = hello("tester");
    hello["capabilities"] = capabilities;
    client.request("initialize", hello).await.unwrap();
    client.sender.notify("notifications/initialized", json!({})).await;
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

fn brings(state: &Value, action: &str) -> Value {
    json!({"requestState": state, "inputResponses": {"approval": {"action": action}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_person_is_asked_while_the_call_waits_and_lets_it_pass_once() {
    let mut place = Place::new(Era::Legacy, forms()).await;
    for _ in 0..2 {
        let running = place.client.send_call("run", place.run(&place.command)).await;
        let (id, question) = place.asked().await;
        let message = question["message"].as_str().unwrap();
        assert!(message.contains(&format!("\n{}\n", place.command)), "{message}");
        assert!(message.ends_with("\nRule: ask-touch: it makes files"), "{message}");
        assert_eq!(question["requestedSchema"], json!({"type": "object", "properties": {}}));
        assert!(!place.made.exists());
        place.answer(&id, "accept").await;
        let ran = structured(&place.client.answer(running).await);
        assert_eq!(ran["exit_code"], 0, "{ran}");
        fs::remove_file(&place.made).unwrap();
    }
    let mut operator = place.daemon.operator().await;
    let events = operator.structured("list_events", json!({"kind": "approval_granted"})).await;
    let decided = events["events"].as_array().unwrap();
    assert_eq!(decided.len(), 2, "{events}");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_person_denies_fails_and_is_not_asked_about_again() {
    let mut place = Place::new(Era::Legacy, forms()).await;
    let running = place.client.send_call("run", place.run(&place.command)).await;
    let (id, _) = place.asked().await;
    place.answer(&id, "decline").await;
    let again = place.client.send_call("run", place.run(&place.command)).await;
    for call in [running, again] {
        let error = place.client.answer(call).await["structuredContent"].take();
        assert_eq!(error["error_code"], "policy_denied", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("the person in front of tester#"), "{message}");
    }
    assert!(!place.made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_answer_leaves_the_call_to_operators() {
    let mut place = Place::new(Era::Legacy, forms()).await;
    let mut operator = place.daemon.operator().await;
    let error = json!({"code": -32601, "message": "no"});
    for answer in [json!({"result": {"action": "cancel"}}), json!({"error": error}), json!(null)] {
        let running = place.client.send_call("run", place.run(&place.command)).await;
        let (id, _) = place.asked().await;
        if let Some(answer) = answer.as_object() {
            let mut line = json!({"jsonrpc": "2.0", "id": id});
            line.as_object_mut().unwrap().extend(answer.clone());
            place.client.sender.raw(format!("{line}\n").as_bytes()).await;
        }
        let list = operator.structured("list_approvals", json!({})).await;
        let approval = list["approvals"][0]["approval_id"].clone();
        operator.structured("approve", json!({"approval_id": approval})).await;
        assert_eq!(structured(&place.client.answer(running).await)["exit_code"], 0);
        if answer.is_null() {
            // The question is taken back, and a late answer does nothing.
            place.taken_back(&id).await;
            place.answer(&id, "accept").await;
        }
    }
    let running = place.client.send_call("run", place.run(&place.command)).await;
    let (id, _) = place.asked().await;
    place.client.sender.cancel(running).await;
    place.taken_back(&id).await;
    let list = operator.structured("list_approvals", json!({})).await;
    assert_eq!(list["approvals"], json!([]));
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_where_the_rule_or_the_client_does_not_say_so() {
    for (era, capabilities) in [
        (Era::Legacy, json!({})),
        (Era::Legacy, json!({"elicitation": {"url": {}}})),
        (Era::Modern, json!({})),
    ] {
        let mut place = Place::new(era, capabilities).await;
        let mut call = place.run(&place.command);
        call["timeout_ms"] = json!(1);
        let error = refused(&mut place.client, "run", call).await;
        assert_eq!(error["error_code"], "approval_required", "{error}");
        assert!(place.client.receiver.kept().all(|it| it["method"] != METHOD));
        place.daemon.stop().await;
    }
    let mut place = Place::new(Era::Legacy, forms()).await;
    for command in ["mkdir x", "mkdir x; touch x"] {
        let mut call = place.run(command);
        call["timeout_ms"] = json!(1);
        let error = refused(&mut place.client, "run", call).await;
        assert_eq!(error["error_code"], "approval_required", "{error}");
    }
    let mut call = place.run(&place.command);
    call["dry_run"] = json!(true);
    let error = refused(&mut place.client, "run", call).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    assert!(place.client.receiver.kept().all(|it| it["method"] != METHOD));
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_client_asks_its_person_and_makes_the_call_again() {
    let mut place = Place::new(Era::Modern, json!({})).await;
    let command = place.command.clone();
    let asked = place.calls(None, &command, json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["approval"];
    assert_eq!(question["method"], METHOD);
    assert!(question["params"]["message"].as_str().unwrap().contains(&command));
    assert!(asked["content"].is_null());
    let granted = brings(&asked["requestState"], "accept");
    let ran = structured(&place.calls(None, &command, granted.clone()).await);
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(place.made.exists());
    // An answer is used once.
    fs::remove_file(&place.made).unwrap();
    let again = place.calls(None, &command, granted).await;
    assert_eq!(again["resultType"], "input_required", "{again}");
    let denied = place.calls(None, &command, brings(&again["requestState"], "decline")).await;
    assert_eq!(denied["structuredContent"]["error_code"], "policy_denied", "{denied}");
    assert!(!place.made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_counts_for_no_other_call_caller_or_state_of_the_terminal() {
    let mut place = Place::new(Era::Modern, json!({})).await;
    let command = place.command.clone();
    let asked = place.calls(None, &command, json!({})).await;
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let granted = brings(&json!(state), "accept");
    let mut forged = state.clone().into_bytes();
    let last = forged.last_mut().unwrap();
    *last = if *last == b'A' { b'B' } else { b'A' };
    let forged = json!(String::from_utf8(forged).unwrap());
    for state in [forged, json!(""), json!("x".repeat(10_000)), json!("rs1.AAAA.AAAA")] {
        let refused = place.calls(None, &command, brings(&state, "accept")).await;
        assert_eq!(refused["structuredContent"]["error_code"], "invalid_argument", "{state}");
    }
    let other = place.calls(None, "touch /tmp/other-call", granted.clone()).await;
    assert_eq!(other["structuredContent"]["error_code"], "invalid_argument", "{other}");
    let mut stranger = place.daemon.client(Era::Modern).await;
    take_lease(&place.daemon, &mut stranger, &place.session).await;
    let foreign = place.calls(Some(&mut stranger), &command, granted.clone()).await;
    assert_eq!(foreign["structuredContent"]["error_code"], "invalid_argument", "{foreign}");
    assert!(!place.made.exists());
    take_lease(&place.daemon, &mut place.client, &place.session).await;
    let elsewhere = place.run("cd /");
    place.client.structured("run", elsewhere).await;
    let stale = place.calls(None, &command, granted).await;
    assert_eq!(stale["structuredContent"]["error_code"], "approval_stale", "{stale}");
    assert!(!place.made.exists());
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_a_person_is_recorded_with_the_decision() {
    let mut place = Place::new(Era::Legacy, forms()).await;
    let running = place.client.send_call("run", place.run(&place.command)).await;
    let (id, _) = place.asked().await;
    place.answer(&id, "accept").await;
    place.client.answer(running).await;
    let journal = journal(&place.daemon);
    let approved = journal.iter().find(|record| record["act"] == "client_approves");
    let decision = approved.expect("a record")["decision"].clone();
    let ran = journal.iter().find(|it| it["act"] == "command" && it["decision"] == decision);
    assert!(decision.is_string() && ran.is_some(), "{journal:?}");
    place.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_read_however_few_requests_may_be_in_flight() {
    let asks = r#"
        unknown = "allow"
        [[rule]]
        name = "ask-text"
        effect = "ask"
        client_may_approve = true
        tool = "send_text"
    "#;
    let rules = rules_of(asks);
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.policy = rules.into();
        config.connection.short_requests = 1;
    })
    .await;
    let mut client = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    greet_with(&mut client, forms()).await;
    let session = shell(&mut client).await;
    let mut asked = Vec::new();
    for text in ["a", "b"] {
        let call = client.send_call("send_text", json!({"session": session, "text": text})).await;
        let is_question = |message: &Value| message["method"] == METHOD;
        asked.push((call, client.receiver.first(is_question).await["id"].take()));
    }
    for (call, id) in asked {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
        client.sender.raw(format!("{answer}\n").as_bytes()).await;
        assert_eq!(error_code(&client.answer(call).await), "policy_denied");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_behind_the_bridge_is_asked_and_answers() {
    let home = Home::new();
    fs::write(home.configure("").with_file_name("policy.toml"), ASK).unwrap();
    let mut piped = home.silent("mcp --allow-write", Era::Legacy);
    greet_with(&mut piped.wire, forms()).await;
    let shell = json!({"command": "bash", "args": ["--norc"]});
    let created = piped.wire.structured("create_session", shell).await;
    let (session, lease) = (&created["session"]["id"], &created["lease"]["lease_id"]);
    let run = json!({"session": session, "command": "touch /dev/null", "lease_id": lease});
    let running = piped.wire.send_call("run", run.clone()).await;
    let is_question = |message: &Value| message["method"] == METHOD;
    let question = piped.wire.receiver.first(is_question).await;
    // The daemon that asked is gone, and the next one asks anew.
    home.kill_daemon().await;
    let late = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    piped.wire.sender.raw(format!("{late}\n").as_bytes()).await;
    let lost = piped.wire.receiver.answer(running).await;
    assert!(lost.is_err(), "{lost:?}");
    let running = piped.wire.send_call("run", run).await;
    let question = piped.wire.receiver.first(is_question).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    piped.wire.sender.raw(format!("{answer}\n").as_bytes()).await;
    let ran = structured(&piped.wire.answer(running).await);
    assert_eq!(ran["exit_code"], 0, "{ran}");
    piped.end().await;
    home.outcome("stop");
}
