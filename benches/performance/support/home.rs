//! A place of the bench's own for one daemon after another: directories, configuration, environment.
//!
//! It knows nothing of what is asked of a daemon. No daemon, session or file of the user's is touched,
//! and what outlives its daemon ends with the place.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use tempfile::TempDir;
use termgate::config::mounts::MOUNTS;

use crate::support::placement::Placement;
use crate::support::shims;

/// Directories in which daemons run; whatever still runs there ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    runtime: TempDir,
}

impl Home {
    /// Makes one with this configuration file.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn new(config: &str) -> anyhow::Result<Self> {
        // In memory, as systemd makes the runtime directories of users.
        let home = Self {
            directory: tempfile::tempdir()?,
            runtime: tempfile::tempdir_in("/dev/shm").context("/dev/shm")?,
        };
        fs::write(home.config(), config)?;
        Ok(home)
    }

    /// Has daemons here mount what this mounts file says.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn mount(&self, mounts: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.directory.path().join(MOUNTS), mounts)?)
    }

    /// The command of a daemon here that lets clients write, with these words after `serve`.
    pub(crate) fn serve(&self, placement: Placement, words: &[&str]) -> Command {
        let mut command = placement.command(env!("CARGO_BIN_EXE_termgate"));
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TERMGATE_") {
                command.env_remove(name);
            }
        }
        command
            .arg("serve")
            .args(words)
            .args(["--allow-write", "--config"])
            .arg(self.config())
            .env("TERMGATE_RUNTIME_DIR", self.runtime())
            .env("HOME", self.directory.path())
            .env("XDG_CONFIG_HOME", self.directory.path())
            .env("XDG_STATE_HOME", self.directory.path())
            .env("SHELL", "/bin/sh");
        command
    }

    /// The runtime directory of daemons here.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.runtime.path().join("run")
    }

    /// Where daemons here keep what outlives them.
    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("termgate")
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        shims::end_all(&self.runtime());
    }
}
