//! Any sequence of commands gives each its own output and its own code.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use crate::daemon::harness::TestDaemon;
use crate::daemon::shells::{ALL, POSIX, Shell};
use crate::harness::home::is_installed;

/// How many sequences are tried in each shell, and how many commands the longest has.
const SEQUENCES: usize = 8;
const COMMANDS_MAX: usize = 12;

/// More lines than any command here prints.
const LINES: u64 = 1_000;

/// A command with what it prints and returns.
#[derive(Clone, Debug)]
struct Step {
    command: String,
    output: String,
    code: i32,
    /// Its last line has an end. Over one without the line editor of the shell may paint later.
    ended: bool,
}

fn step(command: impl Into<String>, output: impl Into<String>, code: i32) -> Step {
    Step { command: command.into(), output: output.into(), code, ended: true }
}

/// Commands that a shell takes.
fn steps(shell: &str) -> BoxedStrategy<Step> {
    let own = if POSIX.contains(&shell) { posix() } else { fish() };
    prop_oneof![4 => short(), 4 => long(), 2 => own].boxed()
}

fn short() -> BoxedStrategy<Step> {
    prop_oneof![
        "[a-z]{1,8}( [a-z]{1,8}){0,20}".prop_map(|words| step(format!("echo {words}"), words, 0)),
        "[a-z äöüß日本語🦀é]{0,30}[a-z]"
            .prop_map(|text| Step { ended: false, ..step(format!("printf '{text}'"), text, 0) }),
        Just(step("true", "", 0)),
        Just(step("false", "", 1)),
        Just(step("echo", "", 0)),
        (0..=255).prop_map(|code| step(format!("sh -c 'exit {code}'"), "", code)),
        "[äöüß日本語🦀é]{1,30}".prop_map(|text| step(format!("echo '{text}'"), text, 0)),
        ("[a-z]{1,9}", "[a-z]{1,9}", 0..=255).prop_map(|(one, two, code)| {
            let command = format!("sh -c 'echo {one}; echo {two} >&2; exit {code}'");
            step(command, format!("{one}\n{two}"), code)
        }),
        // What goes on in the background keeps the terminal.
        "[a-z]{1,9}".prop_map(|word| step(format!("sh -c 'sleep 60 & echo {word}'"), word, 0)),
    ]
    .boxed()
}

/// Of several lines, or with an output that is longer or wider than the screen.
fn long() -> BoxedStrategy<Step> {
    prop_oneof![
        (1..=600_u32).prop_map(|count| {
            let lines: Vec<_> = (1..=count).map(|number| number.to_string()).collect();
            step(format!("seq {count}"), lines.join("\n"), 0)
        }),
        prop_oneof![100..=500_usize, Just(120), Just(240)].prop_map(|width| {
            step(format!("printf '%0{width}d\\n' 7"), format!("{:0>width$}", 7), 0)
        }),
        ("[a-z]{1,9}", "[a-z]{1,9}", 0..=255).prop_map(|(one, two, code)| {
            let command = format!("echo {one}\nprintf '\\n{two}\\n'\nsh -c 'exit {code}'");
            step(command, format!("{one}\n\n{two}"), code)
        }),
        "[a-z]{1,9}".prop_map(|word| {
            step(format!("echo '{word}\n  {word}'"), format!("{word}\n  {word}"), 0)
        }),
    ]
    .boxed()
}

fn posix() -> BoxedStrategy<Step> {
    prop_oneof![
        (0..=255).prop_map(|code| step(format!("(exit {code})"), "", code)),
        "[a-z]{1,9}".prop_map(|word| {
            step(format!("cat <<EOF\n{word}\n  {word}\nEOF"), format!("{word}\n  {word}"), 0)
        }),
        ("[a-z]{1,9}", 0..=255).prop_map(|(word, code)| {
            let command = format!("for i in 1 2; do\n  echo {word}$i\ndone\n(exit {code})");
            step(command, format!("{word}1\n{word}2"), code)
        }),
    ]
    .boxed()
}

fn fish() -> BoxedStrategy<Step> {
    prop_oneof![
        "[a-z]{1,9}"
            .prop_map(|word| { step(format!("begin\n  echo {word}\n  false\nend"), word, 1) }),
        ("[a-z]{1,9}", 0..=255).prop_map(|(word, code)| {
            let command = format!("for i in 1 2\n  echo {word}$i\nend\nsh -c 'exit {code}'");
            step(command, format!("{word}1\n{word}2"), code)
        }),
    ]
    .boxed()
}

/// Runs these commands, and looks at what is told of each at once and later.
async fn check(shell: &mut Shell, sequence: &[Step]) {
    let mut ids = Vec::new();
    for Step { command, output, code, .. } in sequence {
        let ended = shell.run_with(command, json!({"max_lines": LINES})).await;
        shell.check(command, &ended, *code);
        assert_eq!(ended.output(), output, "{}: {command}: {sequence:?}", shell.name);
        ids.push(ended.number("command_id"));
    }
    for (id, Step { command, output, code, ended }) in ids.into_iter().zip(sequence) {
        let record = shell.call("read_commands", json!({"id": id, "head": LINES})).await;
        let name = shell.name;
        assert!(record["output"] == *output || !ended, "{name}: {command}: {record}");
        let code = json!(code);
        assert_eq!(record["commands"][0]["exit_code"], code, "{name}: {command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_sequence_of_commands_gives_each_its_own_output_and_code() {
    let seed = std::env::var("TERMGATE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("TERMGATE_TEST_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let daemon = TestDaemon::writable().await;
    for name in ALL.into_iter().filter(|name| is_installed(name)) {
        let mut shell = Shell::start(&daemon, name).await;
        for _ in 0..SEQUENCES {
            let sequences = vec(steps(name), 1..=COMMANDS_MAX);
            check(&mut shell, &sequences.new_tree(&mut runner).unwrap().current()).await;
        }
    }
    daemon.stop().await;
}
