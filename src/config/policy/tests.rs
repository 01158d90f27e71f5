//! A policy file is read whole or not at all, and each problem has its place.

use super::*;
use crate::core::policy::rules::facts::CallFacts;

const TOOLS: ToolNames = ToolNames(|| {
    let tool = |name: &str, arguments: &[&str], is_judged| {
        let arguments = arguments.iter().map(|&name| name.to_owned()).collect();
        KnownTool { name: name.into(), arguments, is_judged }
    };
    vec![
        tool("run", &["session", "command", "timeout_ms"], true),
        tool("send_text", &["session", "text"], true),
        tool("read_screen", &["session", "format"], false),
    ]
});

fn problems(text: &str) -> Vec<String> {
    let found = read(text, Path::new("p.toml"), TOOLS, &mut PolicyRules::default());
    found.iter().map(ToString::to_string).collect()
}

fn rules(texts: &[&str]) -> PolicyRules {
    let mut rules = PolicyRules::default();
    for text in texts {
        assert_eq!(read(text, Path::new("p.toml"), TOOLS, &mut rules), []);
    }
    rules
}

#[test]
fn one_text_and_a_list_of_texts_are_the_same() {
    let one = "[[rule]]\nname = 'a'\neffect = 'deny'\ntool = 'run'\ncommand = {program = 'rm'}";
    let list = one.replace("'run'", "['run']").replace("'rm'", "['rm']");
    assert_eq!(rules(&[one]), rules(&[&list]));
    let line = ParsedCommandLine::parse("rm x");
    let call = CallFacts { tool: "run", line: Some(&line), ..CallFacts::default() };
    assert_eq!(rules(&[one]).judge(&call).effect, RuleEffect::Deny);
}

#[test]
fn files_hold_together_and_the_stricter_default_counts() {
    let read = rules(&[
        "default = 'ask'\n[[rule]]\nname = 'a'\neffect = 'deny'",
        "default = 'allow'\nunknown = 'deny'\n[[rule]]\nname = 'b'\neffect = 'ask'",
        "",
    ]);
    assert_eq!((read.default, read.unknown), (RuleEffect::Ask, Some(RuleEffect::Deny)));
    let names: Vec<&str> = read.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_rule_says_itself_what_happens_where_it_only_may_match() {
    let text = "unknown = 'deny'\n[[rule]]\nname = 'a'\neffect = 'deny'\nunknown = 'allow'\n\
        command = {program = 'rm', flags = ['r']}\n\
        [[rule]]\nname = 'b'\neffect = 'ask'\ncommand = {program = 'mv', flags = ['f']}";
    let rules = rules(&[text]);
    for (line, effect) in
        [("rm -r x", RuleEffect::Deny), ("rm $X", RuleEffect::Allow), ("mv $X", RuleEffect::Ask)]
    {
        let line = ParsedCommandLine::parse(line);
        let call = CallFacts { tool: "run", line: Some(&line), ..CallFacts::default() };
        assert_eq!(rules.judge(&call).effect, effect, "{line:?}");
    }
    let allows =
        "[[rule]]\nname = 'a'\neffect = 'allow'\nunknown = 'ask'\ncommand = {program = 'ls'}";
    assert!(problems(allows)[0].contains("unknown: a rule that allows"), "{:?}", problems(allows));
}

#[test]
fn an_example_that_a_rule_does_not_agree_with_is_a_problem() {
    let text = "\n[[rule]]\nname = 'no-rm'\neffect = 'deny'\n\
        command = { program = 'rm', flags = ['r'] }\n\
        match = ['rm -R x', 'rm -f x', 'rm $X']\n\
        not_match = ['ls', 'rm --recursive x', '$X']";
    assert_eq!(
        problems(text),
        [
            "p.toml:2:1: rule no-rm: match: it does not match `rm -f x`",
            "p.toml:2:1: rule no-rm: match: it does not match `rm $X`",
            "p.toml:2:1: rule no-rm: not_match: it matches `rm --recursive x`",
            "p.toml:2:1: rule no-rm: not_match: it may match `$X`",
        ]
    );
}

#[test]
fn what_can_never_match_or_nothing_may_rely_on_is_a_problem() {
    let cases = [
        ("door = 'operater'", "door: nothing is called `operater`; did you mean operator?"),
        ("terminal = 'vim'", "terminal: nothing is called `vim`"),
        (
            "client = 'claude*'\neffect = 'allow'",
            "client: callers choose it, so nothing can be allowed by it",
        ),
        (
            "tags = 'scratch'\neffect = 'allow'",
            "tags: callers choose it, so nothing can be allowed by it",
        ),
        (
            "raw_input = true\nwrites = '/etc/**'",
            "raw_input: such input has no command line for command or writes",
        ),
        (
            "effect = 'allow'\ncommand = { program = 'git', without_flags = 'b' }",
            "command.without_flags: a rule that allows names the flags it allows",
        ),
        ("match = 'x'", "match and not_match need command or writes"),
        ("tool = []", "tool: no pattern is given"),
        ("tool = '[a'", "tool: `[a` is not a pattern: unclosed character class; missing ']'"),
    ];
    check(&cases);
}

/// Each part of a rule, and the one problem that it is.
fn check(cases: &[(&str, &str)]) {
    for (text, problem) in cases {
        let effect = if text.contains("effect") { "" } else { "effect = 'deny'\n" };
        let found = problems(&format!("[[rule]]\nname = 'a'\n{effect}{text}"));
        assert_eq!(found, [format!("p.toml:1:1: rule a: {problem}")], "{text}");
    }
}

#[test]
fn a_rule_has_a_name_of_its_own_without_blanks() {
    let twice = "[[rule]]\nname = 'a'\neffect = 'deny'\n".repeat(2);
    assert_eq!(problems(&twice), ["p.toml:4:1: rule a: another rule has this name"]);
    let spaced = "[[rule]]\nname = 'a b'\neffect = 'deny'";
    assert!(problems(spaced)[0].contains("a name has up to 64 letters"), "{spaced}");
}

#[test]
fn a_word_that_is_not_known_is_a_problem_with_its_place() {
    for (text, place) in [
        ("defualt = 'ask'", "p.toml:1:1: "),
        ("[[rule]]\nname = 'a'\neffect = 'forbid'", "p.toml:3:10: "),
        ("[[rule]]\nname = 'a'\neffect = 'deny'\ncomand = 'x'", "p.toml:4:1: "),
        ("[[rule]]\nname = 'a'\neffect = 'deny'\ntool = 3", "p.toml:4:8: "),
        ("[[rule]\n", "p.toml:1:"),
    ] {
        let found = problems(text);
        assert!(found.len() == 1 && found[0].starts_with(place), "{text}: {found:?}");
    }
}

#[test]
fn a_name_that_no_tool_or_argument_has_is_a_problem() {
    check(&[
        ("tool = 'rnu'", "tool: nothing is called `rnu`; did you mean run?"),
        (
            "tool = ['run', 'read_screen']",
            "tool: rules do not judge `read_screen`, which types and changes nothing",
        ),
        (
            "arguments.comand = 'x'",
            "arguments.comand: no tool that this is about has such an argument; did you mean command?",
        ),
        (
            "tool = 'send_*'\narguments.command = 'x'",
            "arguments.command: no tool that this is about has such an argument",
        ),
        (
            "arguments.format = 'x'",
            "arguments.format: no tool that this is about has such an argument",
        ),
    ]);
}

#[test]
fn what_no_call_of_a_mount_has_is_a_problem() {
    let never = "a call of a mount has none, so with `mount` this never matches";
    for name in ["session = 'x'", "raw_input = true", "command = { program = 'rm' }"] {
        let found =
            problems(&format!("[[rule]]\nname = 'a'\neffect = 'deny'\nmount = 'fs'\n{name}\n"));
        assert!(found.len() == 1 && found[0].contains(never), "{name}: {found:?}");
    }
}

#[test]
fn tools_of_other_servers_are_taken_with_any_arguments() {
    for text in [
        "tool = 'github__create_issue'\narguments.title = 'x'",
        "tool = ['run', 'github__*']\narguments.title = 'x'",
        "tool = 'git*'\narguments.title = 'x'",
        "tool = 'send_*'\narguments.text = 'x'",
        "arguments.command = 'x'",
    ] {
        let rule = format!("[[rule]]\nname = 'a'\neffect = 'deny'\n{text}");
        assert_eq!(problems(&rule), [""; 0], "{text}");
    }
}
