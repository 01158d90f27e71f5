//! What the checks stand on: found out once, before any of them.
//!
//! It judges nothing. Asking the daemon takes time here, and looking again at what may be on its way; both
//! are bounded.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::doctor::shims::{Held, held, settled};
use crate::cli::status::STATUS;
use crate::config::paths::{PathError, RuntimePaths};
use crate::transport::client::ConnectError;
use crate::wire::status::DaemonStatus;

/// How long a daemon may take to tell of itself.
const TELL_MAX: Duration = Duration::from_secs(3);

/// The daemon as it was found.
#[derive(Debug)]
pub(super) enum Found {
    /// It runs, and this is its state.
    Running(Box<DaemonStatus>),
    /// Nobody is there, though one that was killed may have left its sockets.
    Absent,
    /// Somebody is there, or should be, and it does not work; why, for people.
    Broken(String),
}

/// What was found out.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) paths: Result<RuntimePaths, PathError>,
    /// Where the daemon was looked for.
    pub(super) socket: Option<PathBuf>,
    pub(super) daemon: Found,
    /// The sessions whose terminals are held.
    pub(super) held: Vec<Held>,
}

impl Ground {
    /// Looks around.
    pub(super) async fn look(context: &Context) -> Self {
        let environment: BTreeMap<_, _> = env::vars_os().collect();
        let paths = RuntimePaths::from_environment(|name| env::var_os(name));
        let socket = context.operator_socket().ok();
        let daemon = match &socket {
            Some(socket) => ask(socket.clone()).await,
            None => Found::Absent,
        };
        let runs = matches!(daemon, Found::Running(_));
        let held = match &paths {
            Ok(paths) => settled(|| held(paths), runs).await,
            Err(_) => Vec::new(),
        };
        Self { environment, paths, socket, daemon, held }
    }

    /// A variable of the environment, where it says anything.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name)).map(OsString::as_os_str);
        value.filter(|value| !value.is_empty())
    }
}

async fn ask(socket: PathBuf) -> Found {
    let asking = async {
        let daemon = match Daemon::try_connect(&socket).await {
            Ok(daemon) => daemon,
            Err(ConnectError::Absent | ConnectError::Refused) => return Found::Absent,
            Err(
                error @ (ConnectError::Io(_)
                | ConnectError::Impostor(_)
                | ConnectError::HungUp
                | ConnectError::NoGreeting),
            ) => {
                return Found::Broken(error.to_string());
            }
        };
        match daemon.read(STATUS).await {
            Ok(status) => Found::Running(Box::new(status)),
            Err(error) => Found::Broken(format!("the daemon does not tell of itself: {error}")),
        }
    };
    let late = |_| Found::Broken("the daemon does not answer".to_owned());
    timeout(TELL_MAX, asking).await.unwrap_or_else(late)
}
