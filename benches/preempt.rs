//! How long it takes to end a lease and to get one while the program of the session writes without a pause.
//!
//! Beside each flooded session the same is done in an idle one, in turns and in one run, so that what
//! the machine does meanwhile meets both.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod placement;
    pub(crate) mod samples;
    pub(crate) mod shims;
}

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::machine::{load, machine};
use crate::support::placement::Placement;
use crate::support::samples::{Samples, now};

/// How often each is done.
const ROUNDS: usize = 100;

/// The programs that write without a pause.
const FLOODS: [(&str, &str); 2] = [
    ("yes", "yes"),
    ("long lines", "yes 0123456789012345678901234567890123456789012345678901234567890123456789"),
];

fn main() -> anyhow::Result<()> {
    println!("{}", machine());
    for placement in Placement::ALL {
        placement.enter()?;
        println!("\n{placement}\n");
        println!(
            "| program | work | idle p50 | idle p99 | flooded p50 | flooded p99 | p99 ratio |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, command) in FLOODS {
            flood(placement, name, command)?;
        }
        println!("\n{}", load());
    }
    Ok(())
}

/// What was measured in one session.
#[derive(Default)]
struct Taken {
    acquire: Samples,
    preempt: Samples,
}

fn flood(placement: Placement, name: &str, command: &str) -> anyhow::Result<()> {
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
        let ratio = flooded.p99().as_secs_f64() / idle.p99().as_secs_f64();
        println!(
            "| {name} | {work} | {:.2?} | {:.2?} | {:.2?} | {:.2?} | {ratio:.1} |",
            idle.median(),
            idle.p99(),
            flooded.median(),
            flooded.p99(),
        );
    }
    Ok(())
}
