//! Collects the facts for all checks once, before they run.
//!
//! Two steps take time, both bounded: asking the daemon, and waiting for shims whose state changes.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::doctor::shims::{HeldSession, held, settled};
use crate::cli::status::STATUS;
use crate::config::paths::{PathError, RuntimePaths};
use crate::transport::client::ConnectError;
use crate::wire::status::DaemonStatus;

/// The longest wait for the daemon's status.
const TELL_MAX: Duration = Duration::from_secs(3);

/// The state of the daemon.
#[derive(Debug)]
pub(super) enum FoundDaemon {
    /// It runs, and this is its status.
    Running(Box<DaemonStatus>),
    /// No daemon runs, though a killed one may have left its sockets.
    Absent,
    /// A daemon runs, or should, but does not work; contains the reason for people.
    Broken(String),
}

/// The facts that the checks use.
#[derive(Debug)]
pub(super) struct DoctorFacts {
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) paths: Result<RuntimePaths, PathError>,
    /// The socket where the daemon was expected.
    pub(super) socket: Option<PathBuf>,
    pub(super) daemon: FoundDaemon,
    /// The sessions that have a shim.
    pub(super) held: Vec<HeldSession>,
}

impl DoctorFacts {
    pub(super) async fn look(context: &Context) -> Self {
        let environment: BTreeMap<_, _> = env::vars_os().collect();
        let paths = RuntimePaths::from_environment(|name| env::var_os(name));
        let socket = context.operator_socket().ok();
        let daemon = match &socket {
            Some(socket) => ask(socket.clone()).await,
            None => FoundDaemon::Absent,
        };
        let runs = matches!(daemon, FoundDaemon::Running(_));
        let held = match &paths {
            Ok(paths) => settled(|| held(paths), runs).await,
            Err(_) => Vec::new(),
        };
        Self { environment, paths, socket, daemon, held }
    }

    /// A variable of the environment, unless it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name)).map(OsString::as_os_str);
        value.filter(|value| !value.is_empty())
    }
}

async fn ask(socket: PathBuf) -> FoundDaemon {
    let asking = async {
        let daemon = match DaemonClient::try_connect(&socket).await {
            Ok(daemon) => daemon,
            Err(ConnectError::Absent | ConnectError::Refused) => return FoundDaemon::Absent,
            Err(error) => return FoundDaemon::Broken(error.to_string()),
        };
        match daemon.read(STATUS).await {
            Ok(status) => FoundDaemon::Running(Box::new(status)),
            Err(error) => {
                FoundDaemon::Broken(format!("the daemon does not tell of itself: {error}"))
            }
        }
    };
    let late = |_| FoundDaemon::Broken("the daemon does not answer".to_owned());
    timeout(TELL_MAX, asking).await.unwrap_or_else(late)
}
