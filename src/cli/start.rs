//! Starts a daemon that outlives the command that needs it.
//!
//! Such a daemon exits by itself when it is no longer needed; one that was started by hand does not.

pub mod log;

use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::cli::failure::CliFailure;
use crate::cli::own_lease::LEASE;
use crate::cli::start::log::Log;
use crate::config::paths::RuntimePaths;
use crate::config::sources::Sources;
use crate::surface::TOOL_NAMES;
use crate::transport::client::{ConnectError, reach};
use crate::transport::daemon::TURN_MAX;
use crate::transport::notify::VARIABLES;
use crate::transport::unix::directory;

/// How long a daemon may take to answer, including the wait for a daemon that is ending.
const READY_MAX: Duration = TURN_MAX.saturating_add(Duration::from_secs(5));
/// How long another daemon may take to answer when ours made way for it.
const OTHER_READY_MAX: Duration = Duration::from_secs(1);
/// How long a peer that closes the connection without a greeting counts as a daemon that is ending.
const HANGING_UP_MAX: Duration = Duration::from_secs(1);

/// Whether the started daemon allows writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRights {
    /// As its configuration and environment say.
    AsConfigured,
    Write,
}

impl StartRights {
    pub fn of_flag(allow_write: bool) -> Self {
        if allow_write { Self::Write } else { Self::AsConfigured }
    }
}

/// How long an unused daemon keeps running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It exits shortly after its last client.
    Short,
    /// Long enough for a user to look around, or to switch writing on, before the next command.
    Long,
}

impl Stay {
    fn linger(self) -> &'static str {
        match self {
            Self::Short => "2s",
            Self::Long => "1m",
        }
    }
}

/// How to start a daemon.
#[derive(Debug)]
pub struct DaemonStart {
    pub paths: RuntimePaths,
    pub rights: StartRights,
    pub stay: Stay,
}

/// Connects to the running daemon, or to the next one while it is ending. If none runs, starts one where `start`
/// says how.
///
/// # Errors
/// [`CliFailure::NotStarted`] when none answers in time, with its failure and the path of its log.
pub async fn connect_or_start<T>(
    connect: impl AsyncFn() -> Result<T, ConnectError>,
    start: Option<&DaemonStart>,
) -> Result<Result<T, ConnectError>, CliFailure> {
    match (reach(&connect, HANGING_UP_MAX, ConnectError::may_be_ending).await, start) {
        (Err(ConnectError::Absent | ConnectError::Refused), Some(start)) => {
            start.and_connect(connect).await
        }
        (reached, _) => Ok(reached),
    }
}

impl DaemonStart {
    /// Starts a daemon and connects to it, or to another one that started first.
    async fn and_connect<T>(
        &self,
        connect: impl AsyncFn() -> Result<T, ConnectError>,
    ) -> Result<Result<T, ConnectError>, CliFailure> {
        directory::create(&self.paths).context("cannot start a daemon")?;
        let log = Log::open(&self.paths).context("cannot start a daemon")?;
        let mut child = spawn(&log, self.rights, self.stay).context("cannot start a daemon")?;
        let mut ended_at = None;
        let waits = |error: &ConnectError| {
            if ended_at.is_none() && has_ended(&mut child) {
                ended_at = Some(Instant::now());
            }
            let other_waits = ended_at.is_none_or(|at| at.elapsed() < OTHER_READY_MAX);
            other_waits && !matches!(error, ConnectError::Rejected(_))
        };
        match reach(connect, READY_MAX, waits).await {
            reached @ (Ok(_) | Err(ConnectError::Rejected(_))) => Ok(reached),
            Err(_) => {
                // Its configuration is judged here again, so that all that is wrong with it is told in one form.
                Sources::new(None, &home(), &env::vars_os().collect(), TOOL_NAMES).load()?;
                Err(CliFailure::NotStarted { said: log.failure(), log: log.path().to_owned() })
            }
        }
    }
}

/// Starts the process. This process reaps it if it ends first.
fn spawn(log: &Log, rights: StartRights, stay: Stay) -> anyhow::Result<Child> {
    let program = env::current_exe().context("the program's own file is unknown")?;
    let mut command = Command::new(program);
    command.args(["serve", "--detached", "--linger", stay.linger()]);
    if rights == StartRights::Write {
        command.arg("--allow-write");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.writer()?);
    command.current_dir(home());
    // Variables of a service manager for this process do not apply to the daemon.
    for name in VARIABLES {
        command.env_remove(name);
    }
    // The lease belongs to the caller's own commands.
    command.env_remove(LEASE);
    Ok(command.spawn()?)
}

/// The daemon's working directory, chosen so that it does not keep a mount busy.
fn home() -> PathBuf {
    env::home_dir().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}
