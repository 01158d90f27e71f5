//! The program itself in a home of its own: daemons it starts are ended with the test.
//!
//! Its standard input and output are one socket, so that the clients of other tests can speak to it.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use termgate::config::paths::RuntimePaths;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::daemon::harness::{Era, Wire};
use crate::line_client::soon;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_termgate");

/// A home with nothing in it, and the daemon of it, if one runs.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    pub(crate) paths: RuntimePaths,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tg").tempdir().unwrap();
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let run = directory.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, PermissionsExt::from_mode(0o700)).unwrap();
        let paths = RuntimePaths::at(run.join("termgate")).unwrap();
        Self { directory, paths }
    }

    /// A path below the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program with these words, in this home.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.command_of(Path::new(PROGRAM), words)
    }

    /// A program elsewhere with these words, in this home.
    pub(crate) fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).env_clear().current_dir(self.directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.directory.path());
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        // A test that fails leaves nothing behind.
        command.env("TERMGATE_SESSIONS__ORPHAN_TTL_MS", "20000");
        command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the program to its end, and gives back its exit code and what it said.
    pub(crate) async fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = soon("the program to end", self.command(words).output()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Starts the program with a client at its standard input and output.
    pub(crate) async fn client(&self, words: &[&str], era: Era) -> Piped {
        let mut piped = self.silent(words, era);
        piped.wire.greet().await;
        piped
    }

    /// Starts the program with a client that says nothing yet.
    pub(crate) fn silent(&self, words: &[&str], era: Era) -> Piped {
        let (child, stream) = self.start(self.command(words));
        Piped { child, wire: Wire::over(stream, era) }
    }

    /// Starts a command with one end of a socket as standard input and output; its remarks go
    /// where nobody reads them.
    pub(crate) fn start(&self, mut command: Command) -> (Child, UnixStream) {
        let (ours, its) = net::UnixStream::pair().unwrap();
        let its = OwnedFd::from(its);
        command.stdin(its.try_clone().unwrap()).stdout(its).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        ours.set_nonblocking(true).unwrap();
        (child, UnixStream::from_std(ours).unwrap())
    }

    /// The daemon that holds the lock now, if it lives.
    pub(crate) fn daemon(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.paths.lock()).ok()?;
        let pid = Pid::from_raw(text.trim().parse().ok()?);
        lives(pid).then_some(pid)
    }

    /// Kills the daemon as nothing can prepare for, and waits until it is dead.
    pub(crate) async fn kill_daemon(&self) {
        let pid = self.daemon().expect("a daemon runs");
        kill(pid, Signal::SIGKILL).unwrap();
        dies(pid).await;
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(pid) = self.daemon() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

/// Whether a process has not ended, collected or not.
pub(crate) fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// Makes a process stand still, and waits until each of its threads does: one that runs meanwhile may
/// still read and answer.
pub(crate) async fn stands_still(pid: Pid) {
    kill(pid, Signal::SIGSTOP).unwrap();
    let waiting = async {
        while !threads_stand_still(pid) {
            tokio::task::yield_now().await;
        }
    };
    soon(&format!("the standstill of process {pid}"), waiting).await;
}

fn threads_stand_still(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let stats = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")));
    let mut stats = stats.map(|stat| stat.unwrap_or_default());
    stats.all(|stat| stat.rsplit(')').next().unwrap_or_default().starts_with(" T"))
}

/// Waits until a process has ended.
pub(crate) async fn dies(pid: Pid) {
    let waiting = async {
        while lives(pid) {
            tokio::task::yield_now().await;
        }
    };
    soon(&format!("the end of process {pid}"), waiting).await;
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

/// Reads a file that somebody writes, once it has a whole line.
pub(crate) async fn line_of(path: &Path) -> String {
    let reading = async {
        loop {
            match fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    soon("a line of a file", reading).await
}
