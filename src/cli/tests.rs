//! The grammar of the command line, word by word.

use std::collections::BTreeSet;

use clap::CommandFactory;
use serde_json::Value;

use super::*;
use crate::surface::tool::ToolEntry;
use crate::surface::{control, terminal};

fn parse(line: &str) -> Result<CommandLine, clap::Error> {
    CommandLine::try_parse_from(line.split(' '))
}

#[test]
fn the_grammar_is_consistent() {
    CommandLine::command().debug_assert();
}

#[test]
fn every_command_of_the_grammar_is_understood() {
    for line in [
        "termgate serve --read-only --log-format json -vv --config c.toml --socket /g.sock",
        "termgate serve --stdio --allow-write",
        "termgate serve --linger 10m",
        "termgate mcp",
        "termgate mcp --session s --read-only",
        "termgate mcp --allow-write",
        "termgate mcp --no-spawn",
        "termgate mcp --socket /g.sock",
        "termgate mcp --token-file t --session s",
        "termgate token new ci --out ci.token",
        "termgate token new ci --out ci.token --read-only --expires 30d --json",
        "termgate token ls --json",
        "termgate token revoke ci",
        "termgate new",
        "termgate attach s --allow-write",
        "termgate new --name n --cwd /tmp --lease --rows 24 --cols 80 --tag a --tag b --env K=V -- \
         make -j2",
        "termgate ls --json",
        "termgate send s text --enter --lease-file f --until-text done --wait 10s",
        "termgate keys s C-c --lease-file - --expect 12",
        "termgate send s text --until-idle 200ms --paste never",
        "termgate keys s C-c Up Enter",
        "termgate run s make",
        "termgate run --timeout 5s --lease-file f --max-lines 10 s make -j4 --json",
        "termgate run s -- make -j4",
        "termgate commands s --limit 5",
        "termgate commands s 3 --head 5 --tail 5 --json",
        "termgate wait s --command-done --needs-input",
        "termgate read s --format cells --since 7",
        "termgate history s --from 5 --count 10",
        "termgate history s --tail 20",
        "termgate wait s t --text p --pattern q --stop-text r --stop-pattern x --since 3 --timeout 1m",
        "termgate wait s --pattern p --idle 500ms --change --exit",
        "termgate watch s --since 9 --lane history --rate 10",
        "termgate lease acquire s --ttl 1m --wait 10s --reason r --lease-file f",
        "termgate lease renew s --lease-file f --ttl 5m",
        "termgate lease release s --lease-file f --hand-to claude#p3",
        "termgate lease renew s",
        "termgate call resize session=s --lease-file f",
        "termgate lease ls",
        "termgate lease preempt s",
        "termgate allow-write on --session s --for 10m",
        "termgate allow-write off --tenant uid:1000",
        "termgate allow-write status",
        "termgate kill s",
        "termgate call read_screen session=s count=5 --json-args file",
        "termgate config show --origin --config c.toml",
        "termgate config check",
        "termgate config check c.toml --json",
        "termgate config path",
        "termgate why lease_held",
        "termgate ls --daemon --json",
        "termgate ls --daemon --prometheus",
        "termgate top --once",
        "termgate top --interval 5s --json",
        "termgate doctor --json",
        "termgate completions zsh",
        "termgate integrate bash",
        "termgate man --out dir",
        "termgate install --client all --dry-run",
        "termgate install --client codex --scope project --allow-write --name tg --json",
        "termgate install --client vscode --print --read-only",
        "termgate install --client zed --uninstall --dry-run",
        "termgate stop",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn errors_name_flags_and_arguments_that_their_command_has() {
    // Of `termgate/observe`, which is no tool.
    const OBSERVED: [&str; 4] = ["session", "since", "lane", "max_rate_hz"];
    let tools = terminal::entries().into_iter().chain(control::entries());
    let members = |tool: ToolEntry| {
        let parameters = tool.description().unwrap().input_schema["properties"].clone();
        let until = parameters["until"]["properties"].clone();
        let keys =
            |it: &Value| it.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect();
        let inner: Vec<String> = keys(&until);
        let mut all: Vec<String> = keys(&parameters);
        all.extend(inner.into_iter().map(|name| format!("until.{name}")));
        all
    };
    let parameters: BTreeSet<String> = tools.flat_map(members).collect();
    for (command, names) in [
        ("new", new::TYPED),
        ("run", run::TYPED),
        ("commands", commands::TYPED),
        ("send", send::TYPED),
        ("keys", keys::TYPED),
        ("read", read::TYPED),
        ("history", history::TYPED),
        ("wait", wait::TYPED),
        ("watch", watch::TYPED),
        ("lease", lease::TYPED),
        ("allow-write", allow_write::TYPED),
    ] {
        let mut grammar = CommandLine::command();
        grammar.build();
        let command = grammar.find_subcommand(command).unwrap();
        let all = std::iter::once(command).chain(command.get_subcommands());
        let usages: String =
            all.flat_map(clap::Command::get_arguments).map(|it| format!(" {it} ")).collect();
        for (parameter, typed) in names {
            let is_known = parameters.contains(*parameter) || OBSERVED.contains(parameter);
            assert!(is_known, "no tool has the parameter {parameter}");
            let typed = typed.trim_end_matches(" or TERMGATE_LEASE");
            let there = [' ', '<', '['].iter().any(|begin| {
                [' ', '>', ']'].iter().any(|end| usages.contains(&format!("{begin}{typed}{end}")))
            });
            assert!(there, "{typed} in {usages}");
        }
    }
}

#[test]
fn what_is_not_in_the_grammar_is_refused() {
    for line in [
        "termgate",
        "termgate serve --session id",
        "termgate ls --prometheus",
        "termgate ls --daemon --prometheus --json",
        "termgate top --interval 5",
        "termgate completions tcsh",
        "termgate integrate mksh",
        "termgate serve --stdio --linger 10m",
        "termgate serve --stdio --socket /g.sock",
        "termgate mcp --read-only --allow-write",
        "termgate mcp --read-only --socket /g.sock",
        "termgate mcp --session s --socket /g.sock",
        "termgate mcp --allow-write --session s",
        "termgate mcp --allow-write --socket /g.sock",
        "termgate mcp --allow-write --no-spawn",
        "termgate new --allow-write --no-spawn",
        "termgate new --allow-write --socket /o.sock",
        "termgate attach --allow-write --no-spawn",
        "termgate attach --allow-write --socket /o.sock",
        "termgate token",
        "termgate token new ci",
        "termgate token new --out ci.token",
        "termgate token new -ci --out ci.token",
        "termgate token new c#i --out ci.token",
        "termgate token revoke",
        "termgate wait s",
        "termgate run s",
        "termgate run --timeout 5 s make",
        "termgate commands",
        "termgate commands s 3 --limit 5",
        "termgate commands s --head 5",
        "termgate commands s three",
        "termgate wait s --idle 5",
        "termgate history s --from 5 --tail 5",
        "termgate send s text --until-text",
        "termgate send s text --expect now",
        "termgate keys s",
        "termgate lease renew",
        "termgate lease renew s --lease id",
        "termgate lease acquire s --lease id",
        "termgate send s text --lease id",
        "termgate run --lease-file f -- true",
        "termgate allow-write maybe",
        "termgate config",
        "termgate config set lease.auto true",
        "termgate call t novalue",
        "termgate install",
        "termgate install --client emacs",
        "termgate install --client zed --print --uninstall",
        "termgate install --client zed --read-only --allow-write",
        "termgate install --client zed --name -x",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn json_is_wanted_wherever_the_flag_stands_but_not_behind_the_dashes() {
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    assert!(wants_json(&words("termgate --json ls")));
    assert!(wants_json(&words("termgate ls --json")));
    assert!(!wants_json(&words("termgate new -- jq --json")));
}

#[test]
fn the_words_of_a_command_that_is_run_are_its_own() {
    let parsed = parse("termgate run s jq --json").unwrap();
    assert!(!parsed.json);
    assert!(parse("termgate run --json s jq").unwrap().json);
}

#[test]
fn a_mistake_in_the_words_ends_with_two_and_help_with_zero() {
    for (line, number) in [("termgate nosuch", 2), ("termgate --help", 0), ("termgate ls -h", 0)] {
        let error = parse(line).expect_err("these are no commands");
        assert_eq!(exit_of(&error).number(), number, "{line}");
    }
}

#[test]
fn a_single_word_after_run_is_answered_with_how_to_run_it() {
    let words = ["termgate", "run", "echo solo"].map(OsString::from);
    let mut error = CommandLine::try_parse_from(&words).unwrap_err();
    advise(&mut error, &words);
    assert!(error.to_string().contains("termgate run -- echo solo"), "{error}");
    let words = ["termgate", "run"].map(OsString::from);
    let mut error = CommandLine::try_parse_from(&words).unwrap_err();
    advise(&mut error, &words);
    assert!(!error.to_string().contains("new session"), "{error}");
}
