//! What clients are promised, as snapshots: a difference here is a release note.

use std::collections::{BTreeSet, VecDeque};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};
use termgate::core::code::Code;

use crate::daemon::driven::start;
use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::policy::daemon_with;

/// How large the list of all tools may be, in bytes: every model pays for it.
const TOOLS_BYTES_MAX: usize = 20 * 1024;

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

async fn listed(wire: &mut Wire) -> Vec<Value> {
    let listed = wire.request("tools/list", json!({})).await.unwrap();
    listed["tools"].as_array().unwrap().clone()
}

async fn all_tools() -> Vec<Value> {
    let daemon = TestDaemon::writable().await;
    let tools = listed(&mut daemon.client(Era::Modern).await).await;
    daemon.stop().await;
    tools
}

/// Every key anywhere in a value.
fn keys(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(members) => {
            let below = members.values().flat_map(keys);
            members.keys().cloned().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeSet::new(),
    }
}

#[tokio::test]
async fn the_tools_where_writing_is_allowed() {
    assert_snapshot!("tools_writable", pretty(&json!(all_tools().await)));
}

#[tokio::test]
async fn the_tools_where_nothing_may_be_written() {
    let daemon = TestDaemon::read_only().await;
    let tools = listed(&mut daemon.client(Era::Modern).await).await;
    daemon.stop().await;
    assert_snapshot!("tools_read_only", pretty(&json!(tools)));
}

#[tokio::test]
async fn the_tools_of_operators() {
    let daemon = TestDaemon::read_only().await;
    let tools = listed(&mut daemon.operator().await).await;
    daemon.stop().await;
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    let last = &tools[tools.len() - 4..];
    assert_snapshot!("tools_operator", pretty(&json!({"names": names, "last": last})));
}

#[tokio::test]
async fn the_templates_of_resources() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = daemon.client(Era::Modern).await;
    let templates = wire.request("resources/templates/list", json!({})).await.unwrap();
    daemon.stop().await;
    assert_snapshot!("resource_templates", pretty(&templates["resourceTemplates"]));
}

#[tokio::test]
async fn both_eras_are_listed_the_same_tools() {
    let daemon = TestDaemon::writable().await;
    let older = listed(&mut daemon.client(Era::Legacy).await).await;
    let newer = listed(&mut daemon.client(Era::Modern).await).await;
    daemon.stop().await;
    assert_eq!(older, newer);
}

#[tokio::test]
async fn a_session_is_required_where_there_may_be_several_and_bridges_keep_to_themselves_what_they_add()
 {
    // A mounted server can stand in place of a session.
    const FREE: [&str; 5] = ["list_sessions", "wait_for", "list_events", "search", "acquire_lease"];
    for tool in all_tools().await {
        let schema = &tool["inputSchema"];
        let takes = schema["properties"].get("session").is_some();
        let required =
            schema["required"].as_array().is_some_and(|all| all.contains(&json!("session")));
        let free = FREE.iter().any(|name| tool["name"] == *name);
        assert_eq!(required, takes && !free, "{}", tool["name"]);
        assert!(schema["properties"].get("env_client").is_none());
        let until = schema["properties"]["until"]["properties"].as_object();
        for (name, condition) in
            until.into_iter().flatten().filter(|_| tool["name"] != "send_mouse")
        {
            assert!(condition["description"].is_string(), "until.{name} of {}", tool["name"]);
        }
    }
}

#[tokio::test]
async fn the_list_of_tools_is_short() {
    let bytes = json!(all_tools().await).to_string().len();
    assert!(bytes < TOOLS_BYTES_MAX, "{bytes} bytes");
}

#[tokio::test]
async fn schemas_hold_nothing_that_validators_reject_or_no_client_reads() {
    for tool in all_tools().await {
        let keys = keys(&tool);
        for unwanted in ["format", "$schema", "$defs", "$ref"] {
            // `format` is also the name of a parameter.
            let named = &tool["inputSchema"]["properties"][unwanted];
            assert!(!keys.contains(unwanted) || named.is_object(), "{unwanted} in {tool}");
        }
    }
}

#[tokio::test]
async fn every_tool_says_what_hosts_need() {
    let reading = [
        "list_sessions",
        "read_screen",
        "read_commands",
        "read_history",
        "wait_for",
        "list_events",
        "search",
        "why",
    ];
    for tool in all_tools().await {
        let name = tool["name"].as_str().unwrap();
        assert!((1..=24).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let hint = &tool["annotations"]["readOnlyHint"];
        assert_eq!(*hint == true, reading.contains(&name), "{name}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{schema} of {name}");
            assert!(tool[schema]["properties"].is_object(), "{schema} of {name}");
        }
    }
}

#[tokio::test]
async fn the_instructions_cost_less_than_a_kilobyte() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = daemon.client(Era::Modern).await;
    let found = wire.request("server/discover", json!({})).await.unwrap();
    daemon.stop().await;
    let instructions = found["instructions"].as_str().unwrap();
    assert!((1..1024).contains(&instructions.len()), "{} bytes", instructions.len());
}

/// Checks that a result has the members that its schema promises before it is listed, and none besides.
fn fits(tool: &Value, result: &Value) {
    let (name, schema) = (&tool["name"], &tool["outputSchema"]);
    let members = result.as_object().unwrap();
    let entries = termgate::surface::entries();
    let entry = entries.iter().find(|entry| *name == *entry.name).unwrap();
    let whole = entry.description().unwrap().output_schema.as_ref().unwrap();
    for required in whole["required"].as_array().unwrap() {
        let required = required.as_str().unwrap();
        assert!(members.contains_key(required), "{name}: no {required}: {result}");
    }
    // In every result with text of a terminal, and the list of tools is as long as it may be.
    for (member, value) in members.iter().filter(|(member, _)| *member != "untrusted") {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let told = &schema["properties"][member]["type"];
        let fits =
            *told == kind || told.as_array().is_some_and(|kinds| kinds.contains(&json!(kind)));
        assert!(fits, "{name}: {member} of {result} is {kind}, not {told}");
    }
}

const ASK_BEFORE_CLEARING: &str = "[[rule]]\nname = 'clear'\neffect = 'ask'\n\
    arguments = { action = 'clear_history' }";

/// Approves what an agent would do to the first session, and denies it for the second. Gives back the tools that were
/// called.
async fn decide(daemon: &TestDaemon, tools: &[Value], sessions: [Value; 2]) -> Vec<String> {
    let (mut agent, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let mut called = Vec::new();
    for (name, session) in ["approve", "deny"].into_iter().zip(sessions) {
        // Who does not hold it is refused before anybody is asked.
        operator.structured("preempt_lease", json!({"session": session})).await;
        let clear = json!({"session": session, "action": "clear_history"});
        let refused = agent.call("manage_session", clear).await;
        let id = &refused["structuredContent"]["details"]["approval_id"];
        for (name, arguments) in [
            ("list_approvals", json!({})),
            (name, json!({"approval_id": id})),
            ("explain_decision", json!({"decision_id": id})),
        ] {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            fits(tool, &operator.structured(name, arguments).await);
            called.push(name.to_owned());
        }
    }
    called
}

#[tokio::test]
async fn what_tools_answer_fits_their_schemas() {
    let daemon = daemon_with(ASK_BEFORE_CLEARING).await;
    let mut wire = daemon.operator().await;
    let tools = listed(&mut wire).await;
    let session = start(&mut wire).await;
    let key = wire.acquire(&session).await["lease_id"].clone();
    let mouse = json!({"session": session, "text": r"printf '\033[?1000hmouse'", "enter": true,
        "until": {"text": "mouse"}});
    wire.structured("send_text", mouse).await;
    let shell = wire.structured("create_session", json!({"command": "exec bash --norc"})).await;
    let shell = shell["session"]["id"].clone();
    let mut called = BTreeSet::new();
    for (name, mut arguments) in [
        ("list_sessions", json!({})),
        ("list_sessions", json!({"session": session, "state": "running"})),
        ("read_screen", json!({})),
        ("read_screen", json!({"format": "cells"})),
        ("read_screen", json!({"since": 0})),
        ("read_history", json!({})),
        ("read_history", json!({"format": "cells"})),
        ("search", json!({"query": "ready"})),
        ("wait_for", json!({"text": "ready", "since": 0})),
        ("wait_for", json!({"exit": true, "timeout_ms": 0})),
        ("create_session", json!({"command": "cat"})),
        ("create_session", json!({"command": "cat", "lease": false, "tags": ["x"]})),
        ("manage_session", json!({"action": "rename", "new_name": "renamed"})),
        ("acquire_lease", json!({})),
        ("renew_lease", json!({"lease_id": key})),
        ("read_commands", json!({})),
        ("send_text", json!({"text": "x", "wait_ms": 1})),
        ("send_text", json!({"text": "x", "dry_run": true})),
        ("send_keys", json!({"keys": "BSpace Enter"})),
        ("send_mouse", json!({"action": "click", "row": 0, "col": 0})),
        ("resize", json!({"cols": 80, "rows": 24})),
        ("release_lease", json!({"lease_id": key})),
        ("release_lease", json!({"lease_id": key})),
        ("run", json!({"session": shell, "command": "true"})),
        ("follow_command", json!({"session": shell, "id": 1})),
        ("read_commands", json!({"session": shell, "id": 1})),
        ("wait_for", json!({"session": shell, "command_done": true, "since": 0})),
        ("list_events", json!({"since": 0, "limit": 2})),
        ("why", json!({"code": "busy"})),
        ("find_lease", json!({})),
        ("preempt_lease", json!({})),
        ("record_session", json!({"action": "start"})),
        ("manage_mounts", json!({"action": "list"})),
        ("set_write", json!({"state": "on", "for_ms": 60_000})),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let takes_session = tool["inputSchema"]["properties"]["session"].is_object();
        let named = arguments.get("session").is_some();
        if takes_session && !named && !["list_sessions", "set_write"].contains(&name) {
            arguments["session"] = json!(session);
        }
        fits(tool, &wire.structured(name, arguments).await);
        called.insert(name.to_owned());
    }
    called.extend(decide(&daemon, &tools, [json!(session), shell]).await);
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    assert_eq!(called, names.collect(), "a tool is not called here");
    daemon.stop().await;
}

#[tokio::test]
async fn the_text_of_a_result_is_not_the_same_json_again() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    for tool in ["list_sessions", "read_screen", "read_history"] {
        let result = wire.call(tool, json!({"session": session})).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("ready"), "{tool}: {text}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "{tool}: {text}");
        let envelope = &result["_meta"]["dev.termgate/envelope"];
        assert_eq!(envelope["ok"], true, "{tool}");
        for number in ["elapsed_ms", "now"] {
            assert!(envelope[number].is_u64(), "{tool}: {number}");
        }
    }
    daemon.stop().await;
}

/// The page of errors, made from the table in the code.
fn errors_page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         A call that ran and failed answers a result with `isError: true` and these members: \
         `error_code` (one of the words below, stable over releases), `message`, `hint`, and where \
         it helps `retry_after_ms` and `details`. `invalid_argument` names the parameter in \
         `details.parameter`. The tool `why` and `termgate why CODE` say the same as this page.\n\n\
         An unknown tool or method and a malformed request are errors of JSON-RPC instead. The last \
         eight codes are those of the command line alone, for what no daemon can answer.\n\n\
         | code | what it means | what to do |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let (name, meaning, advice) = (code.as_str(), code.meaning(), code.advice());
        page.push_str(&format!("| `{name}` | {meaning} | {advice} |\n"));
    }
    page
}

#[test]
fn the_table_of_errors() {
    assert_snapshot!("errors", errors_page());
}

#[test]
fn the_page_of_errors_says_what_the_code_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/ERRORS.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page == errors_page(), "docs/ERRORS.md should read:\n{}", errors_page());
}

#[tokio::test]
async fn every_code_is_explained_by_the_tool_why() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = daemon.client(Era::Modern).await;
    for code in Code::ALL {
        let why = wire.structured("why", json!({"code": code.as_str()})).await;
        assert_eq!(
            (&why["meaning"], &why["advice"]),
            (&json!(code.meaning()), &json!(code.advice()))
        );
    }
    daemon.stop().await;
}

/// What a command says of itself.
fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_termgate"))
        .args(words)
        .arg("--help")
        .env_clear()
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that a help lists below itself.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default();
    let command = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let of_list = listed.lines().take_while(|line| !line.is_empty());
    let names = of_list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(command).filter(|name| name != "help").collect()
}

#[test]
fn the_help_of_every_command() {
    let mut all = String::new();
    let mut left = VecDeque::from([Vec::<String>::new()]);
    while let Some(words) = left.pop_front() {
        let help = help(&words);
        let below = commands(&help).into_iter();
        left.extend(below.map(|name| words.iter().cloned().chain([name]).collect()));
        let words: String = words.iter().map(|word| format!("{word} ")).collect();
        all.push_str(&format!("$ termgate {words}--help\n{help}\n"));
    }
    assert!(all.contains("$ termgate lease acquire --help"), "{all}");
    assert_snapshot!("help", all);
}
