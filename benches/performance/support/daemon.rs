//! A daemon of the bench's own: the program as it is shipped, in a directory of its own.
//!
//! It knows nothing of calls. The real process is started, since what agents wait for includes its
//! scheduling.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use nix::unistd::Pid;

use crate::support::allocations::Allocations;
use crate::support::child::Owned;
use crate::support::home::Home;
use crate::support::placement::Placement;
use crate::support::processes::daemon;
use crate::support::shims;

/// A running daemon that lets clients write.
#[derive(Debug)]
pub(crate) struct Daemon {
    // Ended first, so that nobody uses the directory when it is removed.
    _process: Owned,
    home: Home,
}

impl Daemon {
    /// Starts it with this configuration and waits until clients can come.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(placement: Placement, config: &str) -> anyhow::Result<Self> {
        Self::serve(Home::new(config)?, placement)
    }

    /// The same in a home that is already there.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn serve(home: Home, placement: Placement) -> anyhow::Result<Self> {
        let command = home.serve(placement, &[]);
        Self::begin(home, command)
    }

    /// One whose requests for memory are counted.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn counted(placement: Placement, allocations: &Allocations) -> anyhow::Result<Self> {
        let home = Home::new("")?;
        let mut command = home.serve(placement, &[]);
        command.envs(allocations.environment());
        Self::begin(home, command)
    }

    fn begin(home: Home, mut command: Command) -> anyhow::Result<Self> {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map(Owned)
            .context("cannot start the daemon")?;
        let stderr = process.0.stderr.take().context("the daemon has no standard error")?;
        let mut said = BufReader::new(stderr);
        wait_for_banner(&mut said)?;
        // A daemon whose log nobody reads would stop when the pipe is full.
        std::thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        Ok(Self { _process: process, home })
    }

    /// Its process, and those that hold the terminals of its sessions.
    ///
    /// # Errors
    /// When it has gone.
    pub(crate) fn processes(&self) -> anyhow::Result<Vec<Pid>> {
        let mut processes = shims::of(&self.home.runtime());
        processes.push(self.pid()?);
        Ok(processes)
    }

    /// Its process.
    ///
    /// # Errors
    /// When it has gone.
    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        daemon(&self.home.runtime())
    }

    /// The newest file of its search index.
    ///
    /// # Errors
    /// When nothing is indexed yet.
    pub(crate) fn index(&self) -> anyhow::Result<PathBuf> {
        let mut indexes = fs::read_dir(self.home.state().join("index"))?;
        let only = indexes.next().context("there is no index")??;
        let files = fs::read_dir(only.path())?.flatten().map(|file| file.path());
        files
            .filter(|file| file.extension().is_some_and(|it| it == "db"))
            .max()
            .context("it is empty")
    }

    /// The socket agents come in by; the others are beside it.
    pub(crate) fn gateway(&self) -> PathBuf {
        self.home.runtime().join("gateway.sock")
    }
}

fn wait_for_banner(said: &mut impl BufRead) -> anyhow::Result<()> {
    let mut all = String::new();
    loop {
        let start = all.len();
        if said.read_line(&mut all)? == 0 {
            bail!("the daemon ended at once: {all}");
        }
        if all[start..].contains("termgate ") && all[start..].contains(" is ready") {
            return Ok(());
        }
    }
}
