//! What a model reads: the bytes of a long job's outcome, of every row as deltas, of a slow job, and of
//! the list of tools.
//!
//! Yardsticks are in the same run: the rows themselves, and a client that polls the screen.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod observer;
    pub(crate) mod placement;
    pub(crate) mod samples;
    pub(crate) mod shims;
}

use std::time::Duration;

use anyhow::ensure;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::machine::machine;
use crate::support::observer::Observer;
use crate::support::placement::Placement;
use crate::support::samples::now;

/// A job of 2,000 lines, about 49 bytes each.
const LINES: usize = 2_000;
const JOB: &str = "for i in $(seq 2000); do echo \\\"step $i: compiled one more file of the project\\\"; done; false";
/// A job that shows its progress four times a second for ten seconds.
const SLOW: &str = "for i in $(seq 40); do printf \\\"\\\\r%3d %% of the job is done\\\" $i; sleep 0.25; done; echo";
const SLOW_TIME: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(250);

fn main() -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    println!("{}\n", machine());
    println!("| what | bytes | yardstick | bytes | ratio | target |\n|---|---|---|---|---|---|");
    let daemon = Daemon::start(Placement::TwoCores, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    agent.call("create_session", format_args!(r#"{{"name":"job","command":"bash","args":[]}}"#))?;

    let rows = outcome(&mut agent)?;
    deltas(&daemon, &mut agent, rows)?;
    slow(&daemon, &mut agent)?;
    let list = agent.list_tools()?;
    ensure!(list > 0, "no tools");
    line("`tools/list`", list, "20 KB", 20_480, 1.0);
    Ok(())
}

fn line(what: &str, ours: usize, yardstick: &str, theirs: usize, target: f64) {
    let ratio = ours as f64 / theirs as f64;
    let verdict = if ratio <= target { "met" } else { "missed" };
    println!("| {what} | {ours} | {yardstick} | {theirs} | {ratio:.3} | ≤ {target}: {verdict} |");
}

/// What `run` answers of the job, and how many bytes all rows of it are.
fn outcome(agent: &mut Agent) -> anyhow::Result<usize> {
    let mut run = |lines: &str| -> anyhow::Result<usize> {
        let arguments = format_args!(r#"{{"session":"job","command":"{JOB}"{lines}}}"#);
        let answer = agent.call("run", arguments)?;
        ensure!(answer.contains(r#""exit_code":1"#), "the wrong code: {answer}");
        ensure!(answer.contains(&format!(r#""lines_total":{LINES}"#)), "lines are missing");
        text_of(answer)
    };
    let (default, long) = (run("")?, run(r#","max_lines":200"#)?);
    let rows: usize = (1..=LINES)
        .map(|step| format!("step {step}: compiled one more file of the project\n").len())
        .sum();
    line("`run` of a failed job, as it is", default, "3 KB", 3_072, 1.0);
    line("`run`, 200 lines told", long, "all rows once", rows, 1.0);
    Ok(rows)
}

/// The bytes of the text that a model reads, as they stand in the answer.
fn text_of(answer: &str) -> anyhow::Result<usize> {
    let value: serde_json::Value = serde_json::from_str(answer)?;
    let text = value["result"]["content"][0]["text"].as_str().unwrap_or_default();
    ensure!(!text.is_empty(), "no text: {answer}");
    Ok(text.len())
}

/// Every row of the job as deltas at an observer who wants history as well.
fn deltas(daemon: &Daemon, agent: &mut Agent, rows: usize) -> anyhow::Result<()> {
    let observer = Observer::start(&daemon.gateway(), "job", "history")?;
    let arguments = format_args!(r#"{{"session":"job","command":"{JOB}","max_lines":1}}"#);
    agent.call("run", arguments)?;
    let told = observer.until(&format!("step {LINES}:"))?;
    ensure!(told.rows >= LINES, "rows are missing: {}", told.rows);
    line("text of all rows by deltas", told.text_bytes, "all rows once", rows, 1.2);
    Ok(())
}

/// A slow job by deltas, beside a client that reads the screen four times a second.
fn slow(daemon: &Daemon, agent: &mut Agent) -> anyhow::Result<()> {
    agent.call("send_text", format_args!(r#"{{"session":"job","text":"clear","enter":true}}"#))?;
    let observer = Observer::start(&daemon.gateway(), "job", "foreground")?;
    let arguments =
        format_args!(r#"{{"session":"job","text":"{SLOW}","enter":true,"paste":"never"}}"#);
    agent.call("send_text", arguments)?;
    let until = now() + SLOW_TIME;
    let mut polled = 0;
    while now() < until {
        polled += text_of(agent.call("read_screen", format_args!(r#"{{"session":"job"}}"#))?)?;
        std::thread::park_timeout(POLL);
    }
    let told = observer.until(" 40 %")?;
    line("a slow job by deltas, rows alone", told.text_bytes, "polling at 4 Hz", polled, 0.3);
    Ok(())
}
