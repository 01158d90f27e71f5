//! A shell in a terminal with nothing around it: lines are typed, and its prompt is waited for.
//!
//! It looks at nothing else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::{bail, ensure};
use nix::pty::{Winsize, openpty};

use crate::support::child::Owned;
use crate::support::placement::Placement;
use crate::support::samples::now;

const PROMPT: &str = "READY> ";
/// How long a prompt may take.
const PROMPT_MAX: Duration = Duration::from_secs(20);

/// A shell at its prompt.
#[derive(Debug)]
pub(crate) struct BareShell {
    terminal: File,
    seen: String,
    _process: Owned,
}

impl BareShell {
    /// Starts it and waits for its prompt.
    ///
    /// # Errors
    /// When there is no such shell, or none that prompts.
    pub(crate) fn start(placement: Placement, shell: &str) -> anyhow::Result<Self> {
        let arguments: &[&str] = match shell {
            "bash" => &["--norc", "--noprofile", "-i"],
            other => bail!("no way is known to start {other} without files"),
        };
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(&size, None)?;
        let process = placement
            .command("setsid")
            .args(["--ctty", shell])
            .args(arguments)
            .env("PS1", PROMPT)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .stdin(ends.slave.try_clone()?)
            .stdout(ends.slave.try_clone()?)
            .stderr(ends.slave)
            .spawn()
            .map(Owned)?;
        let mut started =
            Self { terminal: ends.master.into(), seen: String::new(), _process: process };
        started.prompted()?;
        Ok(started)
    }

    /// Types a command and waits until the prompt is back.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<()> {
        self.seen.clear();
        self.terminal.write_all(format!("{command}\r").as_bytes())?;
        self.prompted()
    }

    /// A line editor paints its prompt anew at will, so a prompt counts that stands behind the end of
    /// the line that was typed.
    fn prompted(&mut self) -> anyhow::Result<()> {
        let give_up = now() + PROMPT_MAX;
        let mut room = [0; 16 * 1024];
        loop {
            let behind = self.seen.split_once('\n').map_or("", |(_, behind)| behind);
            let first = self.seen.contains(PROMPT) && !self.seen.contains("true");
            if behind.contains(PROMPT) || first {
                return Ok(());
            }
            ensure!(now() < give_up, "no prompt: {:?}", self.seen);
            let count = self.terminal.read(&mut room)?;
            ensure!(count > 0, "the shell has ended: {:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&room[..count]));
        }
    }
}
