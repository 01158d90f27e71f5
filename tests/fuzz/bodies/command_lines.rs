//! Command lines: a line has a bounded number of programs, and what is quoted as one word stays one word. Rules see what
//! a line begins with, whatever follows, and allow nothing but what they name, and no shell that reads its commands.

use std::path::Path;
use std::sync::LazyLock;

use termgate::config::policy::read;
use termgate::core::command_line::ParsedCommandLine;
use termgate::core::policy::rules::facts::CallFacts;
use termgate::core::policy::rules::{PolicyRules, RuleEffect};
use termgate::surface::TOOL_NAMES;

/// More calls than any line has.
const CALLS_MAX: usize = 256;

static NO_RM: LazyLock<PolicyRules> = LazyLock::new(|| {
    rules("[[rule]]\nname = 'a'\neffect = 'deny'\ncommand = { program = 'rm', flags = ['r', 'f'] }")
});

static ONLY_ECHO: LazyLock<PolicyRules> = LazyLock::new(|| {
    let rule = "[[rule]]\nname = 'a'\neffect = 'allow'\ncommand = { program = 'echo' }";
    rules(&format!("default = 'deny'\n{rule}"))
});

static ALL: LazyLock<PolicyRules> = LazyLock::new(|| {
    let rule = "[[rule]]\nname = 'a'\neffect = 'allow'\ncommand = { program = '*' }";
    rules(&format!("default = 'deny'\n{rule}"))
});

/// Lines in which a shell reads what another program writes.
const FED: [&str; 4] =
    ["echo x | sh", "echo x > >(sh)", "ssh host < x", "echo x | xargs -I% sh -c %"];

fn rules(text: &str) -> PolicyRules {
    let mut rules = PolicyRules::default();
    assert_eq!(read(text, Path::new("policy.toml"), TOOL_NAMES, &mut rules), []);
    rules
}

fn effect(rules: &PolicyRules, line: &ParsedCommandLine) -> RuleEffect {
    rules.judge(&CallFacts { line: Some(line), ..CallFacts::default() }).effect
}

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let line = ParsedCommandLine::parse(text);
    let removing = ParsedCommandLine::parse(&format!("rm -fr x\n{text}"));
    assert!(effect(&NO_RM, &removing) > RuleEffect::Allow, "{text:?}");
    for fed in FED {
        let fed = ParsedCommandLine::parse(&format!("{fed}\n{text}"));
        assert!(effect(&ALL, &fed) > RuleEffect::Allow, "{text:?}");
    }
    if effect(&ONLY_ECHO, &line) == RuleEffect::Allow {
        let is_echo = |name: Option<&str>| name == Some("echo");
        assert!(line.calls.iter().all(|call| is_echo(call.name.as_deref()) && call.path.is_none()));
        assert!(line.is_known() && line.writes.is_empty() && line.sets.is_empty(), "{text:?}");
    }
    assert!(line.calls.len() <= CALLS_MAX);
    // No text gets out of single quotes.
    if text.contains('\'') || text.chars().any(|it| it.is_control() && it != '\n') {
        return;
    }
    let quoted = ParsedCommandLine::parse(&format!("echo '{text}'"));
    let words = vec!["echo".to_owned(), text.to_owned()];
    if quoted.unknown.is_empty() {
        assert_eq!(quoted, ParsedCommandLine::of_arguments(words), "{text:?}");
    }
}
