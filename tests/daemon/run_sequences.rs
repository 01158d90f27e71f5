//! Any sequence of commands gives each its own output and its own code.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use crate::daemon::harness::TestDaemon;
use crate::daemon::shells::{Shell, is_installed};

/// How many sequences are tried, and how many commands the longest has.
const SEQUENCES: usize = 8;
const COMMANDS_MAX: usize = 12;

/// A command with what it prints and returns.
#[derive(Clone, Debug)]
struct Step {
    command: String,
    output: String,
    code: i32,
}

fn step(command: impl Into<String>, output: impl Into<String>, code: i32) -> Step {
    Step { command: command.into(), output: output.into(), code }
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        "[a-z]{1,8}( [a-z]{1,8}){0,20}".prop_map(|words| step(format!("echo {words}"), words, 0)),
        "[a-z ]{0,30}[a-z]".prop_map(|text| step(format!("printf '{text}'"), text, 0)),
        Just(step("false", "", 1)),
        (0..=255).prop_map(|code| step(format!("(exit {code})"), "", code)),
        (1..=60_u32).prop_map(|count| {
            let lines: Vec<_> = (1..=count).map(|number| number.to_string()).collect();
            step(format!("seq {count}"), lines.join("\n"), 0)
        }),
        "[äöüß日本語🦀é]{1,30}".prop_map(|text| step(format!("echo '{text}'"), text, 0)),
        ("[a-z]{1,9}", "[a-z]{1,9}", 0..=255).prop_map(|(one, two, code)| {
            let command = format!("echo {one}\nprintf '\\n{two}\\n'\n(exit {code})");
            step(command, format!("{one}\n\n{two}"), code)
        }),
        "[a-z]{1,9}".prop_map(|word| {
            step(format!("cat <<EOF\n{word}\n  {word}\nEOF"), format!("{word}\n  {word}"), 0)
        }),
    ]
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
    for name in ["bash", "zsh"].into_iter().filter(|name| is_installed(name)) {
        let mut shell = Shell::start(&daemon, name).await;
        for _ in 0..SEQUENCES {
            let sequence = vec(steps(), 1..=COMMANDS_MAX).new_tree(&mut runner).unwrap().current();
            let mut ids = Vec::new();
            for Step { command, output, code } in &sequence {
                let ended = shell.must(command, *code, output).await;
                ids.push(ended.number("command_id"));
            }
            // What was told at once is told later as well, but for a line without an end: the shell's
            // line editor may paint over it.
            for (id, Step { command, output, code }) in ids.into_iter().zip(&sequence) {
                let record = shell.record(id).await;
                let ended = !command.starts_with("printf");
                assert!(record["output"] == *output || !ended, "{name}: {command}: {record}");
                assert_eq!(record["commands"][0]["exit_code"], json!(code), "{name}: {command}");
            }
        }
    }
    daemon.stop().await;
}
