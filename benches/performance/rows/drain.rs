//! How fast what a program writes is taken in, when it writes as fast as it can.
//!
//! Sessions of the daemon with and without an observer; two threads that do nothing but read and
//! emulate; tmux without a client and with a control client. 80 columns, 24 rows, 10,000 rows kept.
//! The program in the terminal is the same for all and tells when the emulator has taken in its last
//! byte.

use termgate::core::frame::Size;
use termgate::core::moment::Moment;
use termgate::core::screen::{Origin, Screen, ScreenLimits};

use crate::support::agent::Agent;
use crate::support::bare::Emulator;
use crate::support::child::Owned;
use crate::support::daemon::Daemon;
use crate::support::observers::Crowd;
use crate::support::placement::Placement;
use crate::support::pump::Mode;
use crate::support::report::Report;
use crate::support::rounds::{Contender, Effect, take_turns};
use crate::support::speed::{HEAD, compare};
use crate::support::streams::{BLOCK, Stream};
use crate::support::terminals::{Terminal, control};
use crate::support::tmux::Server;

/// Two threads, or a daemon and its shim, need as many.
const PLACEMENT: Placement = Placement::TwoCores;
/// How many blocks of a stream are written in a turn.
const BLOCKS: u8 = 5;

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    report.table("the emulator and the screen alone, without a terminal", HEAD);
    for stream in Stream::ALL {
        alone(report, stream)?;
    }
    let bytes = usize::from(BLOCKS) * BLOCK;
    report.table(format_args!("{} MB a turn, {PLACEMENT}", bytes / 1_000_000), HEAD);
    let mut terminals = Terminals::start()?;
    for mode in Mode::ALL {
        for stream in Stream::ALL {
            terminals.compare(report, stream, mode)?;
        }
    }
    Ok(())
}

/// What the rows, their numbers and the guard cost beside the emulator that is in it.
fn alone(report: &mut Report, stream: Stream) -> anyhow::Result<()> {
    let bytes = stream.make("\r\n");
    let size = Size { rows: 24, cols: 80 };
    let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
    let mut emulator = Emulator::new(None);
    let measured = take_turns(vec![
        Contender::new("screen", 5, || {
            bytes.chunks(screen.slice_bytes()).for_each(|it| screen.feed(Moment::default(), it));
            Ok(Effect::Seen)
        }),
        Contender::new("emulator", 5, || {
            emulator.feed(&bytes);
            Ok(Effect::Seen)
        }),
    ])?;
    if let [ours, yardstick] = measured.as_slice() {
        let speeds = [ours, yardstick].map(|it| (it, it.all.median()));
        compare(report, (stream.name(), BLOCK), speeds, None);
    }
    Ok(())
}

/// A program in a terminal of each kind, and what keeps the terminals.
struct Terminals {
    held: Terminal,
    watched: Terminal,
    bare: Terminal,
    detached: Terminal,
    controlled: Terminal,
    _kept: (Crowd, Daemon, Owned, Owned, [Server; 2]),
}

impl Terminals {
    fn start() -> anyhow::Result<Self> {
        let daemon = Daemon::start(PLACEMENT, "")?;
        let mut agent = Agent::connect(&daemon.gateway())?;
        let held = Terminal::in_session(&mut agent, "held")?;
        let watched = Terminal::in_session(&mut agent, "watched")?;
        let ours = daemon.processes()?;
        let watcher = Crowd::observe(&daemon.gateway(), "watched", 1)?;
        let (bare, program) = Terminal::bare(PLACEMENT)?;
        let servers = [Server::start(PLACEMENT)?, Server::start(PLACEMENT)?];
        let [detached, controlled] =
            [Terminal::in_tmux(&servers[0])?, Terminal::in_tmux(&servers[1])?];
        let control = control(&servers[1])?;
        Ok(Self {
            held: Terminal::new(held, ours.clone()),
            watched: Terminal::new(watched, ours),
            bare,
            detached,
            controlled,
            _kept: (watcher, daemon, program, control, servers),
        })
    }

    fn compare(&mut self, report: &mut Report, stream: Stream, mode: Mode) -> anyhow::Result<()> {
        let written = (stream, mode);
        let measured = take_turns(vec![
            self.held.draining("termgate", written, BLOCKS),
            self.watched.draining("termgate, one observer", written, BLOCKS),
            self.bare.draining("two threads", written, BLOCKS),
            self.detached.draining("tmux", written, BLOCKS),
            self.controlled.draining("tmux, one client", written, BLOCKS),
        ])?;
        let (tmux, client) = match stream {
            Stream::Plain => (1.3, 3.0),
            Stream::Styled | Stream::FullScreen => (2.5, 4.0),
        };
        let [held, watched, bare, detached, controlled] = measured.as_slice() else {
            return Ok(());
        };
        let name = format!("{}, {}", stream.name(), mode.name());
        let work = (name.as_str(), usize::from(BLOCKS) * BLOCK);
        let held = self.held.speed(held);
        let controlled = self.controlled.speed(controlled);
        compare(report, work, [held, self.bare.speed(bare)], Some(0.85));
        compare(report, work, [held, self.detached.speed(detached)], Some(tmux));
        compare(report, work, [self.watched.speed(watched), controlled], Some(client));
        Ok(())
    }
}
