//! The process of a server: its pipes, and its end with all processes of its group.
//!
//! A daemon that is killed closes the pipes, by which servers end. There is no signal for the daemon's death: the
//! kernel would send it when the thread ends that started the server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::BufReader;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::mount::link::lines::{BoundedLine, Lines, bounded_line, read_lines, write_lines};
use crate::mount::log::{LOG_LINE_MAX, ServerLog};

/// How long a server may take to end before it is killed, and how often it is looked at meanwhile.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// A server that is to be started.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    pub command: String,
    pub args: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
    pub sandbox: Option<SandboxMaker>,
}

/// Makes the words of a command line that runs another in a sandbox, or says why that cannot work. May take a while.
#[derive(Clone)]
pub struct SandboxMaker(pub Arc<dyn Fn() -> Result<Vec<OsString>, String> + Send + Sync>);

impl Default for SandboxMaker {
    /// Makes none.
    fn default() -> Self {
        Self(Arc::new(|| Err("this daemon makes none".to_owned())))
    }
}

impl fmt::Debug for SandboxMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SandboxMaker")
    }
}

impl SandboxMaker {
    async fn words(&self) -> Result<Vec<OsString>, String> {
        let make = Arc::clone(&self.0);
        spawn_blocking(move || make()).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl ServerProgram {
    /// The command line, inside of its sandbox if it has one.
    async fn command(&self) -> Result<Command, String> {
        let mut words = match &self.sandbox {
            None => Vec::new(),
            Some(maker) => {
                let words = maker.words().await.map_err(|why| format!("no sandbox: {why}"))?;
                [words, vec!["--".into()]].concat()
            }
        };
        words.push(OsString::from(&self.command));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&self.args);
        Ok(command)
    }
}

/// A running server. Dropping it kills its group.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    _pipes: JoinSet<()>,
}

impl ServerProcess {
    /// Starts a server in a process group of its own.
    ///
    /// # Errors
    /// Why that failed.
    pub async fn start(program: &ServerProgram, log: &ServerLog) -> Result<(Lines, Self), String> {
        let wrong = |why: String| format!("cannot start {}: {why}", program.command);
        let mut command = program.command().await.map_err(wrong)?;
        command.env_clear().envs(&program.environment);
        command.current_dir(&program.cwd).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| wrong(error.to_string()))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let mut pipes = JoinSet::new();
        let (lines, unwritten, read) = Lines::new();
        if let Some(stdin) = child.stdin.take() {
            pipes.spawn(write_lines(stdin, unwritten));
        }
        if let Some(stdout) = child.stdout.take() {
            pipes.spawn(read_lines(stdout, read));
        }
        if let Some(stderr) = child.stderr.take() {
            pipes.spawn(keep_log(stderr, log.clone()));
        }
        Ok((lines, Self { child, group, _pipes: pipes }))
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends it with all processes of its group: asks, waits two seconds, and kills.
    pub async fn end(mut self, mut lines: Lines) {
        lines.close();
        let Some(group) = self.group else { return };
        let _ = killpg(group, Signal::SIGTERM);
        let ending = async {
            // The maker of its sandbox ends before it does.
            while lines.next().await.is_some() {}
            while !has_ended(group) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(GRACE, ending).await;
        // It is not reaped yet, so the number of the group is still its own.
        let _ = killpg(group, Signal::SIGKILL);
        self.group = None;
        let _ = self.child.wait().await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Whether a child has ended, without reaping it.
fn has_ended(child: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive))
}

async fn keep_log(stderr: ChildStderr, log: ServerLog) {
    let mut reader = BufReader::new(stderr);
    loop {
        match bounded_line(&mut reader, LOG_LINE_MAX).await {
            Ok(BoundedLine::Whole(line) | BoundedLine::Cut(line)) => log.add(&line),
            Ok(BoundedLine::End) | Err(_) => return,
        }
    }
}
