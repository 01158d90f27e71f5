//! How long a command takes from the call to its answer with the exit code, beside the same line typed
//! into a bare terminal until the prompt is back, and beside another MCP server that runs commands in a terminal; and what
//! waiting costs.
//!
//! Both shells read the same files and show the same prompt. What `run` adds is the difference.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::libtmux_mcp::{LibtmuxMcp, MISSING};
use crate::support::placement::Placement;
use crate::support::processes::processor_time;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, Effect, Measured, take_turns};
use crate::support::samples::{now, wait_until};
use crate::support::shell::{BareShell, settle_in};
use crate::support::table::{self, HEAD, micros};

/// The shells, and what may be added at the median, in milliseconds.
const SHELLS: [(&str, Target); 3] =
    [("bash", Target::AtMost(1.0)), ("zsh", Target::AtMost(1.0)), ("fish", Target::AtMost(1.5))];
/// Repetitions of a turn.
const COMMANDS: usize = 100;
/// How long a command may take at the 99th percentile, in milliseconds.
const P99_MAX: Target = Target::AtMost(5.0);
/// Repetitions of a turn beside the other server, and how much of its time may be taken.
const BESIDE_RIVAL: usize = 20;
const RIVAL_TARGET: f64 = 0.1;
/// How many waits are open at once, and for how long they are watched.
const WAITS: usize = 50;
const WATCHED: Duration = Duration::from_secs(5);

/// Sessions in which nothing happens, and what is waited for there.
struct Idle {
    what: &'static str,
    /// How each is created, as JSON.
    program: &'static str,
    /// What is run in it first.
    command: Option<&'static str>,
    /// As JSON.
    condition: &'static str,
}

const IDLE: [Idle; 5] = [
    Idle {
        what: "a pattern",
        // One that neither prints nor reads.
        program: r#""command":"sleep 1000""#,
        command: None,
        condition: r#""text":"never""#,
    },
    Idle {
        what: "needs_input",
        program: r#""command":"sleep 1000""#,
        command: None,
        condition: r#""needs_input":true"#,
    },
    Idle {
        what: "command_done, of `sleep` in bash",
        program: r#""command":"bash","args":[]"#,
        command: Some("sleep 1000"),
        condition: r#""command_done":true"#,
    },
    Idle {
        what: "command_done, of `cat` in bash",
        program: r#""command":"bash","args":[]"#,
        command: Some("cat"),
        condition: r#""command_done":true"#,
    },
    Idle {
        what: "command_done, of `sleep` in a shell without marks",
        program: r#""command":"dash","args":[]"#,
        command: Some("sleep 1000"),
        condition: r#""command_done":true"#,
    },
];

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let head = "| shell | run p50 | p99 | bare p50 | p99 | added p50 | target | p99 target |";
    report.on_each_placement(head, |placement, report| {
        SHELLS.into_iter().try_for_each(|shell| compare(report, placement, shell))
    })?;
    report.on_each_placement(HEAD, beside_rival)?;
    let head = format!("| {WAITS} waits for | CPU in {} s | share of a core |", WATCHED.as_secs());
    report.table(Placement::TwoCores, &head);
    for idle in &IDLE {
        waits(idle)?;
    }
    Ok(())
}

fn compare(
    report: &mut Report,
    placement: Placement,
    (shell, added_max): (&str, Target),
) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    settle_in(home.path())?;
    let daemon = Daemon::start(placement, "")?;
    let mut agent = in_session(&daemon, shell, home.path())?;
    let mut bare = BareShell::start(shell, home.path())?;
    let measured = take_turns(vec![
        Contender::new("run", COMMANDS, || run(&mut agent)),
        Contender::new("bare", COMMANDS, || bare.run("true").map(|()| Effect::Seen)),
    ])?;
    let [ours, bare] = &measured[..] else { unreachable!("two were measured") };
    print(report, (shell, added_max), ours, bare);
    Ok(())
}

/// A client with a session in which a shell reads the files in `home`.
fn in_session(daemon: &Daemon, shell: &str, home: &Path) -> anyhow::Result<Agent> {
    let mut agent = Agent::connect(&daemon.gateway())?;
    let arguments = format_args!(
        r#"{{"name":"run","command":"{shell}","args":[],"env":{{"HOME":"{0}","XDG_CONFIG_HOME":"{0}/.config"}}}}"#,
        home.display()
    );
    agent.call("create_session", arguments)?;
    Ok(agent)
}

fn run(agent: &mut Agent) -> anyhow::Result<Effect> {
    let answer = agent.call("run", format_args!(r#"{{"session":"run","command":"true"}}"#))?;
    ensure!(answer.contains(r#""exit_code":0"#), "no code: {answer}");
    Ok(Effect::Seen)
}

fn beside_rival(placement: Placement, report: &mut Report) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    settle_in(home.path())?;
    let Some(mut rival) = LibtmuxMcp::start(placement, home.path())? else {
        println!("\n{MISSING}");
        return Ok(());
    };
    let daemon = Daemon::start(placement, "")?;
    let mut agent = in_session(&daemon, "bash", home.path())?;
    let measured = take_turns(vec![
        Contender::new("run", BESIDE_RIVAL, || run(&mut agent)),
        Contender::new("libtmux-mcp", BESIDE_RIVAL, || rival.run("true").map(|()| Effect::Seen)),
    ])?;
    let [ours, rival] = &measured[..] else { unreachable!("two were measured") };
    table::compare(report, "run, bash", [ours, rival], Some(RIVAL_TARGET));
    Ok(())
}

fn print(
    report: &mut Report,
    (shell, added_max): (&str, Target),
    ours: &Measured,
    bare: &Measured,
) {
    let added = ours.all.median().saturating_sub(bare.all.median());
    let added_max = report.judge(format!("{shell}, added, p50"), &Figure::millis(added), added_max);
    let p99_max = report.judge(format!("{shell}, p99"), &Figure::millis(ours.all.p99()), P99_MAX);
    println!(
        "| {shell} | {} | {} | {} | {} | {} | {added_max} | {p99_max} |",
        micros(ours.all.median()),
        micros(ours.all.p99()),
        micros(bare.all.median()),
        micros(bare.all.p99()),
        micros(added),
    );
}

/// Opens waits that nothing ends, and prints what they cost the daemon.
fn waits(idle: &Idle) -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    let Idle { what, program, command, condition } = idle;
    let served = Daemon::start(Placement::TwoCores, "")?;
    let mut agent = Agent::connect(&served.gateway())?;
    for number in 0..WAITS {
        agent.call("create_session", format_args!(r#"{{"name":"w{number}",{program}}}"#))?;
        if let Some(command) = command {
            begin(&mut agent, number, command)?;
        }
    }
    let mut waiting = Vec::new();
    for number in 0..WAITS {
        let mut one = Agent::connect(&served.gateway())?;
        let arguments =
            format_args!(r#"{{"session":"w{number}",{condition},"timeout_ms":600000}}"#);
        one.begin("wait_for", arguments)?;
        waiting.push(one);
    }
    wait_until(now() + Duration::from_secs(2));
    let process = served.pid()?;
    let before = processor_time(&[process])?;
    wait_until(now() + WATCHED);
    let used = processor_time(&[process])?.saturating_sub(before);
    let share = used.as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
    println!("| {what} | {:.0} ms | {share:.2} % |", used.as_secs_f64() * 1e3);
    drop(waiting);
    Ok(())
}

/// Has the shell of a session begin a command that does not end.
fn begin(agent: &mut Agent, number: usize, command: &str) -> anyhow::Result<()> {
    let run = |command: &str, millis: u32| {
        format!(r#"{{"session":"w{number}","command":"{command}","timeout_ms":{millis}}}"#)
    };
    // Comes back once the shell takes commands.
    agent.call("run", format_args!("{}", run("true", 10_000)))?;
    let begun = agent.call("run", format_args!("{}", run(command, 100)))?;
    ensure!(!begun.contains(r#""status":"completed""#), "it has ended: {begun}");
    Ok(())
}
