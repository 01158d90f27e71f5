//! What every command works with: its output, and the way to the daemon.
//!
//! It alone reads the variables that steer clients, so that they mean the same to all of them.

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

/// How long the next daemon is waited for after one that left or died.
pub const RETURN_MAX: Duration = Duration::from_secs(10);

/// How often a daemon that has gone is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How long a daemon is looked for that lives and does not let anybody in, as in the pause of an upgrade.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The variable that names the socket clients use.
const SOCKET: &str = "TERMGATE_SOCKET";
/// The variable that says which commands may start a daemon.
const AUTOSTART: &str = "TERMGATE_AUTOSTART";

/// Which commands start a daemon when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autostart {
    Never,
    /// Those that need one to do anything at all.
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

/// Where a daemon is.
#[derive(Debug)]
pub struct Place {
    pub paths: RuntimePaths,
    /// Whether one may be started there for a command that needs it.
    pub may_start: bool,
}

/// What a command works with.
#[derive(Debug)]
pub struct Context {
    pub output: Output,
    socket: Option<PathBuf>,
}

impl Context {
    /// A context whose daemon is at `socket`, where one is given.
    pub fn new(output: Output, socket: Option<PathBuf>) -> Self {
        Self { output, socket }
    }

    /// The socket given on the command line.
    pub fn given_socket(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    /// Connects to the daemon.
    ///
    /// # Errors
    /// That there is none, or that it could not be started where variables ask for that.
    pub async fn daemon(&self) -> Result<Daemon, Failure> {
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always => self.daemon_or_start(Rights::AsConfigured).await,
            Autostart::Never | Autostart::ToCreate => self.running_daemon().await,
        }
    }

    /// Connects to the daemon, on behalf of a command that starts one when there is none.
    ///
    /// # Errors
    /// As [`Context::daemon`], or that rights are asked for where none is started.
    pub async fn daemon_to_create(&self, rights: Rights) -> Result<Daemon, Failure> {
        // The grammar does not see a socket that stands before the command.
        if self.socket.is_some() && rights == Rights::Write {
            let words = "--socket cannot be used with --allow-write";
            return Err(Failure::Usage(words.to_owned()));
        }
        match Autostart::of(env::var_os(AUTOSTART)) {
            Autostart::Always | Autostart::ToCreate => self.daemon_or_start(rights).await,
            Autostart::Never => self.running_daemon().await,
        }
    }

    /// Connects to the daemon and never starts one; one that is on its way is waited for.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when there is none.
    pub async fn running_daemon(&self) -> Result<Daemon, Failure> {
        let deadline = Instant::now() + PAUSE_MAX;
        let socket = self.operator_socket()?;
        loop {
            match Daemon::connect(&socket).await {
                // Whoever listens in its place does not make way for one that is on its way.
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

    /// Waits for a daemon where the last one was, as long as one that follows may take.
    ///
    /// # Errors
    /// As [`Context::next_daemon`].
    pub async fn daemon_after(&self) -> Result<Daemon, Failure> {
        self.next_daemon(RETURN_MAX, || true).await
    }

    /// Waits for a daemon where the last one was, for so long and while it is worth it.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when there is none then.
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

    /// Where the daemon is, for a command that comes in by another door than the operators'.
    ///
    /// # Errors
    /// Why there is no place for its sockets.
    pub fn place(&self) -> Result<Place, Failure> {
        let Some(operator) = self.chosen_socket() else {
            let may_start = Autostart::of(env::var_os(AUTOSTART)) != Autostart::Never;
            return Ok(Place { paths: runtime_paths()?, may_start });
        };
        // Its doors stand beside each other; a daemon that we start has its own place.
        let operator = std::path::absolute(operator).context("the socket")?;
        let root = operator.parent().context("the socket is in no directory")?;
        let paths = RuntimePaths::at(root.to_owned()).context("the socket")?;
        Ok(Place { paths, may_start: false })
    }

    async fn daemon_or_start(&self, rights: Rights) -> Result<Daemon, Failure> {
        if self.chosen_socket().is_some() {
            // A daemon that we start listens at its own place, not at this one.
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

    /// Where the daemon is looked for.
    ///
    /// # Errors
    /// Why there is no place for it.
    pub fn operator_socket(&self) -> Result<PathBuf, Failure> {
        operator_socket(self.socket.clone())
    }

    fn chosen_socket(&self) -> Option<PathBuf> {
        chosen_socket(self.socket.clone())
    }
}

/// Where the daemon is looked for: at `given`, else where the environment says.
///
/// # Errors
/// Why there is no place for it.
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

/// Whether a process is the daemon whose socket is here.
fn is_locked(socket: &Path) -> bool {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    paths.is_some_and(|paths| DaemonLock::owner(&paths.lock()).is_some())
}

/// Where the daemon's sockets are, by the environment.
///
/// # Errors
/// Why there is no place for them.
pub fn runtime_paths() -> Result<RuntimePaths, Failure> {
    let paths = RuntimePaths::from_environment(|name| env::var_os(name));
    Ok(paths.context("cannot tell where the sockets are")?)
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
