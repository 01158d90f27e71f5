//! What every command needs: its output, and a connection to the daemon.
//!
//! Only this module reads the environment variables for clients, so that they mean the same everywhere.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep};

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::start::{Rights, Stay, settled, start};
use crate::config::paths::RuntimePaths;
use crate::transport::client::ConnectError;
use crate::transport::unix::lock::DaemonLock;

/// How long to wait for the next daemon after one that exited.
pub const RETURN_MAX: Duration = Duration::from_secs(10);

/// How often to retry.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

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

/// The place of a daemon.
#[derive(Debug)]
pub struct Place {
    pub paths: RuntimePaths,
    /// Whether a command may start one there.
    pub may_start: bool,
}

/// The environment of a command.
#[derive(Debug)]
pub struct Context {
    pub output: Output,
    socket: Option<PathBuf>,
}

impl Context {
    /// Creates a context. `socket` is the daemon's socket, if the command line names one.
    pub fn new(output: Output, socket: Option<PathBuf>) -> Self {
        Self { output, socket }
    }

    /// The socket from the command line.
    pub fn given_socket(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    /// Connects to the daemon, and starts one if the environment asks for it.
    ///
    /// # Errors
    /// No daemon runs, or it could not be started.
    pub async fn daemon(&self) -> Result<Daemon, Failure> {
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always => self.daemon_or_start(Rights::AsConfigured).await,
            Autostart::Never | Autostart::ToCreate => self.running_daemon().await,
        }
    }

    /// Connects to the daemon, for a command that starts one when none runs.
    ///
    /// # Errors
    /// As [`Context::daemon`], or `--allow-write` together with `--socket`.
    pub async fn daemon_to_create(&self, rights: Rights) -> Result<Daemon, Failure> {
        // The argument parser does not see a socket before the subcommand.
        if self.socket.is_some() && rights == Rights::Write {
            let words = "--socket cannot be used with --allow-write";
            return Err(Failure::Usage(words.to_owned()));
        }
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always | Autostart::ToCreate => self.daemon_or_start(rights).await,
            Autostart::Never => self.running_daemon().await,
        }
    }

    /// Connects to the daemon and never starts one. It waits for a daemon that is starting.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when no daemon runs.
    pub async fn running_daemon(&self) -> Result<Daemon, Failure> {
        let deadline = Instant::now() + PAUSE_MAX;
        let socket = self.operator_socket()?;
        loop {
            match Daemon::connect(&socket).await {
                // An impostor at the socket does not make way for a daemon that is starting.
                found @ Err(Failure::Unreachable { source: ConnectError::Impostor(_), .. }) => {
                    return found;
                }
                Err(_) if Instant::now() < deadline && is_locked(&socket) => {
                    sleep(LOOK_INTERVAL).await;
                }
                found => return found,
            }
        }
    }

    /// Waits for the next daemon at the same place, for at most [`RETURN_MAX`].
    ///
    /// # Errors
    /// As [`Context::next_daemon`].
    pub async fn daemon_after(&self) -> Result<Daemon, Failure> {
        self.next_daemon(RETURN_MAX, || true).await
    }

    /// Waits for the next daemon at the same place, for at most `most` and only while `worth_it` holds.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when none runs by then.
    pub async fn next_daemon(
        &self,
        most: Duration,
        worth_it: impl Fn() -> bool,
    ) -> Result<Daemon, Failure> {
        let deadline = Instant::now() + most;
        loop {
            match Daemon::connect(&self.operator_socket()?).await {
                Err(_) if Instant::now() < deadline && worth_it() => sleep(LOOK_INTERVAL).await,
                found => return found,
            }
        }
    }

    /// The daemon's place, for a command that does not use the operators' socket.
    ///
    /// # Errors
    /// There is no directory for its sockets.
    pub fn place(&self) -> Result<Place, Failure> {
        let Some(operator) = self.chosen_socket() else {
            let may_start = Autostart::of(env::var_os(AUTOSTART)) != Autostart::Never;
            return Ok(Place { paths: runtime_paths()?, may_start });
        };
        // Its sockets are in one directory. A daemon that we start uses its default directory.
        let operator = std::path::absolute(operator).context("the socket")?;
        let root = operator.parent().context("the socket is in no directory")?;
        let paths = RuntimePaths::at(root.to_owned()).context("the socket")?;
        Ok(Place { paths, may_start: false })
    }

    async fn daemon_or_start(&self, rights: Rights) -> Result<Daemon, Failure> {
        if self.chosen_socket().is_some() {
            // A daemon that we start listens at its default place, not at this one.
            return self.running_daemon().await;
        }
        let paths = runtime_paths()?;
        let connect = async || Daemon::try_connect(&paths.operator()).await;
        let hung_up =
            |error: &ConnectError| matches!(error, ConnectError::HungUp | ConnectError::NoGreeting);
        match settled(connect, hung_up).await {
            Ok(daemon) => Ok(daemon),
            Err(ConnectError::Absent | ConnectError::Refused) => {
                let reach = async || Daemon::try_connect(&paths.operator()).await.ok();
                start(&paths, rights, Stay::Long, reach).await
            }
            Err(
                source @ (ConnectError::Io(_)
                | ConnectError::Impostor(_)
                | ConnectError::HungUp
                | ConnectError::NoGreeting),
            ) => Err(Failure::unreachable(paths.operator(), source)),
        }
    }

    /// The daemon's operator socket.
    ///
    /// # Errors
    /// There is no directory for it.
    pub fn operator_socket(&self) -> Result<PathBuf, Failure> {
        operator_socket(self.socket.clone())
    }

    fn chosen_socket(&self) -> Option<PathBuf> {
        chosen_socket(self.socket.clone())
    }
}

/// The daemon's operator socket: `given`, or the one from the environment.
///
/// # Errors
/// There is no directory for it.
pub fn operator_socket(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match chosen_socket(given) {
        Some(socket) => Ok(socket),
        None => Ok(runtime_paths()?.operator()),
    }
}

fn chosen_socket(given: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || env::var_os(SOCKET).filter(|path| !path.is_empty()).map(PathBuf::from);
    given.or_else(variable)
}

/// Whether a process holds the lock of the daemon with this socket.
fn is_locked(socket: &Path) -> bool {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    paths.is_some_and(|paths| DaemonLock::owner(&paths.lock()).is_some())
}

/// The directory of the daemon's sockets, from the environment.
///
/// # Errors
/// There is no directory for them.
pub fn runtime_paths() -> Result<RuntimePaths, Failure> {
    let paths = RuntimePaths::from_environment(|name| env::var_os(name));
    Ok(paths.context("cannot determine the directory of the sockets")?)
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
