//! What passes between clients and mounted servers is what was written: digits, order, and halves of characters.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::mount::{MountMode, MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::daemon::mount_asks::{Client, FORM, all, returned};
use crate::daemon::mount_restarts::restarted;
use crate::daemon::mounts::{daemon_of, settings_of, view, wait_for};
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
async fn who_looks_back_at_a_mounted_call_sees_no_values_of_variables() {
    let rules = "[[rule]]\nname = 'asked'\neffect = 'ask'\nmount = 'fake/echo'\n";
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted_under(rules_of(rules)).await;
    let (mut client, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let arguments = json!({"env": {"API_TOKEN": "s3cret"}, "a": 1});
    let asked = client.call("fake__echo", arguments).await;
    assert_eq!(error_code(&asked), "approval_required");
    let id = &asked["structuredContent"]["details"]["approval_id"];
    let list = operator.structured("list_approvals", json!({})).await.to_string();
    assert!(list.contains("s3cret"), "{list}");
    let explained = operator.structured("explain_decision", json!({"decision_id": id})).await;
    assert_eq!(explained["what"], r#"fake__echo {"a":1,"env":["API_TOKEN"]}"#);
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

/// A list of tools, as the rest of an answer.
fn tools(definitions: &[&str]) -> String {
    format!(r#""result":{{"tools":[{}]}}"#, definitions.join(","))
}

#[tokio::test]
async fn half_a_character_loses_neither_a_message_nor_a_tool() {
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        let odd = r#"{"name":"odd","description":"cut \ud83d","inputSchema":{"type":"object","title":"\udc00"}}"#;
        let plain = r#"{"name":"plain","inputSchema":{"type":"object"}}"#;
        server.says("tools.list", &tools(&[odd, plain]));
        server.says("tools.call", r#""error":{"code":-5,"message":"no \ud800 way"}"#);
        let daemon = server.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let listed = client.request("tools/list", json!({})).await.unwrap();
        let of = |name: &str| {
            let mut tools = listed["tools"].as_array().unwrap().iter();
            tools.find(|tool| tool["name"] == name).cloned().unwrap_or_default()
        };
        assert_eq!(of("fake__odd")["description"], "cut \u{fffd}", "{trust:?}");
        assert_eq!(of("fake__plain")["name"], "fake__plain");
        let refused = client.call("fake__plain", json!({})).await;
        assert_eq!(error_code(&refused), "upstream_error");
        assert!(refused.to_string().contains("(-5): no \u{fffd} way"), "{refused}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_tool_that_is_too_deep_is_left_out_alone_and_an_operator_sees_it() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let deep = format!(
        r#"{{"name":"deep","inputSchema":{{"type":"object","x":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let plain = r#"{"name":"plain","inputSchema":{"type":"object"}}"#;
    server.says("tools.list", &tools(&[&deep, plain]));
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    let mount = wait_for(&mut operator, |mount| mount["accepted"] == 1).await;
    let left_out = mount["left_out"][0].as_str().unwrap();
    assert!(left_out.starts_with("deep: ") && left_out.contains("levels"), "{left_out}");
    assert!(mount["log"].to_string().contains("`deep` is left out"), "{mount}");
    let mut client = daemon.client(Era::Modern).await;
    assert!(client.tools().await.contains(&"fake__plain".to_owned()));
    daemon.stop().await;
}

#[tokio::test]
async fn an_odd_definition_breaks_no_list_and_changes_no_other_tool() {
    let odd = |name: &str, members: &str| format!(r#"{{"name":"{name}",{members}}}"#);
    let whole = r#""inputSchema":{"type":"object","properties":{"z":{},"a":{}}}"#;
    let definitions = [
        odd("any", r#""inputSchema":{"anyOf":[{"required":["a"]}]}"#),
        odd("member", r#""inputSchema":{"properties":{"a":true}}"#),
        odd("output", &format!(r#"{whole},"outputSchema":{{"type":"array"}}"#)),
        odd(
            "reference",
            &format!(r##"{whole},"outputSchema":{{"type":"object","items":{{"$ref":"#/x"}}}}"##),
        ),
        odd("text", r#""inputSchema":{"type":"string"}"#),
        odd("whole", whole),
    ];
    let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        server.says("tools.list", &tools(&definitions));
        let structured = r#""result":{"content":[],"structuredContent":{"z":1.0}}"#;
        server.says("tools.call", structured);
        let mut daemon = server.mounted().await;
        // The kept tools are those of the server, and offered in the same way.
        for _ in 0..2 {
            let mut client = daemon.client(Era::Legacy).await;
            let listed = client.request("tools/list", json!({})).await.unwrap();
            let listed = listed["tools"].as_array().unwrap().iter();
            let listed: Vec<_> = listed
                .filter_map(|it| Some((it["name"].as_str()?.strip_prefix("fake__")?, it)))
                .map(|(name, it)| (name, &it["inputSchema"], it.get("outputSchema")))
                .collect();
            let (any, member, whole) = (
                json!({"type": "object", "anyOf": [{"required": ["a"]}]}),
                json!({"type": "object", "properties": {"a": {}}}),
                json!({"type": "object", "properties": {"z": {}, "a": {}}}),
            );
            let expected = [
                ("any", &any),
                ("member", &member),
                ("output", &whole),
                ("reference", &whole),
                ("whole", &whole),
            ];
            assert_eq!(listed, expected.map(|(name, schema)| (name, schema, None)), "{trust:?}");
            let mount = view(&mut daemon.operator().await).await;
            assert_eq!(mount["accepted"], 5);
            let outputs = mount["outputs_left_out"].to_string();
            assert!(outputs.contains("reference: not all clients can use `$ref`"), "{outputs}");
            assert!(outputs.contains("output: it is no schema of an object"), "{outputs}");
            let left_out = mount["left_out"].to_string();
            assert!(left_out.contains("text: its `inputSchema`"), "{left_out}");
            let called = client.call("fake__output", json!({})).await;
            assert_eq!(called["structuredContent"], json!({"z": 1.0}), "{called}");
            let refused = client.request("tools/call", json!({"name": "fake__text"})).await;
            assert!(refused.is_err(), "{refused:?}");
            let mount = view(&mut daemon.operator().await).await;
            assert_eq!(mount["changed"], false);
            assert!(mount["log"].to_string().contains("`text` is left out"), "{mount}");
            daemon = restarted(daemon, &server).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn odd_annotations_of_resources_and_templates_are_left_out_of_the_lists() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let annotations = r#""annotations":{"priority":7,"audience":["user"],"lastModified":"today"}"#;
    let resources =
        format!(r#""result":{{"resources":[{{"uri":"a:b","name":"x",{annotations}}}]}}"#);
    server.says("resources.list", &resources);
    let templates = format!(
        r#""result":{{"resourceTemplates":[{{"uriTemplate":"a:{{x}}","name":"x",{annotations}}}]}}"#
    );
    server.says("resources.templates.list", &templates);
    let daemon = server.mounted().await;
    let mut client = daemon.client(Era::Modern).await;
    for (method, list) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        let listed = client.request(method, json!({})).await.unwrap();
        let entry = listed[list].as_array().unwrap().iter().find(|it| it["name"] == "x").unwrap();
        assert_eq!(entry["annotations"], json!({"audience": ["user"]}), "{method}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn questions_keep_their_digits_and_their_order() {
    let schema = r#"{"type":"object","properties":{"z":{"type":"number","maximum":123456789012345678901234567890},"a":{"minimum":1e2}}}"#;
    for kind in ["older", "newer"] {
        for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
            let server = Exact::new(trust, kind);
            let asks = format!(r#"{{"message":"Who \ud800?","requestedSchema":{schema}}}"#);
            server.says("tools.call.asks", &asks);
            let daemon = server.mounted().await;
            for era in Era::BOTH {
                let mut client = Client::new(&daemon, era, all()).await;
                let id = client.send("tools/call", json!({"name": "fake__echo"})).await;
                let line = client.wire.receiver.line_with("requestedSchema").await;
                assert!(line.contains(&format!(r#""requestedSchema":{schema}"#)), "{line}");
                assert!(line.contains("Who \u{fffd}?"), "{line}");
                client.wire.sender.cancel(id).await;
            }
            daemon.stop().await;
        }
    }
}

#[tokio::test]
async fn what_a_server_tells_during_a_call_keeps_its_digits_and_its_order() {
    let logged =
        r#""level":"error","data":{"z":123456789012345678901234567890,"t":"\ud800","a":1e2}"#;
    let progress = r#""total":123456789012345678901234567890,"progress":1e2,"message":"\ud800""#;
    let notice = |method: &str, members: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{members}}}}}"#)
    };
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        let under = format!(r#""progressToken":TOKEN,{progress}"#);
        let tells = [notice("message", logged), notice("progress", &under)].join("\n");
        server.says("tools.call.tells", &format!("{tells}\n"));
        let daemon = server.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        client.request("logging/setLevel", json!({"level": "info"})).await.unwrap();
        let call = json!({"name": "fake__echo", "_meta": {"progressToken": "p"}});
        let (_, line) = client.sender.line("tools/call", call);
        client.sender.raw(line.as_bytes()).await;
        let line = client.receiver.line_with("notifications/message").await;
        let data = r#""data":{"z":123456789012345678901234567890,"t":"?","a":1e2}"#;
        assert!(line.contains(&data.replace('?', "\u{fffd}")), "{line}");
        let line = client.receiver.line_with("notifications/progress").await;
        assert!(line.contains(&progress.replace("\\ud800", "\u{fffd}")), "{line}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn links_that_a_server_wants_opened_keep_their_digits_and_their_order() {
    let error = |more: &str| {
        let link = r#"{"url":"https://a.example/x","mode":"url","message":"Log in","elicitationId":"1","a":1e2}"#;
        format!(
            r#""error":{{"code":-32042,"message":"not yet","data":{{"z":{more},"elicitations":[{link}]}}}}"#
        )
    };
    for (trust, message) in [
        (MountTrust::Trusted, r#""message":"Log in""#),
        (MountTrust::Untrusted, r#""message":"fake asks: Log in""#),
    ] {
        let server = Exact::new(trust, "older");
        let written = error("123456789012345678901234567890");
        server.says("tools.call", &written);
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        client.send("tools/call", json!({"name": "fake__echo"})).await;
        let line = client.wire.receiver.line_with("not yet").await;
        let named =
            |text: &str| text.replace(r#""elicitationId":"1""#, r#""elicitationId":"fake/1""#);
        let wanted = named(&written.replace(r#""message":"Log in""#, message));
        assert!(line.contains(&wanted), "{line}");
        server.says("prompts.get", &error("1e400"));
        client.send("prompts/get", json!({"name": "fake__greet"})).await;
        let line = client.wire.receiver.line_with("1e400").await;
        let wanted = named(&error("1e400").replace(r#""message":"Log in""#, message));
        assert!(line.contains(&wanted), "{line}");
        daemon.stop().await;
    }
}

/// Numbers that values of 64 bits cannot hold, or would write in another way.
const NUMBERS: &str = r#"{"z":123456789012345678901234567890,"a":[1e400,-0.10,1.0]}"#;

#[tokio::test]
async fn lists_are_as_the_server_wrote_them() {
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        let schema = format!(r#""inputSchema":{{"type":"object","x":{NUMBERS}}}"#);
        server.says("tools.list", &tools(&[&format!(r#"{{"name":"echo",{schema}}}"#)]));
        let more = format!(r#""name":"greet","size":18446744073709551615,"_meta":{NUMBERS}"#);
        for (what, list, key) in [
            ("resources.list", "resources", r#""uri":"a:b","#),
            ("resources.templates.list", "resourceTemplates", r#""uriTemplate":"a:{x}","#),
            ("prompts.list", "prompts", ""),
        ] {
            server.says(what, &format!(r#""result":{{"{list}":[{{{key}{more}}}]}}"#));
        }
        let daemon = server.mounted().await;
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            for (method, what) in [
                ("tools/list", &schema),
                ("resources/list", &more),
                ("resources/templates/list", &more),
                ("prompts/list", &more),
            ] {
                client.send(method, json!({})).await;
                let line = client.receiver.line_with("fake").await;
                let what = what.replace(r#""name":"greet","#, "");
                assert!(line.contains(&what), "{method}: {line}");
                let has_kind = line.contains(r#""resultType":"complete""#);
                assert_eq!(has_kind, era == Era::Modern, "{method}: {line}");
                assert!(line.contains(r#""ttlMs":0"#), "{method}: {line}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn prompts_resources_and_completions_are_as_the_server_wrote_them() {
    let block = format!(r#"{{"type":"text","text":"\u0061","_meta":{NUMBERS}}}"#);
    let message = format!(r#"{{"role":"user","content":{block}}}"#);
    let read = format!(r#"{{"uri":"x:y","text":"a","_meta":{NUMBERS}}}"#);
    let completion = r#"{"values":["a"],"total":123456789012345678901234567890}"#;
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        for (what, name, value) in [
            ("prompts.get", "messages", format!("[{message}]")),
            ("resources.read", "contents", format!("[{read}]")),
            ("completion.complete", "completion", completion.to_owned()),
        ] {
            let result = format!(r#""result":{{"own":1e400,"{name}":{value}}}"#);
            server.says(what, &result);
        }
        let daemon = server.mounted().await;
        let argument = json!({"name": "who", "value": ""});
        let of = json!({"type": "ref/prompt", "name": "fake__greet"});
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            for (method, params, said) in [
                ("prompts/get", json!({"name": "fake__greet"}), NUMBERS),
                ("resources/read", json!({"uri": "termgate://mount/fake/x:y"}), NUMBERS),
                ("completion/complete", json!({"ref": of, "argument": argument}), completion),
            ] {
                client.send(method, params).await;
                let line = client.receiver.line_with("1e400").await;
                assert!(line.contains(said) && line.contains(r#""own":1e400"#), "{line}");
                let is_newer = line.contains(r#""resultType":"complete""#);
                assert_eq!(is_newer, era == Era::Modern, "{method}: {line}");
                let is_kept = line.contains("termgate://mount/fake/x:y");
                assert_eq!(is_kept, method == "resources/read", "{line}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn clients_of_the_newer_era_are_asked_during_a_prompt_as_the_server_wrote_it() {
    let server = Exact::new(MountTrust::Trusted, "newer");
    let asks =
        format!(r#"{{"message":"Who?","requestedSchema":{{"type":"object","x":{NUMBERS}}}}}"#);
    for what in ["prompts.get.asks", "resources.read.asks"] {
        server.says(what, &asks);
    }
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Modern, all()).await;
    for (method, params) in [
        ("prompts/get", json!({"name": "fake__greet"})),
        ("resources/read", json!({"uri": "termgate://mount/fake/x:y"})),
    ] {
        client.send(method, params).await;
        let line = client.wire.receiver.line_with("input_required").await;
        assert!(line.contains(NUMBERS), "{line}");
    }
    daemon.stop().await;
}
