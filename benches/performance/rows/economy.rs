//! What a model reads: the bytes of a long job's outcome, of every row as deltas, of a slow job, and of
//! the list of tools.
//!
//! Yardsticks are in the same run: the rows themselves, and a client that polls the screen.

use std::time::Duration;

use anyhow::ensure;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::observer::Observer;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::now;

/// A job of 2,000 lines, about 49 bytes each, two of which name an error.
const LINES: usize = 2_000;
const FAULTY: [usize; 2] = [700, 1_400];
const JOB: &str = "for i in $(seq 2000); do case $i in 700 | 1400) echo \\\"step $i: error: one file does not compile\\\";; \
    *) echo \\\"step $i: compiled one more file of the project\\\";; esac; done; false";
/// A job that shows its progress four times a second for ten seconds.
const SLOW: &str = "for i in $(seq 40); do printf \\\"\\\\r%3d %% of the job is done\\\" $i; sleep 0.25; done; echo";
const SLOW_TIME: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(250);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    report.table("bytes", "| what | bytes | yardstick | bytes | ratio | target |");
    let daemon = Daemon::start(Placement::TwoCores, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    agent.call("create_session", format_args!(r#"{{"name":"job","command":"bash","args":[]}}"#))?;

    let rows = outcome(report, &mut agent)?;
    deltas(report, &daemon, &mut agent, rows)?;
    slow(report, &daemon, &mut agent)?;
    let list = agent.list_tools()?;
    ensure!(list > 0, "no tools");
    line(report, "`tools/list`", list, ("20 KB", 20_480), 1.0);
    Ok(())
}

fn line(
    report: &mut Report,
    what: &str,
    ours: usize,
    (yardstick, theirs): (&str, usize),
    at_most: f64,
) {
    let ratio = Figure::new(ours as f64 / theirs as f64, "");
    let target = report.judge(format!("{what}, of {yardstick}"), &ratio, Target::AtMost(at_most));
    println!("| {what} | {ours} | {yardstick} | {theirs} | {ratio} | {target} |");
}

/// What `run` answers of the job, and how many bytes all rows of it are.
fn outcome(report: &mut Report, agent: &mut Agent) -> anyhow::Result<usize> {
    let mut run = |lines: &str| -> anyhow::Result<usize> {
        let arguments = format_args!(r#"{{"session":"job","command":"{JOB}"{lines}}}"#);
        let answer = agent.call("run", arguments)?;
        ensure!(answer.contains(r#""exit_code":1"#), "the wrong code: {answer}");
        ensure!(answer.contains(&format!(r#""lines_total":{LINES}"#)), "lines are missing");
        let told = |step: &usize| answer.contains(&row(*step));
        ensure!(FAULTY.iter().all(told), "an error is missing: {answer}");
        text_of(answer)
    };
    let (default, long) = (run("")?, run(r#","max_lines":200"#)?);
    let rows: usize = (1..=LINES).map(|step| row(step).len() + 1).sum();
    line(report, "`run` of a failed job, as it is", default, ("3 KB", 3_072), 1.0);
    line(report, "`run`, 200 lines told", long, ("all rows once", rows), 1.0);
    Ok(rows)
}

/// What the job prints at this step.
fn row(step: usize) -> String {
    match FAULTY.contains(&step) {
        true => format!("step {step}: error: one file does not compile"),
        false => format!("step {step}: compiled one more file of the project"),
    }
}

/// The bytes of the text that a model reads, as they stand in the answer.
fn text_of(answer: &str) -> anyhow::Result<usize> {
    let value: serde_json::Value = serde_json::from_str(answer)?;
    let text = value["result"]["content"][0]["text"].as_str().unwrap_or_default();
    ensure!(!text.is_empty(), "no text: {answer}");
    Ok(text.len())
}

/// Every row of the job as deltas at an observer who wants history as well.
fn deltas(
    report: &mut Report,
    daemon: &Daemon,
    agent: &mut Agent,
    rows: usize,
) -> anyhow::Result<()> {
    let observer = Observer::start(&daemon.gateway(), "job", "history")?;
    let arguments = format_args!(r#"{{"session":"job","command":"{JOB}","max_lines":1}}"#);
    agent.call("run", arguments)?;
    let told = observer.until(&format!("step {LINES}:"))?;
    ensure!(told.rows >= LINES, "rows are missing: {}", told.rows);
    line(report, "text of all rows by deltas", told.text_bytes, ("all rows once", rows), 1.2);
    Ok(())
}

/// A slow job by deltas, beside a client that reads the screen four times a second.
fn slow(report: &mut Report, daemon: &Daemon, agent: &mut Agent) -> anyhow::Result<()> {
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
    line(
        report,
        "a slow job by deltas, rows alone",
        told.text_bytes,
        ("polling at 4 Hz", polled),
        0.3,
    );
    Ok(())
}
