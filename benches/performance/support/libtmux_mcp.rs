//! The MCP server `libtmux-mcp`, which runs commands in a pane of tmux, and a client of it on pipes.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::support::agent::Agent;
use crate::support::child::Owned;
use crate::support::placement::Placement;
use crate::support::tmux::Server;

const PROGRAM: &str = "libtmux-mcp";
/// What to do where it is missing.
pub(crate) const MISSING: &str = "libtmux-mcp is not in PATH: `pip install --pre libtmux-mcp`";

/// The session that commands run in.
const SESSION: &str = "run";

/// A running server with a tmux of its own, in which a shell waits.
#[derive(Debug)]
pub(crate) struct LibtmuxMcp {
    agent: Agent,
    _process: Owned,
    _tmux: Server,
}

impl LibtmuxMcp {
    /// Starts it with a bash that reads the files in `home`; `None` if it is not installed.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(placement: Placement, home: &Path) -> anyhow::Result<Option<Self>> {
        if Command::new(PROGRAM).arg("--version").output().is_err() {
            return Ok(None);
        }
        let tmux = Server::start(placement)?;
        let mut command = placement.command(PROGRAM);
        command.env("LIBTMUX_SOCKET_PATH", tmux.socket()).env_remove("TMUX");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map(Owned).context("cannot start libtmux-mcp")?;
        let said = process.0.stdout.take().context("it has no standard output")?;
        let asked = process.0.stdin.take().context("it has no standard input")?;
        let agent = Agent::greet_on(said.into(), asked.into())?;
        let shell = ["new-session", "-d", "-s", SESSION, "-x", "120", "-y", "40"];
        let home = format!("HOME={}", home.display());
        let made = tmux.client().args(shell).args(["-e", &home, "bash"]).status()?;
        ensure!(made.success(), "tmux makes no session");
        Ok(Some(Self { agent, _process: process, _tmux: tmux }))
    }

    /// Runs a command until its exit code is known.
    ///
    /// # Errors
    /// When it has gone, or the code is another.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<()> {
        let arguments = format_args!(r#"{{"session_name":"{SESSION}","command":"{command}"}}"#);
        let answer = self.agent.call("run_command", arguments)?;
        ensure!(answer.contains(r#""exit_status":0"#), "no code: {answer}");
        Ok(())
    }
}
