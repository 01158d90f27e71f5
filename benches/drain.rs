//! How fast what a program writes is taken in, when it writes as fast as it can.
//!
//! A session of the daemon, whose terminal a process of its own holds, with and without an observer;
//! one of `serve --stdio`, whose terminal is the daemon's own; two threads that do nothing but read
//! and emulate; tmux without a client and with a control client. 80 columns, 24 rows, 10,000 rows
//! kept. The program in the terminal is the same for all and tells when the emulator has taken in
//! its last byte.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod bare;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod placement;
    pub(crate) mod processes;
    pub(crate) mod pump;
    pub(crate) mod rounds;
    pub(crate) mod samples;
    pub(crate) mod shims;
    pub(crate) mod speed;
    pub(crate) mod streams;
    pub(crate) mod tmux;
    pub(crate) mod watcher;
}

use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use nix::unistd::Pid;
use termgate::core::frame::Size;
use termgate::core::moment::Moment;
use termgate::core::screen::{Origin, Screen, ScreenLimits};

use crate::support::agent::Agent;
use crate::support::bare::Emulator;
use crate::support::child::Owned;
use crate::support::daemon::Daemon;
use crate::support::home::Home;
use crate::support::machine::{load, machine};
use crate::support::placement::Placement;
use crate::support::processes::{self, processor_time};
use crate::support::pump::{BYTES, Door, Mode, Pump, serve_if_asked};
use crate::support::rounds::{Contender, Effect, Measured, measure};
use crate::support::samples::Samples;
use crate::support::speed::{HEAD, Speeds};
use crate::support::streams::{BLOCK, Stream};
use crate::support::tmux::{self, Server};
use crate::support::watcher::Watcher;

/// Two threads, or a daemon and its shim, need as many.
const PLACEMENT: Placement = Placement::TwoCores;

fn main() -> anyhow::Result<()> {
    if serve_if_asked()? {
        return Ok(());
    }
    PLACEMENT.enter()?;
    println!("{}; {}", machine(), tmux::version()?);
    println!("\nthe emulator and the screen alone, without a terminal\n\n{HEAD}");
    for stream in Stream::ALL {
        alone(stream)?;
    }
    println!("\n{}\n\n{} MB a turn, {PLACEMENT}\n\n{HEAD}", load(), BYTES / 1_000_000);
    let mut terminals = Terminals::start()?;
    for mode in Mode::ALL {
        for stream in Stream::ALL {
            terminals.compare(stream, mode)?;
        }
    }
    println!("\n{}", load());
    Ok(())
}

/// What the rows, their numbers and the guard cost beside the emulator that is in it.
fn alone(stream: Stream) -> anyhow::Result<()> {
    let bytes = stream.make("\r\n");
    let size = Size { rows: 24, cols: 80 };
    let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
    let mut emulator = Emulator::new(None);
    let measured = measure(vec![
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
        let work = stream.name();
        let used = [ours, yardstick].map(|it| it.all.median());
        println!("{}", Speeds { work, bytes: BLOCK, ours, yardstick, used, target: None });
    }
    Ok(())
}

/// A program in a terminal, and the processes whose work its output is.
struct Terminal {
    pump: Pump,
    processes: Vec<Pid>,
    used: Samples,
}

impl Terminal {
    fn new(pump: Pump, processes: Vec<Pid>) -> Self {
        Self { pump, processes, used: Samples::default() }
    }

    fn draining<'a>(&'a mut self, name: &'static str, stream: Stream, mode: Mode) -> Contender<'a> {
        self.used = Samples::default();
        Contender::new(name, 1, move || {
            let before = processor_time(&self.processes)?;
            self.pump.drain(stream, mode)?;
            self.used.push(processor_time(&self.processes)?.saturating_sub(before));
            Ok(Effect::Seen)
        })
    }
}

/// A program in a terminal of each kind, and what keeps the terminals.
struct Terminals {
    held: Terminal,
    watched: Terminal,
    own: Terminal,
    bare: Terminal,
    detached: Terminal,
    controlled: Terminal,
    _kept: (Watcher, Daemon, OneClient, Owned, Owned, [Server; 2]),
}

/// A daemon with one client, at its standard input and output.
struct OneClient {
    // The end of its input ends it and its sessions.
    _input: UnixStream,
    process: Owned,
    _home: Home,
}

impl OneClient {
    fn start() -> anyhow::Result<(Self, Agent)> {
        let home = Home::new("")?;
        let (ours, theirs) = UnixStream::pair()?;
        let process = home
            .serve(PLACEMENT, &["--stdio"])
            .stdin(OwnedFd::from(theirs.try_clone()?))
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::null())
            .spawn()
            .map(Owned)?;
        let client = Agent::greet(ours.try_clone()?)?;
        Ok((Self { _input: ours, process, _home: home }, client))
    }
}

impl Terminals {
    fn start() -> anyhow::Result<Self> {
        let daemon = Daemon::start(PLACEMENT, "")?;
        let mut agent = Agent::connect(&daemon.gateway())?;
        let held = in_session(&mut agent, "held")?;
        let watched = in_session(&mut agent, "watched")?;
        let runtime = daemon.gateway().with_file_name("");
        let held_by = support::shims::of(&runtime);
        println!("\n{} of 2 terminals of the daemon are held by others", held_by.len());
        let watcher = Watcher::start(&daemon.gateway(), "watched")?;
        let mut ours = held_by;
        ours.push(processes::daemon(&runtime)?);

        let (stdio, mut client) = OneClient::start()?;
        let own = in_session(&mut client, "own")?;
        let of_stdio = vec![Pid::from_raw(stdio.process.0.id().try_into()?)];

        let door = Door::open()?;
        let threads = support::bare::start(PLACEMENT, &door.words()?)?;
        let bare = door.accept()?;

        let servers = [Server::start(PLACEMENT)?, Server::start(PLACEMENT)?];
        let [detached, controlled] = [in_tmux(&servers[0])?, in_tmux(&servers[1])?];
        let control = control(&servers[1])?;
        Ok(Self {
            held: Terminal::new(held, ours.clone()),
            watched: Terminal::new(watched, ours),
            own: Terminal::new(own, of_stdio),
            bare: Terminal::new(bare, vec![Pid::this()]),
            detached: Terminal::new(detached, vec![servers[0].pid()]),
            controlled: Terminal::new(controlled, vec![servers[1].pid()]),
            _kept: (watcher, daemon, stdio, threads, control, servers),
        })
    }

    fn compare(&mut self, stream: Stream, mode: Mode) -> anyhow::Result<()> {
        let measured = measure(vec![
            self.held.draining("held", stream, mode),
            self.watched.draining("held, one observer", stream, mode),
            self.own.draining("own terminal", stream, mode),
            self.bare.draining("two threads", stream, mode),
            self.detached.draining("tmux", stream, mode),
            self.controlled.draining("tmux, one client", stream, mode),
        ])?;
        let (tmux, client) = match stream {
            Stream::Plain => (1.3, 3.0),
            Stream::Styled | Stream::FullScreen => (2.5, 4.0),
        };
        let [held, watched, own, bare, detached, controlled] = measured.as_slice() else {
            return Ok(());
        };
        let work = format!("{}, {}", stream.name(), mode.name());
        let print = |ours: (&Measured, &Terminal), yardstick: (&Measured, &Terminal), target| {
            let used = [ours.1, yardstick.1].map(|terminal| terminal.used.median());
            let (ours, yardstick) = (ours.0, yardstick.0);
            println!("{}", Speeds { work: &work, bytes: BYTES, ours, yardstick, used, target });
        };
        let (held, bare) = ((held, &self.held), (bare, &self.bare));
        print(held, bare, Some(0.85));
        print(held, (detached, &self.detached), Some(tmux));
        print((watched, &self.watched), (controlled, &self.controlled), Some(client));
        print(held, (own, &self.own), None);
        print((own, &self.own), bare, None);
        Ok(())
    }
}

fn in_session(agent: &mut Agent, name: &str) -> anyhow::Result<Pump> {
    let door = Door::open()?;
    let [program, asked, socket] = door.words()?;
    let command = format_args!(r#""command":"{program}","args":["{asked}","{socket}"]"#);
    let session = format_args!(r#"{{"name":"{name}",{command},"rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    door.accept()
}

/// A session of 80 columns and 24 rows that nobody is attached to.
fn in_tmux(server: &Server) -> anyhow::Result<Pump> {
    let door = Door::open()?;
    let [program, asked, socket] = door.words()?;
    let started = server
        .client()
        .args(["set-option", "-g", "history-limit", "10000", ";"])
        .args(["new-session", "-d", "-x", "80", "-y", "24"])
        .arg(format!("exec {program} {asked} {socket}"))
        .status()?;
    ensure!(started.success(), "tmux did not start the program");
    door.accept()
}

/// Attaches a control client that is sent everything, and reads it.
fn control(server: &Server) -> anyhow::Result<Owned> {
    let mut client = server
        .client()
        .args(["-C", "attach-session"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Owned)?;
    let mut output = BufReader::new(client.0.stdout.take().context("it has no output")?);
    let mut line = String::new();
    while !line.starts_with("%session-changed") {
        line.clear();
        ensure!(output.read_line(&mut line)? > 0, "tmux has gone");
    }
    std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
    Ok(client)
}
