//! How long a call of a mounted server's tool takes, beside the same server on pipes, behind a process that only
//! moves bytes, and behind the gateway of the crate `mcp-proxy`, which clients reach by HTTP alone.
//!
//! All have a server of their own, of the same program, and the answers of all are looked at.

use std::time::Duration;

use anyhow::ensure;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::home::Home;
use crate::support::hop;
use crate::support::mcp_proxy::{MISSING, McpProxy};
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, Effect, Measured, take_turns};
use crate::support::samples::now;
use crate::support::table::{HEAD, compare};
use crate::support::tool_server::{self, SERVE, TOOLS};

/// Calls of a turn.
const CALLS: usize = 2_000;
/// The text that goes there and comes back, so that a request is 200 bytes.
const TEXT: usize = 100;
/// What may be added on one core, in microseconds.
const ADDED_MAX: Target = Target::AtMost(50.0);
/// How much longer it may take on two cores than one more hop.
const HOP_TARGET: f64 = 1.5;
/// How much of the time of `mcp-proxy` it may take: 1.4 times its calls a second.
const RIVAL_TARGET: f64 = 0.71;
/// How long the mounted server may take until its tools are known.
const START_MAX: Duration = Duration::from_secs(20);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, on)
}

fn on(placement: Placement, report: &mut Report) -> anyhow::Result<()> {
    let home = Home::new("")?;
    home.mount(&format!(
        "[mount.mount]\ncommand = {:?}\nargs = [\"{SERVE}\"]\ntrust = \"trusted\"\n",
        std::env::current_exe()?
    ))?;
    let daemon = Daemon::serve(home, placement)?;
    let mut reading = Agent::connect(&daemon.gateway())?;
    let mut writing = Agent::connect(&daemon.gateway())?;
    let [look, change] = TOOLS.map(|tool| format!("mount__{tool}"));
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(TEXT));
    let arguments = arguments.as_str();
    let give_up = now() + START_MAX;
    while let Err(error) = reading.call(&look, format_args!("{arguments}")) {
        ensure!(now() < give_up, "the mount has no tools: {error}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let (_server, said, asked) = tool_server::start()?;
    let mut direct = Agent::greet_on(said, asked)?;
    let (_hop, mut hop) = hop::start(placement)?;
    let mut rival = McpProxy::start()?;
    let call = |agent: &mut Agent, tool: &str| {
        let answer = agent.call(tool, format_args!("{arguments}"))?;
        Ok(seen(answer))
    };
    let mut contenders = vec![
        Contender::new("a tool that reads", CALLS, || call(&mut reading, &look)),
        Contender::new("a tool that writes", CALLS, || call(&mut writing, &change)),
        Contender::new("directly", CALLS, || call(&mut direct, TOOLS[0])),
        Contender::new("one more hop", CALLS, || call(&mut hop, TOOLS[0])),
    ];
    if let Some(rival) = &mut rival {
        contenders
            .push(Contender::new("mcp-proxy", CALLS, || rival.call(&look, arguments).map(seen)));
    }
    let measured = take_turns(contenders)?;
    let [reads, writes, yardsticks @ ..] = measured.as_slice() else { return Ok(()) };
    for ours in [reads, writes] {
        judge(report, placement, ours, yardsticks);
    }
    if yardsticks.len() < 3 {
        println!("\n{MISSING}");
    }
    Ok(())
}

fn seen(answer: &str) -> Effect {
    if answer.contains("xxxx") { Effect::Seen } else { Effect::NotYet }
}

fn judge(report: &mut Report, placement: Placement, ours: &Measured, yardsticks: &[Measured]) {
    let work = ours.name;
    let [direct, hop, rival @ ..] = yardsticks else { return };
    compare(report, work, [ours, direct], None);
    compare(report, work, [ours, hop], (placement == Placement::TwoCores).then_some(HOP_TARGET));
    if let [rival] = rival {
        compare(report, work, [ours, rival], Some(RIVAL_TARGET));
    }
    let added = ours.all.median().saturating_sub(direct.all.median());
    let added = Figure::new(added.as_secs_f64() * 1e6, " µs");
    let target = (placement == Placement::OneCore).then_some(ADDED_MAX);
    let target = report.judge(format!("{work}, added"), &added, target);
    println!("| {work}, added | {added} | | | directly | | | | | {target} |");
}
