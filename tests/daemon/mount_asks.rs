//! What mounted servers ask of the clients whose calls they answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::server::{HttpAddress, MountedServer, ServerCommand};
use termgate::core::mount::{MountMode, MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};
use crate::daemon::mounts::{daemon_of, settings_of, wait_for};
use crate::daemon::policy::{journal, rules_of};
use crate::harness::home::Home;
use crate::harness::line_client::hello;
use crate::harness::waiting::until;

const SERVER: &str = include_str!("asking_server.py");

const KINDS: [&str; 2] = ["lines", "http"];

/// The methods by which servers ask.
pub(crate) const FORM: &str = "elicitation/create";
pub(crate) const SAMPLE: &str = "sampling/createMessage";
pub(crate) const ROOTS: &str = "roots/list";

/// A server that asks. Dropping it ends it.
pub(crate) struct Asking {
    ground: Home,
    process: Option<Child>,
    pub(crate) settings: MountSettings,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Asking {
    pub(crate) async fn start(kind: &str) -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let words = [text(&ground.path("server.py")), text(ground.ground()), kind.to_owned()];
        let (server, process) = if kind == "lines" {
            let (command, args) = ("python3".to_owned(), words.to_vec());
            let program = ServerCommand { command, args, ..ServerCommand::default() };
            (MountedServer::Program(program), None)
        } else {
            let process = Command::new("python3").args(words).stdin(Stdio::null()).spawn();
            until("the server", || ground.path("ready").exists()).await;
            let port = fs::read_to_string(ground.path("ready")).unwrap();
            let url = format!("http://127.0.0.1:{port}/mcp");
            let http = HttpAddress { url, headers: BTreeMap::new(), socket: None };
            (MountedServer::Http(http), Some(process.unwrap()))
        };
        let settings = settings_of(server, MountTrust::Trusted);
        Self { ground, process, settings }
    }

    pub(crate) fn heard(&self) -> String {
        fs::read_to_string(self.ground.path("heard")).unwrap_or_default()
    }

    pub(crate) async fn hears(&self, what: &str) {
        until(what, || self.heard().contains(what)).await;
    }

    /// A daemon with this mount, once its tools are known.
    pub(crate) async fn mounted(&self) -> TestDaemon {
        self.mounted_under(PolicyRules::default()).await
    }

    async fn mounted_under(&self, rules: PolicyRules) -> TestDaemon {
        let daemon = daemon_of(&self.settings, true, rules).await;
        let mut operator = daemon.operator().await;
        wait_for(&mut operator, |mount| mount["accepted"].is_u64()).await;
        daemon
    }
}

pub(crate) fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// A client that has declared this, and answers what it is asked.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    capabilities: Value,
}

/// A question as a client gets it.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The id of the request, or the name in the result.
    pub(crate) id: Value,
}

impl Client {
    pub(crate) async fn new(daemon: &TestDaemon, era: Era, capabilities: Value) -> Self {
        let mut wire = Wire::silent(daemon.paths.gateway(), era).await;
        if era == Era::Legacy {
            let mut hello = hello("tester");
            hello["capabilities"] = capabilities.clone();
            wire.request("initialize", hello).await.unwrap();
            wire.sender.notify("notifications/initialized", json!({})).await;
        } else {
            wire.greet().await;
        }
        Self { wire, capabilities }
    }

    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        if self.wire.sender.era() == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        self.wire.send(method, params).await
    }

    async fn send_asking(&mut self, questions: Value) -> u64 {
        self.send("tools/call", asking(questions)).await
    }

    /// The next question of the older era.
    pub(crate) async fn asked(&mut self, method: &str) -> Question {
        let mut asked = self.wire.receiver.first(|message| message["method"] == method).await;
        let (params, id) = (asked["params"].take(), asked["id"].take());
        Question { method: method.to_owned(), params, id }
    }

    pub(crate) async fn answers(&mut self, id: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.wire.sender.raw(format!("{answer}\n").as_bytes()).await;
    }

    /// Makes a request whose only question is answered with this. Returns the question and what came of it.
    async fn answering(
        &mut self,
        method: &str,
        params: Value,
        answer: &Value,
    ) -> (Question, Value) {
        let id = self.send(method, params.clone()).await;
        if self.wire.sender.era() == Era::Legacy {
            let is_question = |message: &Value| {
                [FORM, SAMPLE, ROOTS].iter().any(|method| message["method"] == *method)
            };
            let mut asked = self.wire.receiver.first(is_question).await;
            let method = asked["method"].as_str().unwrap().to_owned();
            let question =
                Question { method, params: asked["params"].take(), id: asked["id"].take() };
            self.answers(&question.id, answer).await;
            return (question, self.wire.receiver.answer(id).await.unwrap());
        }
        let asked = self.wire.receiver.answer(id).await.unwrap();
        let questions = returned(&asked);
        let [question] = <[Question; 1]>::try_from(questions).unwrap();
        let id = self.send(method, brings(params, &asked, [(&question, answer)])).await;
        (question, self.wire.receiver.answer(id).await.unwrap())
    }
}

pub(crate) fn asking(questions: Value) -> Value {
    json!({"name": "fake__ask", "arguments": {"questions": questions}})
}

/// The questions of a result of the newer era.
pub(crate) fn returned(result: &Value) -> Vec<Question> {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let question = |(name, asked): (&String, &Value)| Question {
        method: asked["method"].as_str().unwrap().to_owned(),
        params: asked["params"].clone(),
        id: json!(name),
    };
    result["inputRequests"].as_object().unwrap().iter().map(question).collect()
}

/// The parameters of a call that is made again with these answers.
pub(crate) fn brings<'a>(
    mut params: Value,
    asked: &Value,
    answers: impl IntoIterator<Item = (&'a Question, &'a Value)>,
) -> Value {
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({});
    for (question, answer) in answers {
        params["inputResponses"][question.id.as_str().unwrap()] = answer.clone();
    }
    params
}

/// What the server says that it was answered.
pub(crate) fn answers(result: &Value) -> Value {
    structured(result)["answers"].clone()
}

#[tokio::test]
async fn each_question_is_answered_by_the_client_of_its_call() {
    for kind in KINDS {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            for (method, params, answer) in [
                (
                    FORM,
                    json!({"message": "Who?"}),
                    json!({"action": "accept", "content": {"x": 1}}),
                ),
                (
                    SAMPLE,
                    json!({"messages": []}),
                    json!({"role": "assistant", "model": "m", "extra": 1.50,
                    "content": {"type": "text", "text": "hi"}}),
                ),
                (ROOTS, json!({}), json!({"roots": [{"uri": "file:///a"}], "more": true})),
            ] {
                let question = json!([{"method": method, "params": params}]);
                let call = asking(question);
                let (asked, ended) = client.answering("tools/call", call, &answer).await;
                assert_eq!(asked.method, method, "{kind} {era:?}");
                let mut shown = asked.params;
                assert_eq!(shown["_meta"].take(), json!({"dev.termgate/mount": "fake"}));
                shown.as_object_mut().unwrap().remove("_meta");
                assert_eq!(shown, params, "{kind} {era:?}");
                assert_eq!(answers(&ended), json!([{"result": answer}]), "{kind} {era:?}");
            }
        }
        let declared = r#"initialize {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {"tools": {}}}"#;
        assert!(server.heard().contains(declared), "{}", server.heard());
        daemon.stop().await;
    }
}

#[tokio::test]
async fn resources_and_prompts_ask_as_tools_do() {
    for kind in KINDS {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            let answer = json!({"action": "decline"});
            for (method, params) in [
                ("resources/read", json!({"uri": "termgate://mount/fake/file:///x"})),
                ("prompts/get", json!({"name": "fake__asks"})),
            ] {
                let (asked, ended) = client.answering(method, params, &answer).await;
                assert_eq!(asked.params["message"], method, "{kind} {era:?}");
                assert!(ended.to_string().contains("decline"), "{kind} {era:?}: {ended}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_lacks_the_capability_is_not_asked() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    for era in Era::BOTH {
        let mut client = Client::new(&daemon, era, json!({"elicitation": {}})).await;
        let questions = json!([
            {"method": SAMPLE, "params": {"messages": []}},
            {"method": ROOTS},
            {"method": FORM, "params": {"mode": "url", "url": "https://a.example", "message": "x"}},
            {"method": "tasks/list"},
        ]);
        let id = client.send_asking(questions).await;
        let ended = client.wire.answer(id).await;
        let codes: Vec<_> = answers(&ended)
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["error"]["code"].clone())
            .collect();
        assert_eq!(codes, [-32601, -32601, -32602, -32601], "{era:?}: {ended}");
        assert_eq!(client.wire.receiver.kept().count(), 0);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn an_error_of_the_client_goes_to_the_server() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let id = client.send_asking(json!([{"method": SAMPLE, "params": {}}])).await;
    let asked = client.asked(SAMPLE).await;
    let error = json!({"code": -1, "message": "rejected", "data": {"why": "x"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked.id, "error": error});
    client.wire.sender.raw(format!("{answer}\n").as_bytes()).await;
    assert_eq!(answers(&client.wire.answer(id).await), json!([{"error": error}]));
    daemon.stop().await;
}

#[tokio::test]
async fn a_malformed_answer_of_the_client_ends_the_question() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    for answer in [
        json!({"result": null}),
        json!({"result": "x"}),
        json!({"error": "x"}),
        json!({"result": {}, "error": {"code": 1, "message": "x"}}),
    ] {
        let id = client.send_asking(json!([{"method": ROOTS}])).await;
        let asked = client.asked(ROOTS).await;
        let mut line = answer;
        (line["jsonrpc"], line["id"]) = (json!("2.0"), asked.id);
        client.wire.sender.raw(format!("{line}\n").as_bytes()).await;
        let said = answers(&client.wire.answer(id).await);
        assert_eq!(said[0]["error"]["message"], "the client's answer is malformed", "{line}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_handed_on_is_an_error_for_the_server_at_once() {
    for kind in KINDS {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let long = format!("\"{}\"", "x".repeat(1024 * 1024));
        for (what, problem) in [(deep, "too complex"), (long, "too large")] {
            let id = client.send_asking(json!([{"method": ROOTS}])).await;
            let asked = client.asked(ROOTS).await;
            let answer = json!({"jsonrpc": "2.0", "id": asked.id, "result": {"roots": "WHAT"}});
            let line = answer.to_string().replace("\"WHAT\"", &what);
            client.wire.sender.raw(format!("{line}\n").as_bytes()).await;
            let said = answers(&client.wire.answer(id).await);
            assert_eq!(said[0]["error"]["code"], -32000, "{kind}: {said}");
            assert!(said.to_string().contains(problem), "{kind}: {said}");
        }
        assert_eq!(client.wire.receiver.kept().count(), 0, "an answer was answered");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_without_a_call_has_nobody_to_ask() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    server.hears("nobody to ask").await;
    daemon.stop().await;
}

#[tokio::test]
async fn on_lines_nobody_is_asked_while_calls_of_two_clients_are_open() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    for era in Era::BOTH {
        let mut ada = Client::new(&daemon, era, all()).await;
        let mut bob = Client::new(&daemon, era, all()).await;
        let hanging = bob.wire.send_call("fake__hang", json!({})).await;
        server.hears("hang").await;
        fs::remove_file(server.ground.path("heard")).unwrap();
        let question = json!([{"method": FORM, "params": {"message": "Who?"}}]);
        let id = ada.send_asking(question.clone()).await;
        let refused = answers(&ada.wire.answer(id).await);
        assert!(refused.to_string().contains("several clients"), "{refused}");
        // Also just after the other call was cancelled, on which the server may still work.
        bob.wire.sender.cancel(hanging).await;
        server.hears("cancelled").await;
        let id = ada.send_asking(question.clone()).await;
        let refused = answers(&ada.wire.answer(id).await);
        assert!(refused.to_string().contains("several clients"), "{refused}");
        // A further call of the same client does not matter.
        bob.wire.send_call("fake__hang", json!({})).await;
        server.hears("hang").await;
        assert_eq!(ada.wire.receiver.kept().count() + bob.wire.receiver.kept().count(), 0);
        drop(bob);
        until("the call of the client that left to be cancelled", || {
            server.heard().matches("cancelled").count() == 2
        })
        .await;
        fs::remove_file(server.ground.path("heard")).unwrap();
    }
    daemon.stop().await;
}

#[tokio::test]
async fn over_http_the_stream_says_whose_call_asks() {
    let server = Asking::start("http").await;
    let daemon = server.mounted().await;
    server.hears("listening").await;
    for era in Era::BOTH {
        let mut ada = Client::new(&daemon, era, all()).await;
        let mut bob = Client::new(&daemon, era, all()).await;
        bob.wire.send_call("fake__hang", json!({})).await;
        server.hears("hang").await;
        let question = json!([{"method": FORM, "params": {"message": "Who?"}}]);
        let answer = json!({"action": "cancel"});
        let (_, ended) = ada.answering("tools/call", asking(question.clone()), &answer).await;
        assert_eq!(answers(&ended), json!([{"result": answer}]));
        // What the server says by itself is of no call.
        let mut own = asking(question);
        own["arguments"]["own"] = json!(true);
        let id = ada.send("tools/call", own).await;
        let refused = answers(&ada.wire.answer(id).await);
        assert!(refused.to_string().contains("several clients"), "{refused}");
        assert_eq!(bob.wire.receiver.kept().count(), 0);
        drop(bob);
        server.hears("cancelled").await;
        fs::remove_file(server.ground.path("heard")).unwrap();
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_named_and_all_it_says_is_visible() {
    let mut server = Asking::start("lines").await;
    server.settings.trust = MountTrust::Untrusted;
    let daemon = server.mounted().await;
    for era in Era::BOTH {
        let mut client = Client::new(&daemon, era, all()).await;
        let params = json!({"message": "Your\u{200b} password\u{1b}[8m?", "requestedSchema": {
            "type": "object", "properties": {"a": {"title": "\u{202e}b"}}}});
        let call = asking(json!([{"method": FORM, "params": params}]));
        let answer = json!({"action": "accept", "content": {"a": "\u{200b}"}});
        let (asked, ended) = client.answering("tools/call", call, &answer).await;
        assert_eq!(asked.params["message"], "fake asks: Your\\u{200b} password\\u{1b}[8m?");
        let title = &asked.params["requestedSchema"]["properties"]["a"]["title"];
        assert_eq!(*title, "\\u{202e}b");
        let said = server.heard();
        assert!(said.contains(r#""content": {"a": "\u200b"}"#), "{said}");
        assert_eq!(ended["_meta"]["dev.termgate/untrusted"], true);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_rule_keeps_a_server_from_asking_and_the_journal_has_no_texts() {
    let server = Asking::start("lines").await;
    let denies = r#"
        unknown = "allow"
        [[rule]]
        name = "no-links"
        effect = "deny"
        tool = "fake__elicitation/create"
        arguments = { mode = "url" }
        [[rule]]
        name = "no-samples"
        effect = "ask"
        client_may_approve = true
        tool = "fake__sampling/createMessage"
        mount = "fake/ask"
    "#;
    let daemon = server.mounted_under(rules_of(denies)).await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let questions = json!([
        {"method": FORM, "params": {"mode": "url", "url": "https://a.example", "message": "secret-a"}},
        {"method": SAMPLE, "params": {"messages": [], "systemPrompt": "secret-b"}},
        {"method": FORM, "params": {"message": "secret-c"}},
    ]);
    let id = client.send("tools/call", asking(questions)).await;
    let asked = client.asked(FORM).await;
    assert_eq!(asked.params["message"], "secret-c");
    client.answers(&asked.id, &json!({"action": "accept", "content": {"x": "secret-d"}})).await;
    let said = answers(&client.wire.answer(id).await);
    for (at, code) in [(0, "policy_denied"), (1, "approval_required")] {
        let message = said[at]["error"]["message"].as_str().unwrap();
        assert_eq!(message, format!("termgate does not let this server ask that: {code}"));
    }
    assert_eq!(said[2]["result"]["action"], "accept");
    let mut operator = daemon.operator().await;
    let list = operator.structured("list_approvals", json!({})).await;
    assert_eq!(list["approvals"], json!([]), "nobody is asked whether somebody may be asked");
    let journal = journal(&daemon);
    let of = |act: &str| journal.iter().filter(|it| it["act"] == act).collect::<Vec<_>>();
    assert_eq!(of("fake__elicitation/create").len(), 2, "{journal:?}");
    assert_eq!(of("fake__sampling/createMessage").len(), 1, "{journal:?}");
    let questions = journal.iter().filter(|it| it["act"] != "fake__ask");
    let texts: String = questions.map(Value::to_string).collect();
    assert!(!texts.contains("secret-"), "{texts}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    for kind in KINDS {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        let question = json!([{"method": FORM, "params": {"message": "Who?"}}]);
        let id = client.send_asking(question.clone()).await;
        let asked = client.asked(FORM).await;
        client.wire.sender.cancel(id).await;
        let told = client.wire.receiver.notification("notifications/cancelled").await;
        assert_eq!(told["requestId"], asked.id, "{kind}");
        server.hears("cancelled").await;
        server.hears("the call is over").await;
        // A late answer does nothing.
        client.answers(&asked.id, &json!({"action": "accept"})).await;
        client.send_asking(question).await;
        client.asked(FORM).await;
        let before = server.heard().matches("cancelled").count();
        drop(client);
        until("the call to be cancelled", || server.heard().matches("cancelled").count() > before)
            .await;
        assert!(!server.heard().contains("accept"), "{}", server.heard());
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_takes_its_question_back() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    client.send_asking(json!([{"method": ROOTS}])).await;
    let asked = client.asked(ROOTS).await;
    client.wire.call("fake__take_back", json!({})).await;
    let told = client.wire.receiver.notification("notifications/cancelled").await;
    assert_eq!(told["requestId"], asked.id);
    client.wire.call("fake__echo", json!({})).await;
    // The one before it was called is the only one that was answered.
    assert_eq!(server.heard().matches("answer {").count(), 1, "{}", server.heard());
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_whose_client_is_asked_has_time_for_the_answer() {
    for era in Era::BOTH {
        let mut server = Asking::start("lines").await;
        server.settings.call_timeout = Duration::from_millis(700);
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, era, all()).await;
        let call = asking(json!([{"method": ROOTS}]));
        let id = client.send("tools/call", call.clone()).await;
        let answer = json!({"roots": []});
        let ended = if era == Era::Legacy {
            let asked = client.asked(ROOTS).await;
            assert_eq!(client.wire.error_code("fake__hang", json!({})).await, "timeout");
            client.answers(&asked.id, &answer).await;
            client.wire.answer(id).await
        } else {
            let asked = client.wire.answer(id).await;
            assert_eq!(client.wire.error_code("fake__hang", json!({})).await, "timeout");
            let question = returned(&asked).remove(0);
            let id = client.send("tools/call", brings(call, &asked, [(&question, &answer)])).await;
            client.wire.answer(id).await
        };
        assert_eq!(answers(&ended), json!([{"result": answer}]), "{era:?}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn questions_are_bounded_in_size_and_number() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    for era in Era::BOTH {
        let mut client = Client::new(&daemon, era, all()).await;
        let long = "x".repeat(70_000);
        let mut questions = vec![json!({"method": FORM, "params": {"message": long}})];
        questions.extend((0..5).map(|_| json!({"method": ROOTS})));
        questions.push(json!({"method": ROOTS}));
        let call = asking(json!(questions));
        let id = client.send("tools/call", call.clone()).await;
        let answer = json!({"roots": []});
        let refused = || server.heard().matches("this call asks too much").count() == 2;
        let ended = if era == Era::Legacy {
            let mut asked = Vec::new();
            for _ in 0..4 {
                asked.push(client.asked(ROOTS).await);
            }
            until("what is too much to be refused", refused).await;
            for asked in asked {
                client.answers(&asked.id, &answer).await;
            }
            client.wire.answer(id).await
        } else {
            let mut asked = client.wire.answer(id).await;
            let mut given = 0;
            until("what is too much to be refused", refused).await;
            while asked["resultType"] == "input_required" {
                let open = returned(&asked);
                given += open.len();
                let again = brings(call.clone(), &asked, open.iter().map(|it| (it, &answer)));
                let id = client.send("tools/call", again).await;
                asked = client.wire.answer(id).await;
            }
            assert_eq!(given, 4);
            asked
        };
        let said = answers(&ended);
        let message = |at: usize| said[at]["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(message(0), "the question is too long", "{said}");
        assert!((1..5).all(|at| said[at]["result"] == answer), "{said}");
        assert!((5..7).all(|at| message(at) == "this call asks too much"), "{said}");
        fs::remove_file(server.ground.path("heard")).unwrap();
    }
    daemon.stop().await;
}

#[tokio::test]
async fn answers_of_a_newer_client_are_taken_once_and_for_their_own_call() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Modern, all()).await;
    let call = asking(json!([{"method": ROOTS}]));
    let other = asking(json!([{"method": ROOTS}, {"method": ROOTS}]));
    let id = client.send("tools/call", call.clone()).await;
    let asked = client.wire.answer(id).await;
    let question = returned(&asked).remove(0);
    let answer = json!({"roots": []});
    let given = [(&question, &answer)];
    let questions = server.heard().matches("asks").count();
    let mut forged = brings(call.clone(), &asked, given);
    forged["requestState"] = json!("rs1.AAAA.AAAA");
    let mut stranger = Client::new(&daemon, Era::Modern, all()).await;
    for params in [brings(other, &asked, given), forged] {
        let id = client.send("tools/call", params).await;
        assert_eq!(error_code(&client.wire.answer(id).await), "invalid_argument");
    }
    let id = stranger.send("tools/call", brings(call.clone(), &asked, given)).await;
    assert_eq!(error_code(&stranger.wire.answer(id).await), "invalid_argument");
    let id = client.send("tools/call", brings(call.clone(), &asked, given)).await;
    assert_eq!(answers(&client.wire.answer(id).await), json!([{"result": answer}]));
    let id = client.send("tools/call", brings(call, &asked, given)).await;
    assert_eq!(error_code(&client.wire.answer(id).await), "invalid_argument");
    // The server was called once.
    assert_eq!(server.heard().matches("asks").count(), questions);
    daemon.stop().await;
}

#[tokio::test]
async fn a_newer_client_that_brings_no_answer_gives_none() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Modern, all()).await;
    let call = asking(json!([{"method": ROOTS}]));
    let id = client.send("tools/call", call.clone()).await;
    let asked = client.wire.answer(id).await;
    let id = client.send("tools/call", brings(call, &asked, [])).await;
    let said = answers(&client.wire.answer(id).await);
    assert_eq!(said[0]["error"]["message"], "the client brought no answer", "{said}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_newer_client_that_does_not_come_back_loses_its_oldest_call_or_all_when_it_leaves() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Modern, all()).await;
    let call = asking(json!([{"method": ROOTS}]));
    let mut asked = Vec::new();
    for _ in 0..17 {
        let id = client.send("tools/call", call.clone()).await;
        asked.push(client.wire.answer(id).await);
    }
    until("the oldest call to be cancelled", || server.heard().matches("cancelled").count() == 1)
        .await;
    let (answer, mut ends) = (json!({"roots": []}), Vec::new());
    for asked in [&asked[0], &asked[16]] {
        let question = returned(asked).remove(0);
        let again = brings(call.clone(), asked, [(&question, &answer)]);
        let id = client.send("tools/call", again).await;
        ends.push(client.wire.answer(id).await);
    }
    assert_eq!(error_code(&ends[0]), "invalid_argument");
    assert_eq!(answers(&ends[1]), json!([{"result": answer}]));
    drop(client);
    until("all calls to be cancelled", || server.heard().matches("cancelled").count() == 16).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_question_ends_with_the_lease_of_its_call() {
    for era in Era::BOTH {
        let mut server = Asking::start("lines").await;
        server.settings.mode = MountMode::Leased;
        let daemon = server.mounted().await;
        let mut operator = daemon.operator().await;
        let mut client = Client::new(&daemon, era, all()).await;
        client.wire.structured("acquire_lease", json!({"surface": "fake"})).await;
        let call = asking(json!([{"method": ROOTS}]));
        let id = client.send("tools/call", call.clone()).await;
        let answer = json!({"roots": []});
        let lost = if era == Era::Legacy {
            let asked = client.asked(ROOTS).await;
            operator.structured("preempt_lease", json!({"surface": "fake"})).await;
            let told = client.wire.receiver.notification("notifications/cancelled").await;
            assert_eq!(told["requestId"], asked.id);
            client.answers(&asked.id, &answer).await;
            client.wire.answer(id).await
        } else {
            let asked = client.wire.answer(id).await;
            operator.structured("preempt_lease", json!({"surface": "fake"})).await;
            server.hears("the call is over").await;
            let question = returned(&asked).remove(0);
            let id = client.send("tools/call", brings(call, &asked, [(&question, &answer)])).await;
            client.wire.answer(id).await
        };
        assert_eq!(error_code(&lost), "lease_lost", "{era:?}");
        server.hears("cancelled").await;
        assert!(!server.heard().contains(r#""roots": []"#), "{}", server.heard());
        daemon.stop().await;
    }
}
