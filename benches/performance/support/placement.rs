//! Placement: which processors the bench and everything it starts may run on.
//!
//! It knows nothing of what is measured. Waking an idle core costs more than most round trips, so a
//! figure without its placement says nothing.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Where client, daemon and yardstick run, all of them alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// They share one core.
    OneCore,
    /// They share two cores, and the scheduler puts them where it likes.
    TwoCores,
}

impl Placement {
    /// All placements, in the order they are measured.
    pub(crate) const ALL: [Self; 2] = [Self::OneCore, Self::TwoCores];

    /// Confines the bench itself; what it starts later inherits that.
    ///
    /// # Errors
    /// When the machine has too few cores, or no `taskset`.
    pub(crate) fn enter(self) -> anyhow::Result<()> {
        let own = std::process::id().to_string();
        let status = Command::new("taskset")
            .args(["-a", "-c", "-p", self.cores(), &own])
            .stdout(Stdio::null())
            .status()
            .context("taskset, of util-linux, is needed")?;
        ensure!(status.success(), "cannot run on {self} (processors {})", self.cores());
        Ok(())
    }

    /// A command that is confined whatever the bench is; it becomes `program` itself, so that the
    /// handle on it is a handle on the program.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", self.cores()]).arg(program);
        command
    }

    fn cores(self) -> &'static str {
        match self {
            Self::OneCore => "0",
            Self::TwoCores => "0,1",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
        })
    }
}
