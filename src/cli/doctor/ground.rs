//! Collects the facts for all checks once, before they run.
//!
//! Two steps take time, both bounded: asking the daemon, and waiting for shims whose state changes.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::doctor::shims::{HeldSession, held, settled};
use crate::cli::status::STATUS;
use crate::config::paths::{PathError, RuntimePaths};
use crate::transport::client::ConnectError;
use crate::wire::mount::{MountList, MountWire};
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
    /// The mounts of a daemon that runs.
    pub(super) mounts: Vec<MountWire>,
    /// The sessions that have a shim.
    pub(super) held: Vec<HeldSession>,
}

impl DoctorFacts {
    pub(super) async fn look(context: &Context) -> Self {
        let environment: BTreeMap<_, _> = env::vars_os().collect();
        let paths = RuntimePaths::from_environment(|name| env::var_os(name));
        let socket = context.operator_socket().ok();
        let (daemon, mounts) = match &socket {
            Some(socket) => ask(socket.clone()).await,
            None => (FoundDaemon::Absent, Vec::new()),
        };
        let runs = matches!(daemon, FoundDaemon::Running(_));
        let held = match &paths {
            Ok(paths) => settled(|| held(paths), runs).await,
            Err(_) => Vec::new(),
        };
        Self { environment, paths, socket, daemon, mounts, held }
    }

    /// A variable of the environment, unless it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name)).map(OsString::as_os_str);
        value.filter(|value| !value.is_empty())
    }
}

async fn ask(socket: PathBuf) -> (FoundDaemon, Vec<MountWire>) {
    let mut mounts = Vec::new();
    let asking = async {
        let daemon = match DaemonClient::try_connect(&socket).await {
            Ok(daemon) => daemon,
            Err(ConnectError::Absent | ConnectError::Refused) => return FoundDaemon::Absent,
            Err(error) => return FoundDaemon::Broken(error.to_string()),
        };
        match daemon.read(STATUS).await {
            Ok(status) => {
                let asked = daemon.call("manage_mounts", json!({"action": "list"})).await;
                let listed = asked.and_then(|answer| answer.read::<MountList>());
                // A daemon of an earlier version has none.
                mounts = listed.map(|list| list.mounts).unwrap_or_default();
                FoundDaemon::Running(Box::new(status))
            }
            Err(error) => {
                FoundDaemon::Broken(format!("the daemon does not tell of itself: {error}"))
            }
        }
    };
    let late = |_| FoundDaemon::Broken("the daemon does not answer".to_owned());
    let found = timeout(TELL_MAX, asking).await.unwrap_or_else(late);
    (found, mounts)
}
