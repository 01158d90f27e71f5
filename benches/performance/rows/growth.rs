//! How cost grows with what there is: a list with the sessions, a call with the connections, a read of
//! the screen with the rows of history. The observers are the row `fan_out`.

use anyhow::ensure;

use crate::support::agent::{Agent, number};
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::plot::plot;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, Effect, Measured, take_turns};
use crate::support::table::{HEAD, compare, micros};
use crate::support::tmux::{Control, Output, Server};

const PLACEMENT: Placement = Placement::TwoCores;
/// Repetitions of a turn.
const CALLS: usize = 50;
const SESSIONS: [usize; 4] = [1, 10, 100, 500];
const CONNECTIONS: [usize; 4] = [1, 10, 100, 1_000];
const ROWS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// How much longer a read may take with a hundred times the history, and a list for each session with five times as many.
const READ_MAX: f64 = 1.1;
const EACH_MAX: Target = Target::AtMost(1.1);
/// As much history as may be.
const CONFIG: &str = "[history]\nrows = 1000000\nbytes = 1073741824\n";

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    sessions(report)?;
    connections(report)?;
    history(report)
}

fn point(count: usize, measured: &Measured) -> (f64, f64) {
    (count as f64, measured.all.median().as_secs_f64() * 1e6)
}

fn sessions(report: &mut Report) -> anyhow::Result<()> {
    report.table("sessions", HEAD);
    let daemon = Daemon::start(PLACEMENT, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let server = Server::start(PLACEMENT)?;
    let mut control = Control::create(&server, "s0", "cat", Output::Withheld)?;
    let (mut ours, mut theirs, mut there) = (Vec::new(), Vec::new(), 0);
    for count in SESSIONS {
        for number in there..count {
            let command = r#""command":"cat","lease":false"#;
            agent.call("create_session", format_args!(r#"{{"name":"s{number}",{command}}}"#))?;
            if number > 0 {
                control.run(&format!("new-session -d -s s{number} cat\n"))?;
            }
        }
        there = count;
        let measured = take_turns(vec![
            Contender::new("termgate", CALLS, || {
                let listed = agent.count_sessions()?;
                ensure!(listed == count, "{listed} of {count} sessions are listed");
                Ok(Effect::Seen)
            }),
            Contender::new("tmux -C", CALLS, || {
                let listed = control.run("list-sessions\n")?.lines().count();
                ensure!(listed == count, "{listed} of {count} sessions are listed");
                Ok(Effect::Seen)
            }),
        ])?;
        let [list, tmux] = measured.as_slice() else { return Ok(()) };
        let target = (count == SESSIONS[3]).then_some(1.0);
        compare(report, &format!("list of {count}"), [list, tmux], target);
        ours.push(point(count, list));
        theirs.push(point(count, tmux));
    }
    if let [.., (some, some_took), (most, most_took)] = ours[..] {
        let figure = Figure::new((most_took / most) / (some_took / some), "");
        let what = format!("list of {most}, each session, of {some}");
        let target = report.judge(&what, &figure, EACH_MAX);
        println!("\n{what}: {figure}, {target}");
    }
    plot("sessions", ["sessions", "list, µs"], &[("termgate", ours), ("tmux -C", theirs)])
}

fn connections(report: &mut Report) -> anyhow::Result<()> {
    report.table("connections", "| connections | list_sessions p50 | p99 |");
    let daemon = Daemon::start(PLACEMENT, "")?;
    let (mut all, mut line) = (Vec::new(), Vec::new());
    for count in CONNECTIONS {
        while all.len() < count {
            all.push(Agent::connect(&daemon.gateway())?);
        }
        let measured = take_turns(vec![Contender::new("termgate", CALLS, || {
            all[0].call("list_sessions", format_args!("{{}}"))?;
            Ok(Effect::Seen)
        })])?;
        let [call] = measured.as_slice() else { return Ok(()) };
        println!("| {count} | {} | {} |", micros(call.all.median()), micros(call.all.p99()));
        line.push(point(count, call));
    }
    plot("connections", ["connections", "list_sessions, µs"], &[("termgate", line)])
}

fn history(report: &mut Report) -> anyhow::Result<()> {
    report.table("rows of history", HEAD);
    let daemon = Daemon::start(PLACEMENT, CONFIG)?;
    let mut agents = Vec::new();
    for rows in ROWS {
        let mut agent = Agent::connect(&daemon.gateway())?;
        let command = format_args!(r#""command":"seq {rows}; echo all; exec cat""#);
        agent.call("create_session", format_args!(r#"{{"name":"h{rows}",{command}}}"#))?;
        let all = format_args!(r#"{{"session":"h{rows}","text":"all","since":0}}"#);
        let shown = agent.call("wait_for", all)?;
        ensure!(shown.contains(r#""outcome":"matched""#), "not all was written: {shown}");
        let listed = agent.call("list_sessions", format_args!(r#"{{"session":"h{rows}"}}"#))?;
        let kept = number(listed, "history_rows")?;
        ensure!(kept as usize + 100 > rows, "{kept} of {rows} rows are kept");
        agents.push(agent);
    }
    let contenders = ["1k", "10k", "100k", "1M"].into_iter().zip(ROWS).zip(&mut agents);
    let contenders = contenders.map(|((name, rows), agent)| {
        Contender::new(name, CALLS, move || {
            agent.call("read_screen", format_args!(r#"{{"session":"h{rows}"}}"#))?;
            Ok(Effect::Seen)
        })
    });
    let measured = take_turns(contenders.collect())?;
    let Some((least, more)) = measured.split_first() else { return Ok(()) };
    for longer in more {
        let target = (longer.name == "100k").then_some(READ_MAX);
        compare(report, &format!("read_screen with {}", longer.name), [longer, least], target);
    }
    let line = ROWS.into_iter().zip(&measured).map(|(rows, read)| point(rows, read)).collect();
    plot("history", ["rows of history", "read_screen, µs"], &[("termgate", line)])
}
