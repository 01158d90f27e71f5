//! Starting a daemon that outlives the command which needs it.
//!
//! It must not know what the daemon is needed for: whoever starts it says what counts as reached.
//! Such a daemon ends by itself once nobody needs it; one that was started by hand never does.

pub mod log;

use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::cli::failure::Failure;
use crate::cli::own_lease::LEASE;
use crate::cli::start::log::Log;
use crate::config::paths::RuntimePaths;
use crate::transport::daemon::TURN_MAX;
use crate::transport::notify::VARIABLES;
use crate::transport::unix::directory;

/// How long a daemon may take until it is reached, after one that is ending has gone.
const READY_MAX: Duration = TURN_MAX.saturating_add(Duration::from_secs(5));
/// How long another daemon, to which ours gave way, may take until it is reached.
const OTHER_READY_MAX: Duration = Duration::from_secs(1);
/// How long whoever hangs up without a greeting may be one that is just ending.
const HANGING_UP_MAX: Duration = Duration::from_secs(1);
/// How often is looked whether it is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether the daemon that is started may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// As its configuration and environment say.
    AsConfigured,
    Write,
}

impl Rights {
    /// The rights that a flag `--allow-write` asks for.
    pub fn of_flag(allow_write: bool) -> Self {
        if allow_write { Self::Write } else { Self::AsConfigured }
    }
}

/// How long a daemon stays that nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It ends with its last client.
    Short,
    /// Somebody at a command line may want to look, or to switch writing on, before the next command.
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

/// Reaches the daemon that is there; when it hangs up because it ends, what comes after it.
///
/// # Errors
/// Why there is none to be reached.
pub async fn settled<T, E>(
    reach: impl AsyncFn() -> Result<T, E>,
    hung_up: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let until = Instant::now() + HANGING_UP_MAX;
    loop {
        match reach().await {
            Err(error) if hung_up(&error) && Instant::now() < until => sleep(LOOK_INTERVAL).await,
            reached => return reached,
        }
    }
}

/// Starts a daemon and reaches it; or another one, when that was quicker.
///
/// # Errors
/// [`Failure::NotStarted`] when none is reached in time, with what it said last and its log.
pub async fn start<T>(
    paths: &RuntimePaths,
    rights: Rights,
    stay: Stay,
    reach: impl AsyncFn() -> Option<T>,
) -> Result<T, Failure> {
    directory::prepare(paths).context("cannot start a daemon")?;
    let log = Log::open(paths).context("cannot start a daemon")?;
    let mut child = spawn(&log, rights, stay).context("cannot start a daemon")?;
    let mut deadline = Instant::now() + READY_MAX;
    let mut runs = true;
    while Instant::now() < deadline {
        if let Some(reached) = reach().await {
            return Ok(reached);
        }
        if runs && has_ended(&mut child) {
            runs = false;
            deadline = deadline.min(Instant::now() + OTHER_READY_MAX);
        }
        sleep(LOOK_INTERVAL).await;
    }
    Err(Failure::NotStarted { said: log.last_words(), log: log.path().to_owned() })
}

/// Starts the process, which is collected when it ends for as long as ours lives.
fn spawn(log: &Log, rights: Rights, stay: Stay) -> anyhow::Result<Child> {
    let program = env::current_exe().context("the program's own file is unknown")?;
    let mut command = Command::new(program);
    command.args(["serve", "--detached", "--linger", stay.linger()]);
    if rights == Rights::Write {
        command.arg("--allow-write");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.writer()?);
    command.current_dir(home());
    // A service manager of ours does not know the daemon.
    for name in VARIABLES {
        command.env_remove(name);
    }
    // It is the caller's, for its own commands.
    command.env_remove(LEASE);
    Ok(command.spawn()?)
}

/// Where the daemon stays, so that it keeps nobody's mount busy.
fn home() -> PathBuf {
    env::home_dir().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}
