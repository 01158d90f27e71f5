//! The program with a client at its standard input and output.
//!
//! Both are one socket, so that the clients of other tests can speak to it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::process::{self, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use termgate::config::paths::RuntimePaths;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::daemon::harness::{Era, Wire};
use crate::harness::home::Home;
use crate::harness::processes::{dies, lives};
use crate::harness::waiting::soon;

impl Home {
    pub(crate) fn paths(&self) -> RuntimePaths {
        RuntimePaths::at(self.ground().join("run/termgate")).unwrap()
    }

    /// Runs the program to its end, and gives back its exit code and what it said.
    pub(crate) fn outcome(&self, line: &str) -> (i32, String, String) {
        let output = self.run(line);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Starts the program with a client at its standard input and output.
    pub(crate) async fn client(&self, line: &str, era: Era) -> Piped {
        let mut piped = self.silent(line, era);
        piped.wire.greet().await;
        piped
    }

    /// Starts the program with a client that says nothing yet.
    pub(crate) fn silent(&self, line: &str, era: Era) -> Piped {
        let (child, stream) = piped(self.termgate(line));
        Piped { child, wire: Wire::over(stream, era) }
    }

    /// The daemon that holds the lock now, if it lives.
    pub(crate) fn daemon(&self) -> Option<i32> {
        let text = fs::read_to_string(self.paths().lock()).ok()?;
        let pid = text.trim().parse().ok()?;
        lives(pid).then_some(pid)
    }

    /// Kills the daemon as nothing can prepare for, and waits until it is dead.
    pub(crate) async fn kill_daemon(&self) {
        let pid = self.daemon().expect("a daemon runs");
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        dies(pid).await;
    }
}

/// Starts a command with one end of a socket as standard input and output; its remarks go where
/// nobody reads them.
pub(crate) fn piped(mut command: process::Command) -> (Child, UnixStream) {
    let (ours, its) = net::UnixStream::pair().unwrap();
    let its = OwnedFd::from(its);
    command.stdin(its.try_clone().unwrap()).stdout(its).stderr(Stdio::null());
    let child = Command::from(command).spawn().unwrap();
    ours.set_nonblocking(true).unwrap();
    (child, UnixStream::from_std(ours).unwrap())
}

/// The program, and the client at its standard input and output.
#[derive(Debug)]
pub(crate) struct Piped {
    pub(crate) child: Child,
    pub(crate) wire: Wire,
}

impl Piped {
    /// Ends the client's output, which is the program's input, and waits until the program has
    /// ended; what it still says can be read.
    pub(crate) async fn end(self) -> (ExitStatus, Vec<serde_json::Value>) {
        let Self { mut child, wire } = self;
        let Wire { sender, mut receiver } = wire;
        drop(sender);
        let last = receiver.rest().await;
        (soon("the program to end", child.wait()).await.unwrap(), last)
    }

    /// Sends the program a signal and waits until it has ended.
    pub(crate) async fn signalled(mut self, signal: Signal) -> ExitStatus {
        let pid = self.child.id().unwrap();
        kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
        soon("the program to end", self.child.wait()).await.unwrap()
    }
}
