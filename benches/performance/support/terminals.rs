//! Terminals in which the pump writes: of the daemon, of tmux and of two threads.

use std::io::{self, BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::bare;
use crate::support::child::Owned;
use crate::support::placement::Placement;
use crate::support::processes::processor_time;
use crate::support::pump::{Door, Mode, Pump};
use crate::support::rounds::{Contender, Effect, Measured};
use crate::support::samples::Samples;
use crate::support::speed::Speed;
use crate::support::streams::Stream;
use crate::support::tmux::Server;

/// A pump in a terminal, and the processes whose work its output is.
#[derive(Debug)]
pub(crate) struct Terminal {
    pump: Pump,
    processes: Vec<Pid>,
    used: Samples,
}

impl Terminal {
    /// In a new session of a daemon.
    ///
    /// # Errors
    /// When it is not created.
    pub(crate) fn in_session(agent: &mut Agent, name: &str) -> anyhow::Result<Pump> {
        let door = Door::open()?;
        let [program, asked, socket] = door.words()?;
        let command = format_args!(r#""command":"{program}","args":["{asked}","{socket}"]"#);
        let session = format_args!(r#"{{"name":"{name}",{command},"rows":24,"cols":80}}"#);
        agent.call("create_session", session)?;
        door.accept()
    }

    /// One whose output is the work of these processes.
    pub(crate) fn new(pump: Pump, processes: Vec<Pid>) -> Self {
        Self { pump, processes, used: Samples::default() }
    }

    /// Read and emulated by two threads of this process, while the program is kept.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn bare(placement: Placement) -> anyhow::Result<(Self, Owned)> {
        let door = Door::open()?;
        let program = bare::start(placement, &door.words()?)?;
        Ok((Self::new(door.accept()?, vec![Pid::this()]), program))
    }

    /// A session of tmux of 80 columns and 24 rows that nobody is attached to.
    ///
    /// # Errors
    /// When it is not created.
    pub(crate) fn in_tmux(server: &Server) -> anyhow::Result<Self> {
        let door = Door::open()?;
        let [program, asked, socket] = door.words()?;
        let started = server
            .client()
            .args(["set-option", "-g", "history-limit", "10000", ";"])
            .args(["new-session", "-d", "-x", "80", "-y", "24"])
            .arg(format!("exec {program} {asked} {socket}"))
            .status()?;
        ensure!(started.success(), "tmux did not start the program");
        Ok(Self::new(door.accept()?, vec![server.pid()]))
    }

    /// Has so many blocks of a stream written in each turn.
    pub(crate) fn draining<'a>(
        &'a mut self,
        name: &'static str,
        (stream, mode): (Stream, Mode),
        blocks: u8,
    ) -> Contender<'a> {
        self.used = Samples::default();
        Contender::new(name, 1, move || {
            let before = processor_time(&self.processes)?;
            self.pump.drain(stream, mode, blocks)?;
            self.used.push(processor_time(&self.processes)?.saturating_sub(before));
            Ok(Effect::Seen)
        })
    }

    /// What was measured, with the processor time that it took.
    pub(crate) fn speed<'a>(&self, measured: &'a Measured) -> Speed<'a> {
        (measured, self.used.median())
    }
}

/// Attaches a control client to the only session of a server, which is sent everything and read.
///
/// # Errors
/// When it cannot attach.
pub(crate) fn control(server: &Server) -> anyhow::Result<Owned> {
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
