//! How long a call takes by itself: `list_sessions` with one session, beside a tool that does nothing
//! behind the same transport, and a bare line echo.
//!
//! All are round trips of about the same numbers of bytes over a Unix socket, by the same kind of
//! client, to a process on the same kind of runtime. What is above the echo is the price of the
//! protocol; what is above the empty tool, that of the rights and the tool.

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::echo::Echo;
use crate::support::empty_tool;
use crate::support::placement::Placement;
use crate::support::report::Report;
use crate::support::rounds::{Contender, Effect, take_turns};
use crate::support::table::{HEAD, compare};

/// Calls of a turn.
const CALLS: usize = 2_000;
/// Bytes of a request, and how many wait for their answers at once.
const KINDS: [(usize, usize); 4] = [(200, 1), (2_000, 1), (200, 16), (2_000, 16)];
/// Bytes of a request whose arguments are empty, its end included, once its id has five digits.
const REQUEST: usize = 100;
/// How much longer than the empty tool it may take.
const EMPTY_TARGET: f64 = 1.3;

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, |placement, report| {
        KINDS.into_iter().try_for_each(|kind| on(placement, kind, report))
    })
}

fn on(
    placement: Placement,
    (bytes, in_flight): (usize, usize),
    report: &mut Report,
) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let session = format_args!(r#"{{"name":"bench","command":"cat","rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    let answer = agent.call("list_sessions", format_args!("{{}}"))?.len();
    let (_served, mut empty) = empty_tool::start(placement, answer)?;
    let mut echo = Echo::start(placement, bytes, answer)?;
    let filling = " ".repeat(bytes - REQUEST);
    let call = |agent: &mut Agent, tool: &str| {
        for _ in 0..in_flight {
            agent.begin(tool, format_args!("{{{filling}}}"))?;
        }
        (1..in_flight).try_for_each(|_| agent.answer().map(drop))?;
        agent.answer().map(drop)
    };
    let times = CALLS / in_flight;
    let measured = take_turns(vec![
        Contender::new("termgate", times, || {
            call(&mut agent, "list_sessions")?;
            Ok(Effect::Seen)
        }),
        Contender::new("empty tool", times, || {
            call(&mut empty, "list_sessions")?;
            Ok(Effect::Seen)
        }),
        Contender::new("line echo", times, || {
            echo.call(in_flight)?;
            Ok(Effect::Seen)
        }),
    ])?;
    let echo_target = match placement {
        Placement::OneCore => 2.2,
        Placement::TwoCores => 1.4,
    };
    let [ours, empty, echo] = measured.as_slice() else { return Ok(()) };
    let work = format!("{in_flight} of {bytes} B");
    compare(report, &work, [ours, empty], Some(EMPTY_TARGET));
    compare(report, &work, [ours, echo], Some(echo_target));
    Ok(())
}
