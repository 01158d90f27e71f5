//! How long a call takes by itself: `list_sessions` with one session, beside a bare line echo.
//!
//! Both are round trips of the same numbers of bytes over a Unix socket, by the same kind of client,
//! to a process on the same kind of runtime. What is above the echo is the price of the protocol,
//! the rights and the tool.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod echo;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod placement;
    pub(crate) mod rounds;
    pub(crate) mod samples;
    pub(crate) mod shims;
    pub(crate) mod table;
}

use crate::support::agent::{Agent, number};
use crate::support::daemon::Daemon;
use crate::support::echo::{Echo, serve_if_asked};
use crate::support::machine::{load, machine};
use crate::support::placement::Placement;
use crate::support::rounds::{Contender, Effect, measure};
use crate::support::table::{Comparison, HEAD};

/// Repetitions of a turn.
const CALLS: usize = 2_000;
/// Bytes of a request, its end included, once its id has five digits.
const REQUEST: usize = 100;

fn main() -> anyhow::Result<()> {
    if serve_if_asked()? {
        return Ok(());
    }
    println!("{}", machine());
    for placement in Placement::ALL {
        placement.enter()?;
        println!("\n{placement}\n\n{HEAD}");
        compare(placement)?;
        println!("\n{}", load());
    }
    Ok(())
}

fn compare(placement: Placement) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let session = format_args!(r#"{{"name":"bench","command":"cat","rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    let answer = agent.call("list_sessions", format_args!("{{}}"))?.len();
    let mut echo = Echo::start(placement, REQUEST, answer)?;
    let measured = measure(vec![
        Contender::new("termgate", CALLS, || {
            let listed = agent.call("list_sessions", format_args!("{{}}"))?;
            Ok(if number(listed, "rows")? == 24 { Effect::Seen } else { Effect::NotYet })
        }),
        Contender::new("line echo", CALLS, || {
            echo.call()?;
            Ok(Effect::Seen)
        }),
    ])?;
    let target = match placement {
        Placement::OneCore => 2.2,
        Placement::TwoCores => 1.4,
    };
    let [ours, yardstick] = measured.as_slice() else { return Ok(()) };
    println!("{}", Comparison { work: "list_sessions", ours, yardstick, target: Some(target) });
    Ok(())
}
