//! What every command needs: its output, and a connection to the daemon.
//!
//! Only this module reads the environment variables for clients, so that they mean the same everywhere.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandOutput;
use crate::cli::start::{DaemonStart, StartRights, Stay, connect_or_start};
use crate::config::paths::RuntimePaths;
use crate::session::pty::environment::SESSION_MARK;
use crate::transport::client::{ConnectError, reach};
use crate::transport::unix::lock::DaemonLock;

/// How long to retry when a running daemon rejects connections, as during an upgrade.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The variable with the daemon's socket.
const SOCKET: &str = "TERMGATE_SOCKET";
/// The variable that controls which commands may start a daemon.
const AUTOSTART: &str = "TERMGATE_AUTOSTART";

/// Which commands start a daemon when none runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autostart {
    Never,
    /// The commands that cannot work without one.
    ToCreate,
    Always,
}

impl Autostart {
    fn of(variable: Option<OsString>) -> Self {
        match variable.as_deref().map(OsStr::as_encoded_bytes) {
            Some(b"0") => Self::Never,
            Some(b"1") => Self::Always,
            Some(_) | None => Self::ToCreate,
        }
    }
}

/// The environment of a command.
#[derive(Debug)]
pub struct Context {
    pub output: CommandOutput,
    socket: Option<PathBuf>,
}

impl Context {
    /// Creates a context. `socket` is the daemon's socket, if the command line names one.
    pub fn new(output: CommandOutput, socket: Option<PathBuf>) -> Self {
        Self { output, socket }
    }

    /// Connects to the daemon, and starts one if the environment asks for it.
    pub async fn daemon(&self) -> Result<DaemonClient, CliFailure> {
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always => self.daemon_or_start(StartRights::AsConfigured).await,
            Autostart::ToCreate => self.running_daemon().await,
            Autostart::Never => self.running_daemon().await.map_err(CliFailure::without_start),
        }
    }

    /// Connects to the daemon, for a command that starts one when none runs.
    pub async fn daemon_to_create(&self, rights: StartRights) -> Result<DaemonClient, CliFailure> {
        // The argument parser does not see a socket before the subcommand.
        if self.socket.is_some() && rights == StartRights::Write {
            let words = "--socket cannot be used with --allow-write";
            return Err(CliFailure::Usage(words.to_owned()));
        }
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always | Autostart::ToCreate => self.daemon_or_start(rights).await,
            Autostart::Never => self.running_daemon().await.map_err(CliFailure::without_start),
        }
    }

    /// Connects to the daemon and never starts one. It waits for a daemon that is starting.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] when no daemon runs.
    pub async fn running_daemon(&self) -> Result<DaemonClient, CliFailure> {
        let socket = self.operator_socket()?;
        refuse_inside(&socket).await?;
        // An impostor at the socket does not make way for a daemon that is starting.
        let waits = |error: &ConnectError| {
            !matches!(error, ConnectError::Impostor(_)) && is_locked(&socket)
        };
        let connect = async || DaemonClient::try_connect(&socket).await;
        let found = reach(connect, PAUSE_MAX, waits).await;
        let found = found.map_err(|source| CliFailure::unreachable(socket, source));
        // No command starts one at a socket that was chosen.
        match chosen_socket(self.socket.clone()) {
            Some(_) => found.map_err(CliFailure::without_start),
            None => found,
        }
    }

    /// The daemon's place, for a command that does not use the operators' socket, and whether it may start one there.
    pub fn place(&self) -> Result<(RuntimePaths, bool), CliFailure> {
        let Some(operator) = chosen_socket(self.socket.clone()) else {
            let may_start = Autostart::of(env::var_os(AUTOSTART)) != Autostart::Never;
            return Ok((runtime_paths()?, may_start));
        };
        // Its sockets are in one directory. A daemon that we start uses its default directory.
        let operator = std::path::absolute(operator).context("the socket")?;
        let root = operator.parent().context("the socket is in no directory")?;
        let paths = RuntimePaths::at(root.to_owned()).context("the socket")?;
        Ok((paths, false))
    }

    async fn daemon_or_start(&self, rights: StartRights) -> Result<DaemonClient, CliFailure> {
        if chosen_socket(self.socket.clone()).is_some() {
            // A daemon that we start listens at its default place, not at this one.
            return self.running_daemon().await;
        }
        let start = DaemonStart { paths: runtime_paths()?, rights, stay: Stay::Long };
        let socket = start.paths.operator();
        refuse_inside(&socket).await?;
        let connect = async || DaemonClient::try_connect(&socket).await;
        let connected = connect_or_start(connect, Some(&start)).await?;
        connected.map_err(|source| CliFailure::unreachable(socket, source))
    }

    /// The daemon's operator socket.
    pub fn operator_socket(&self) -> Result<PathBuf, CliFailure> {
        operator_socket(self.socket.clone())
    }
}

/// The daemon's operator socket: `given`, or the one from the environment.
pub fn operator_socket(given: Option<PathBuf>) -> Result<PathBuf, CliFailure> {
    match chosen_socket(given) {
        Some(socket) => Ok(socket),
        None => Ok(runtime_paths()?.operator()),
    }
}

fn chosen_socket(given: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || env::var_os(SOCKET).filter(|path| !path.is_empty()).map(PathBuf::from);
    given.or_else(variable)
}

/// Fails at once inside a session: the daemon hangs up on each of its programs, however long they try.
async fn refuse_inside(socket: &Path) -> Result<(), CliFailure> {
    if env::var_os(SESSION_MARK).is_none() {
        return Ok(());
    }
    match DaemonClient::try_connect(socket).await {
        Err(hung_up @ ConnectError::HungUp) => {
            Err(CliFailure::unreachable(socket.to_owned(), hung_up))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether a process holds the lock of the daemon with this socket.
fn is_locked(socket: &Path) -> bool {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    paths.is_some_and(|paths| DaemonLock::owner(&paths.lock()).is_some())
}

/// The directory of the daemon's sockets, from the environment.
pub fn runtime_paths() -> Result<RuntimePaths, CliFailure> {
    let paths = RuntimePaths::from_environment(|name| env::var_os(name));
    paths.map_err(|error| CliFailure::Usage(format!("no directory for the sockets: {error}")))
}

/// Whether a daemon is started, and what that one may do.
#[derive(Clone, Copy, Debug, Args)]
pub struct Spawn {
    /// Do not start a daemon
    #[arg(long)]
    no_spawn: bool,
    /// Start the daemon with writing allowed; a running daemon keeps its switches
    #[arg(long, conflicts_with_all = ["socket", "no_spawn"])]
    allow_write: bool,
}

impl Spawn {
    /// Connects to the daemon, and starts one if that is allowed.
    pub async fn daemon(self, context: &Context) -> Result<DaemonClient, CliFailure> {
        if self.no_spawn {
            context.running_daemon().await.map_err(CliFailure::without_start)
        } else {
            context.daemon_to_create(StartRights::of_flag(self.allow_write)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_creating_starts_a_daemon_unless_the_variable_says_otherwise() {
        assert_eq!(Autostart::of(None), Autostart::ToCreate);
        assert_eq!(Autostart::of(Some("".into())), Autostart::ToCreate);
        assert_eq!(Autostart::of(Some("0".into())), Autostart::Never);
        assert_eq!(Autostart::of(Some("1".into())), Autostart::Always);
    }
}
