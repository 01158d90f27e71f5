//! tmux as a yardstick: a server of the bench's own, a control client that stays, and processes
//! that come and go.
//!
//! It knows nothing of what they are compared with. tmux is set up as well as its users can: no
//! configuration, and no terminal to draw on.

use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::child::Owned;
use crate::support::placement::Placement;
use crate::support::samples::now;

/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);

/// A tmux server, kept in the foreground so that its process is ours.
#[derive(Debug)]
pub(crate) struct Server {
    process: Owned,
    directory: TempDir,
    placement: Placement,
}

impl Server {
    /// Starts it and waits until clients can come.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(placement: Placement) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let process = placement
            .command("tmux")
            .arg("-S")
            .arg(directory.path().join("tmux.sock"))
            .args(["-f", "/dev/null", "-D"])
            .env_remove("TMUX")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map(Owned)
            .context("cannot start tmux")?;
        let server = Self { process, directory, placement };
        let give_up = now() + START_MAX;
        while !server.answers()? {
            ensure!(now() < give_up, "the tmux server does not listen");
        }
        Ok(server)
    }

    /// A client process that runs one command of tmux.
    pub(crate) fn client(&self) -> Command {
        // Its processors are those of the bench already, and a detour would be measured with it.
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).env_remove("TMUX");
        command
    }

    /// The process that has the screens.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.process.0.id().cast_signed())
    }

    /// Where clients reach it.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("tmux.sock")
    }

    fn answers(&self) -> anyhow::Result<bool> {
        let mut command = self.client();
        command.args(["-N", "start-server"]).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status()?.success())
    }
}

/// Whether a control client is sent what the programs of its session write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// As it comes, which is what tmux does when nobody says.
    Sent,
    /// Not at all: the client reads the screen when it wants to know.
    Withheld,
}

impl Output {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &[],
            Self::Withheld => &["-f", "no-output"],
        }
    }
}

/// A control client (`tmux -C`) attached to a session it created.
#[derive(Debug)]
pub(crate) struct Control {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    block: String,
    _process: Owned,
}

impl Control {
    /// Creates a session of 80 columns and 24 rows that runs a shell line, and attaches to it.
    ///
    /// # Errors
    /// What tmux said instead.
    pub(crate) fn create(
        server: &Server,
        name: &str,
        command: &str,
        sent: Output,
    ) -> anyhow::Result<Self> {
        let size = ["-x", "80", "-y", "24", "-s", name];
        Self::start(server, [&["new-session"], &size[..], sent.flags(), &[command]].concat())
    }

    /// Attaches to a session that there is.
    ///
    /// # Errors
    /// What tmux said instead.
    pub(crate) fn attach(server: &Server, name: &str) -> anyhow::Result<Self> {
        Self::start(server, vec!["attach-session", "-t", name])
    }

    fn start(server: &Server, words: Vec<&str>) -> anyhow::Result<Self> {
        let mut process = server
            .placement
            .command("tmux")
            .arg("-S")
            .arg(server.socket())
            .arg("-C")
            .args(words)
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map(Owned)?;
        let input = process.0.stdin.take().context("tmux has no standard input")?;
        let output = process.0.stdout.take().context("tmux has no standard output")?;
        let output = BufReader::new(output);
        let (line, block) = (String::new(), String::new());
        let mut control = Self { input, output, line, block, _process: process };
        // The first block is the answer to the command it was started with.
        control.answer()?;
        let size = control.run("display-message -p '#{pane_width}x#{pane_height}'\n")?;
        ensure!(size == "80x24\n", "the size is {size}");
        Ok(control)
    }

    /// Runs one command, its line end included, and gives back what it printed.
    ///
    /// # Errors
    /// When it failed, or tmux has gone.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<&str> {
        self.begin(command)?;
        self.answer()
    }

    /// Has one or more commands run, their line ends included, without waiting for the answers.
    ///
    /// # Errors
    /// When tmux has gone.
    pub(crate) fn begin(&mut self, commands: &str) -> anyhow::Result<()> {
        Ok(self.input.write_all(commands.as_bytes())?)
    }

    /// Waits until it is sent what a program wrote, and returns the line that says so.
    ///
    /// # Errors
    /// When tmux has gone.
    pub(crate) fn output(&mut self) -> anyhow::Result<&str> {
        while !self.next_line()?.starts_with("%output ") {}
        Ok(&self.line)
    }

    /// What the next command printed.
    ///
    /// # Errors
    /// When it failed, or tmux has gone.
    pub(crate) fn answer(&mut self) -> anyhow::Result<&str> {
        self.block.clear();
        while !self.next_line()?.starts_with("%begin ") {}
        loop {
            let line = self.next_line()?;
            if line.starts_with("%end ") {
                return Ok(&self.block);
            }
            if line.starts_with("%error ") {
                bail!("tmux refused: {}", self.block);
            }
            self.block.push_str(&self.line);
        }
    }

    fn next_line(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        let length = self.output.read_line(&mut self.line)?;
        ensure!(length > 0, "tmux has gone");
        Ok(&self.line)
    }
}

/// The version of the tmux there is.
///
/// # Errors
/// When there is none.
pub(crate) fn version() -> anyhow::Result<String> {
    let output = Command::new("tmux").arg("-V").output().context("tmux is needed")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
