//! What observers cost the program that they watch: a drain with a hundred of them beside one with
//! none, and beside tmux with ten control clients.

use crate::support::agent::Agent;
use crate::support::child::Owned;
use crate::support::daemon::Daemon;
use crate::support::observers::Crowd;
use crate::support::placement::Placement;
use crate::support::pump::Mode;
use crate::support::report::Report;
use crate::support::rounds::take_turns;
use crate::support::speed::{HEAD, compare};
use crate::support::streams::{BLOCK, Stream};
use crate::support::terminals::{Terminal, control};
use crate::support::tmux::Server;

const PLACEMENT: Placement = Placement::TwoCores;
const OBSERVERS: usize = 100;
const CLIENTS: usize = 10;
/// How many blocks of a stream are written in a turn: tmux takes seconds for each.
const BLOCKS: u8 = 2;

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    let bytes = usize::from(BLOCKS) * BLOCK;
    report.table(format_args!("{} MB a turn, {PLACEMENT}", bytes / 1_000_000), HEAD);
    let daemon = Daemon::start(PLACEMENT, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let alone = Terminal::in_session(&mut agent, "alone")?;
    let watched = Terminal::in_session(&mut agent, "watched")?;
    let processes = daemon.processes()?;
    let (mut alone, mut watched) =
        (Terminal::new(alone, processes.clone()), Terminal::new(watched, processes));
    let _observers = Crowd::observe(&daemon.gateway(), "watched", OBSERVERS)?;
    let server = Server::start(PLACEMENT)?;
    let mut tmux = Terminal::in_tmux(&server)?;
    let _clients: Vec<Owned> = (0..CLIENTS).map(|_| control(&server)).collect::<Result<_, _>>()?;
    for stream in Stream::ALL {
        let written = (stream, Mode::Cooked);
        let measured = take_turns(vec![
            watched.draining("termgate, 100 observers", written, BLOCKS),
            alone.draining("termgate", written, BLOCKS),
            tmux.draining("tmux, 10 clients", written, BLOCKS),
        ])?;
        let [ours, unwatched, theirs] = measured.as_slice() else { return Ok(()) };
        let (work, ours) = ((stream.name(), bytes), watched.speed(ours));
        compare(report, work, [ours, alone.speed(unwatched)], Some(0.8));
        compare(report, work, [ours, tmux.speed(theirs)], Some(10.0));
    }
    Ok(())
}
