//! What prompts speak of must exist: each span of code in them is looked up in what the server lists.
//!
//! A span is a call (`tool {parameter, parameter: value}`), a parameter with its value, a URI, a command
//! line, a key in quotes, or a single word.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};
use termgate::core::code::Code;
use termgate::core::keys::parse::parse_keys;
use termgate::wire::activity::ActivityWord;
use termgate::wire::word;

use crate::daemon::harness::{Era, TestDaemon, Wire};

/// What an activity may be.
const STATES: [ActivityWord; 7] = [
    ActivityWord::Prompt,
    ActivityWord::Running,
    ActivityWord::NeedsInput,
    ActivityWord::SecretPrompt,
    ActivityWord::FullScreen,
    ActivityWord::Exited,
    ActivityWord::Unknown,
];

/// What there is.
#[derive(Debug, Default)]
struct Words {
    /// The parameters of each tool, with their schemas.
    tools: BTreeMap<String, BTreeMap<String, Value>>,
    uris: BTreeSet<String>,
    commands: BTreeSet<String>,
    /// Members, values and codes.
    words: BTreeSet<String>,
}

impl Words {
    async fn of(wire: &mut Wire) -> Self {
        let mut words = Self::default();
        let listed = wire.request("tools/list", json!({})).await.unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            words.add_tool(tool);
        }
        for (method, list, uri) in [
            ("resources/list", "resources", "uri"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ] {
            let listed = wire.request(method, json!({})).await.unwrap();
            let uris = listed[list].as_array().unwrap().iter().map(|it| it[uri].as_str().unwrap());
            words.uris.extend(uris.map(|uri| uri.split("{?").next().unwrap().to_owned()));
        }
        words.words.extend(Code::ALL.map(|code| code.as_str().to_owned()));
        words.words.extend(STATES.map(|state| word(&state).to_string()));
        words.words.extend(contract_words());
        words.commands = commands();
        words
    }

    fn add_tool(&mut self, tool: &Value) {
        let parameters = members(&tool["inputSchema"]["properties"]);
        for schema in parameters.values() {
            let values = schema["enum"].as_array().into_iter().flatten();
            self.words.extend(values.map(|value| value.as_str().unwrap().to_owned()));
        }
        self.words.extend(members(&tool["outputSchema"]["properties"]).into_keys());
        self.words.extend(parameters.keys().cloned());
        self.words.insert(tool["name"].as_str().unwrap().to_owned());
        self.tools.insert(tool["name"].as_str().unwrap().to_owned(), parameters);
    }

    /// What is wrong with a span.
    fn problem(&self, span: &str) -> Option<String> {
        if span.starts_with("termgate://") {
            return (!self.uris.contains(span)).then(|| "no such resource".to_owned());
        }
        if let Some(line) = span.strip_prefix("termgate ") {
            let command = line.split(' ').next().unwrap();
            return (!self.commands.contains(command)).then(|| "no such command".to_owned());
        }
        if span.starts_with('"') {
            return key_problem(span);
        }
        if let Some((tool, rest)) = span.split_once(" {") {
            let Some(parameters) = self.tools.get(tool) else {
                return Some("no such tool".to_owned());
            };
            let Some(rest) = rest.strip_suffix('}') else { return Some("not closed".to_owned()) };
            return parts(rest).into_iter().find_map(|part| self.part_problem(part, parameters));
        }
        if span.contains(": ") {
            let holds = |parameters| self.part_problem(span, parameters).is_none();
            return (!self.tools.values().any(holds)).then(|| "no tool takes it".to_owned());
        }
        (!self.words.contains(span)).then(|| "no such word".to_owned())
    }

    fn part_problem(&self, part: &str, parameters: &BTreeMap<String, Value>) -> Option<String> {
        let (name, value) = part.split_once(": ").unwrap_or((part, ""));
        let Some(schema) = parameters.get(name) else {
            return Some(format!("no parameter {name}"));
        };
        let types = schema["type"].to_string();
        let takes = |kind: &str| types.contains(kind) || schema["type"].is_null();
        let fits = match value.chars().next() {
            None => true,
            Some('"') => takes("string") || name == "keys",
            Some('{') => takes("object"),
            Some('[') => takes("array"),
            Some('t' | 'f') => takes("boolean"),
            Some(_) => takes("integer"),
        };
        if !fits {
            return Some(format!("{name} is of type {types}"));
        }
        if let Some(allowed) = schema["enum"].as_array() {
            let text = value.trim_matches('"');
            return (!value.is_empty() && !allowed.contains(&json!(text)))
                .then(|| format!("{name} is never {text}"));
        }
        if name == "keys" && !value.is_empty() {
            return key_problem(value);
        }
        let inner = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        inner.and_then(|inner| {
            let conditions = &self.tools["wait_for"];
            parts(inner).into_iter().find_map(|part| self.part_problem(part, conditions))
        })
    }
}

fn members(value: &Value) -> BTreeMap<String, Value> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn key_problem(quoted: &str) -> Option<String> {
    parse_keys(quoted.trim_matches('"')).err().map(|error| error.to_string())
}

/// What stands between the commas that are in no text, list or object.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut begins, mut parts) = (0_usize, false, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[begins..at].trim());
                begins = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begins..].trim());
    parts
}

/// The spans of code in a text.
fn spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
}

/// What no schema lists: members of inner objects and words that members may be, as the contract has
/// them.
fn contract_words() -> BTreeSet<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PROTOCOL.md");
    let page = std::fs::read_to_string(page).unwrap();
    // Fences would turn what is inside and outside of a span around.
    let spans: Vec<String> = page.lines().flat_map(spans).collect();
    spans.iter().flat_map(|span| names(span)).map(str::to_owned).collect()
}

/// The names in a span.
fn names(span: &str) -> impl Iterator<Item = &str> {
    span.split(|it: char| !it.is_ascii_lowercase() && it != '_').filter(|name| name.len() > 1)
}

/// The commands of the program.
fn commands() -> BTreeSet<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_termgate"));
    let help = program.arg("--help").env_clear().output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// Every span of every prompt.
async fn all_spans(wire: &mut Wire) -> Vec<String> {
    let listed = wire.request("prompts/list", json!({})).await.unwrap();
    let mut all = Vec::new();
    for prompt in listed["prompts"].as_array().unwrap() {
        let prompt = json!({"name": prompt["name"]});
        let filled = wire.request("prompts/get", prompt).await.unwrap();
        let text = filled["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.matches('`').count() % 2 == 0, "{text}");
        all.extend(spans(text));
    }
    all
}

#[tokio::test]
async fn all_that_prompts_speak_of_exists() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let (words, spans) = (Words::of(&mut wire).await, all_spans(&mut wire).await);
    daemon.stop().await;
    let called: BTreeSet<_> = spans.iter().filter_map(|span| span.split_once(" {")).collect();
    assert!(called.len() > 30, "{called:?}");
    let problem = |span: &String| words.problem(span).map(|problem| format!("{span}: {problem}"));
    let found: Vec<_> = spans.iter().filter_map(problem).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[tokio::test]
async fn what_does_not_exist_is_found() {
    let daemon = TestDaemon::writable().await;
    let words = Words::of(&mut daemon.client(Era::Modern).await).await;
    daemon.stop().await;
    for span in [
        "read_screens {session}",
        "read_screen {sessions}",
        "read_screen {since: \"x\"}",
        "read_screen {format: \"red\"}",
        "send_keys {session, keys: \"Entre\"}",
        "send_text {session, until: {patern: \"x\"}}",
        "idle_ms: \"x\"",
        "lease_gone",
        "termgate://session/{session}/colour",
        "termgate fly",
        "\"Hyper-x\"",
    ] {
        assert!(words.problem(span).is_some(), "{span}");
    }
    for span in [
        "read_screen {session, since}",
        "send_keys {session, keys: \"C-c Enter\", until: {idle_ms: 200}}",
        "wait_for {sessions: [\"a\", \"b\"], exit: true}",
        "idle_ms: 200",
        "lease_held",
        "termgate://session/{session}/grid",
        "termgate://skills/core",
        "termgate attach SESSION",
        "\"M-x\"",
    ] {
        assert_eq!(words.problem(span), None, "{span}");
    }
}
