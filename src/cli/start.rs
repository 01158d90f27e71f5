//! Starting a daemon that outlives the command which needs it.
//!
//! It must not know what the daemon is needed for. Readiness is a condition: the operators' socket
//! answers.

use std::env;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep};

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::config::paths::RuntimePaths;
use crate::transport::notify::VARIABLES;
use crate::transport::unix::directory;

/// How long a daemon may take until it answers.
const READY_MAX: Duration = Duration::from_secs(5);
/// How long another daemon, to which ours gave way, may take until it answers.
const OTHER_READY_MAX: Duration = Duration::from_secs(1);
/// How often is looked whether it answers.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether the daemon that is started may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// As its configuration and environment say.
    AsConfigured,
    Write,
}

/// Starts a daemon and connects to it; to another one, when that was quicker.
///
/// # Errors
/// [`Failure::NotStarted`] when nobody answers in time, with the log that says more.
pub async fn start(paths: &RuntimePaths, rights: Rights) -> Result<Daemon, Failure> {
    directory::prepare(paths).context("cannot start a daemon")?;
    let log = log_of(paths);
    let mut child = spawn(&log, rights).context("cannot start a daemon")?;
    let mut deadline = Instant::now() + READY_MAX;
    let mut runs = true;
    while Instant::now() < deadline {
        if let Ok(daemon) = Daemon::try_connect(&paths.operator()).await {
            return Ok(daemon);
        }
        if runs && has_ended(&mut child) {
            runs = false;
            deadline = deadline.min(Instant::now() + OTHER_READY_MAX);
        }
        sleep(LOOK_INTERVAL).await;
    }
    Err(Failure::NotStarted { log })
}

/// Where a daemon that was started by a command logs.
pub fn log_of(paths: &RuntimePaths) -> PathBuf {
    paths.root().join("daemon.log")
}

fn spawn(log: &Path, rights: Rights) -> anyhow::Result<Child> {
    let program = env::current_exe().context("the program's own file is unknown")?;
    let mut command = Command::new(program);
    command.args(["serve", "--detached"]);
    if rights == Rights::Write {
        command.arg("--allow-write");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(open_log(log)?);
    command.current_dir(home());
    // A service manager of ours does not know the daemon.
    for name in VARIABLES {
        command.env_remove(name);
    }
    Ok(command.spawn()?)
}

fn open_log(path: &Path) -> anyhow::Result<File> {
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    log.with_context(|| format!("cannot open {}", path.display()))
}

/// Where the daemon stays, so that it keeps nobody's mount busy.
fn home() -> PathBuf {
    env::home_dir().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}
