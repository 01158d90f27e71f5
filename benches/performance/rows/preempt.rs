//! How long it takes to end a lease and to get one while the program of the session writes without a pause.
//!
//! Beside each flooded session the same is done in an idle one, in turns and in one run, so that what
//! the machine does meanwhile meets both.

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::{Samples, now};

/// How often each is done.
const ROUNDS: usize = 100;

/// How long each may take under a flood, in milliseconds.
const P99_MAX: Target = Target::AtMost(50.0);
const HEAD: &str = "| program | work | idle p50 | idle p99 | flooded p50 | flooded p99 | p99 ratio | \
    target |";

/// The programs that write without a pause.
const FLOODS: [(&str, &str); 2] = [
    ("yes", "yes"),
    ("long lines", "yes 0123456789012345678901234567890123456789012345678901234567890123456789"),
];

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, |placement, report| {
        FLOODS.into_iter().try_for_each(|(name, command)| flood(report, placement, name, command))
    })
}

/// What was measured in one session.
#[derive(Default)]
struct Taken {
    acquire: Samples,
    preempt: Samples,
}

fn flood(
    report: &mut Report,
    placement: Placement,
    name: &str,
    command: &str,
) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let mut operator = Agent::connect(&daemon.gateway().with_file_name("operator.sock"))?;
    for (session, command) in [("idle", "cat"), ("flooded", command)] {
        let asked = format_args!(r#"{{"name":"{session}","command":"{command}"}}"#);
        agent.call("create_session", asked)?;
    }
    let (mut idle, mut flooded) = (Taken::default(), Taken::default());
    for _ in 0..ROUNDS {
        for (session, taken) in [("idle", &mut idle), ("flooded", &mut flooded)] {
            let begun = now();
            agent.call("acquire_lease", format_args!(r#"{{"session":"{session}"}}"#))?;
            taken.acquire.push(now() - begun);
            let begun = now();
            operator.call("preempt_lease", format_args!(r#"{{"session":"{session}"}}"#))?;
            taken.preempt.push(now() - begun);
        }
    }
    for (work, idle, flooded) in
        [("acquire", &idle.acquire, &flooded.acquire), ("preempt", &idle.preempt, &flooded.preempt)]
    {
        let p99 = Figure::millis(flooded.p99());
        let target = report.judge(format!("{work}, {name}, p99"), &p99, P99_MAX);
        let ratio = flooded.p99().as_secs_f64() / idle.p99().as_secs_f64();
        println!(
            "| {name} | {work} | {:.2?} | {:.2?} | {:.2?} | {:.2?} | {ratio:.1} | {target} |",
            idle.median(),
            idle.p99(),
            flooded.median(),
            flooded.p99(),
        );
    }
    Ok(())
}
