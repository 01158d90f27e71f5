//! What passes between clients and mounted servers is what was written: digits, order, and halves of characters.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::mount::{MountMode, MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::daemon::mount_asks::{Client, FORM, all, returned};
use crate::daemon::mounts::{daemon_of, settings_of, wait_for};
use crate::daemon::policy::{journal, rules_of};
use crate::harness::home::Home;

const SERVER: &str = include_str!("exact_server.py");

/// What a library of JSON would write in another way.
const ODD: &str = r#"{"z":123456789012345678901234567890,"a":1e2, "t":"\ud800 \u0061","n":{"y":0.10000000000000000000001,"b":[ -0 ]}}"#;

/// A server that says what the test writes.
pub(crate) struct Exact {
    ground: Home,
    pub(crate) settings: MountSettings,
}

impl Exact {
    pub(crate) fn new(trust: MountTrust, kind: &str) -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let args =
            vec![text(ground.path("server.py")), text(ground.ground().to_owned()), kind.to_owned()];
        let program =
            ServerCommand { command: "python3".to_owned(), args, ..ServerCommand::default() };
        let settings = settings_of(MountedServer::Program(program), trust);
        Self { ground, settings }
    }

    /// Has it answer requests of this method with this, or ask.
    pub(crate) fn says(&self, what: &str, text: &str) {
        fs::write(self.ground.path(what), text).unwrap();
    }

    pub(crate) async fn mounted(&self) -> TestDaemon {
        self.mounted_under(PolicyRules::default()).await
    }

    pub(crate) async fn mounted_under(&self, rules: PolicyRules) -> TestDaemon {
        let daemon = daemon_of(&self.settings, true, rules).await;
        let mut operator = daemon.operator().await;
        wait_for(&mut operator, |mount| mount["accepted"].is_u64()).await;
        daemon
    }

    /// The last line with this in it that it got.
    fn heard(&self, what: &str) -> String {
        let heard = fs::read_to_string(self.ground.path("heard")).unwrap_or_default();
        let line = heard.lines().rev().find(|line| line.contains(what));
        line.unwrap_or_else(|| panic!("no {what} in {heard}")).to_owned()
    }
}

/// Makes a request whose parameters have `ODD` where `params` says so.
async fn request(client: &mut Wire, method: &str, params: Value) -> Result<Value, Value> {
    request_with(client, method, params, ODD).await
}

async fn request_with(
    client: &mut Wire,
    method: &str,
    params: Value,
    odd: &str,
) -> Result<Value, Value> {
    let (id, line) = client.sender.line(method, params);
    client.sender.raw(line.replace("\"ODD\"", odd).as_bytes()).await;
    client.receiver.answer(id).await
}

#[tokio::test]
async fn a_server_gets_arguments_as_they_were_written() {
    for kind in ["older", "newer"] {
        let server = Exact::new(MountTrust::Untrusted, kind);
        let daemon = server.mounted().await;
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            let call = json!({"name": "fake__echo", "arguments": "ODD"});
            request(&mut client, "tools/call", call).await.unwrap();
            let heard = server.heard("tools/call");
            assert!(heard.contains(&format!(r#""arguments":{ODD}"#)), "{heard}");
            let prompt = json!({"name": "fake__greet", "arguments": "ODD"});
            request(&mut client, "prompts/get", prompt).await.unwrap();
            let heard = server.heard("prompts/get");
            assert!(heard.contains(&format!(r#""arguments":{ODD}"#)), "{heard}");
            let (argument, context) = (
                r#"{"value":"\ud83d\u0062", "name":"who"}"#,
                r#"{"arguments":{"z":"\udfff","a":"\u0061"}}"#,
            );
            let completed = json!({"ref": {"type": "ref/prompt", "name": "fake__greet"},
                "argument": "ODD", "context": "MORE"});
            let (id, line) = client.sender.line("completion/complete", completed);
            let line = line.replace("\"ODD\"", argument).replace("\"MORE\"", context);
            client.sender.raw(line.as_bytes()).await;
            client.receiver.answer(id).await.unwrap();
            let heard = server.heard("completion/complete");
            assert!(heard.contains(&format!(r#""argument":{argument}"#)), "{heard}");
            assert!(heard.contains(&format!(r#""context":{context}"#)), "{heard}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn arguments_before_the_name_of_the_tool_are_kept_too() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"arguments":{ODD},"name":"fake__echo"}}}}"#
    );
    client.sender.raw(format!("{line}\n").as_bytes()).await;
    let answer = client.receiver.first(|message| message["id"] == "x").await;
    assert_eq!(answer["error"], Value::Null, "{answer}");
    assert!(server.heard("tools/call").contains(&format!(r#""arguments":{ODD}"#)));
    let line = r#"{"jsonrpc":"2.0","id":"y","method":"tools/call","params":{"arguments":{"session":"none"},"name":"read_screen"}}"#;
    client.sender.raw(format!("{line}\n").as_bytes()).await;
    let answer = client.receiver.first(|message| message["id"] == "y").await;
    assert_eq!(error_code(&answer["result"]), "session_not_found", "{answer}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_lease_id_is_taken_out_of_the_text_and_nothing_else() {
    let mut server = Exact::new(MountTrust::Trusted, "older");
    server.settings.mode = MountMode::Leased;
    let daemon = server.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let lease = client.structured("acquire_lease", json!({"surface": "fake"})).await;
    let with_lease = ODD.replacen('{', &format!(r#"{{"lease_id":{}, "#, lease["lease_id"]), 1);
    let call = json!({"name": "fake__echo", "arguments": "ODD"});
    let called = request_with(&mut client, "tools/call", call, &with_lease).await.unwrap();
    assert_eq!(called["isError"], Value::Null, "{called}");
    let kept = ODD.replace(", \"t\"", ",\"t\"");
    let heard = server.heard("tools/call");
    assert!(heard.contains(&format!(r#""arguments":{kept}"#)), "{heard}");
    daemon.stop().await;
}

#[tokio::test]
async fn arguments_that_parsers_could_read_differently_are_refused_with_their_place() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted().await;
    let mut client = daemon.client(Era::Modern).await;
    let call = json!({"name": "fake__echo", "arguments": "ODD"});
    let twice = r#"{"a":{"path":"/ok","p\u0061th":"/secret"}}"#;
    let refused = request_with(&mut client, "tools/call", call, twice).await.unwrap();
    assert_eq!(error_code(&refused), "invalid_argument");
    let text = refused.to_string();
    assert!(text.contains("a.path") && text.contains("twice"), "{text}");
    let prompt = json!({"name": "fake__greet", "arguments": "ODD"});
    let refused = request_with(&mut client, "prompts/get", prompt, twice).await.unwrap_err();
    assert!(refused.to_string().contains("a.path"), "{refused}");
    let own = json!({"name": "read_screen", "arguments": "ODD"});
    let half = r#"{"session":"\ud800"}"#;
    let refused = request_with(&mut client, "tools/call", own, half).await.unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("`session` has half a character"), "{message}");
    daemon.stop().await;
}

#[tokio::test]
async fn rules_approvals_and_the_journal_see_the_digits_that_are_sent() {
    let rules = r#"
        [[rule]]
        name = "never"
        effect = "deny"
        mount = "fake/echo"
        arguments = { amount = "18446744073709551617" }

        [[rule]]
        name = "asked"
        effect = "ask"
        mount = "fake/echo"
        arguments = { amount = "*" }
    "#;
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted_under(rules_of(rules)).await;
    let (mut client, mut operator) = (daemon.client(Era::Legacy).await, daemon.operator().await);
    let call = || json!({"name": "fake__echo", "arguments": "ODD"});
    let amount = |digits: &str| format!(r#"{{"b":1,"amount":{digits}}}"#);
    let denied = amount("18446744073709551617");
    let denied = request_with(&mut client, "tools/call", call(), &denied).await.unwrap();
    assert_eq!(denied["structuredContent"]["details"]["rule"], "never", "{denied}");
    let asked = amount("18446744073709551616");
    let waits = request_with(&mut client, "tools/call", call(), &asked).await.unwrap();
    assert_eq!(error_code(&waits), "approval_required");
    let id = waits["structuredContent"]["details"]["approval_id"].clone();
    operator.structured("approve", json!({"approval_id": id})).await;
    let other = amount("18446744073709551618");
    let other = request_with(&mut client, "tools/call", call(), &other).await.unwrap();
    assert_eq!(error_code(&other), "approval_required", "another amount was approved");
    let same = r#"{ "amount":18446744073709551616,"b":1 }"#;
    let passed = request_with(&mut client, "tools/call", call(), same).await.unwrap();
    assert_eq!(passed["isError"], Value::Null, "{passed}");
    let sees = |it: &Value| it.to_string().contains("18446744073709551616");
    let recorded = journal(&daemon);
    assert!(recorded.iter().any(sees), "{recorded:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn answers_to_questions_reach_a_server_as_they_were_written() {
    for kind in ["older", "newer"] {
        let server = Exact::new(MountTrust::Trusted, kind);
        server.says("tools.call.asks", r#"{"message":"Who?"}"#);
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Modern, all()).await;
        let call = json!({"name": "fake__echo", "arguments": {}});
        let id = client.send("tools/call", call.clone()).await;
        let asked = client.wire.receiver.answer(id).await.unwrap();
        let [question] = returned(&asked).try_into().unwrap();
        assert_eq!(question.method, FORM);
        let mut again = call;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({question.id.as_str().unwrap(): "ODD"});
        again["_meta"]["io.modelcontextprotocol/clientCapabilities"] = all();
        let answer = format!(r#"{{"content":{ODD}, "action":"accept"}}"#);
        request_with(&mut client.wire, "tools/call", again, &answer).await.unwrap();
        let heard = server.heard("\"accept\"");
        assert!(heard.contains(&answer), "{kind}: {heard}");
        daemon.stop().await;
    }
}
