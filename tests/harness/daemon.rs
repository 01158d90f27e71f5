//! A daemon in a process of its own, which writes its log into a file.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::waiting::until;

/// A daemon that was started, and perhaps serves. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it, and waits for nothing.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Self {
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self { child, log }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it logged so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it serves.
    pub(crate) async fn is_ready(&mut self) {
        let ready = || {
            let (ended, said) = (self.ended(), self.said());
            assert_eq!(ended, None, "the daemon ended: {said}");
            said.contains("is ready")
        };
        until("the daemon to serve", ready).await;
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Kills it as nothing can prepare for.
    pub(crate) async fn kill(self) {
        self.signal(Signal::SIGKILL);
        self.ends().await;
    }

    /// Waits for its end and gives back its exit code, if it has one, and what it said.
    pub(crate) async fn ends(mut self) -> (Option<i32>, String) {
        until("the daemon to end", || self.ended().is_some()).await;
        (self.ended().unwrap().code(), self.said())
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
