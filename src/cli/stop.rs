//! `stop`: ends the daemon and every session with it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::config::paths::RuntimePaths;
use crate::mcp::long::STOP_METHOD;
use crate::transport::client::ClientError;

/// How long a daemon may take to end.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How often is looked whether it has.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// End the daemon and every session with it
#[derive(Debug, Args)]
pub struct Stop {}

impl Stop {
    /// Runs the command; when it is done, another daemon can start.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when there is none, [`Failure::StillRunning`] when it does not end.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let daemon = context.running_daemon().await?;
        match daemon.client().request(STOP_METHOD, json!({})).await {
            // It may be gone before its answer is.
            Ok(_) | Err(ClientError::Closed) => {}
            Err(error) => return Err(error.into()),
        }
        let socket = daemon.path();
        timeout(STOP_MAX, gone(socket)).await.map_err(|_| Failure::StillRunning(STOP_MAX))?;
        let left = left_behind(socket);
        let mut notes = vec!["the daemon has ended".to_owned()];
        if !left.is_empty() {
            let (count, ids) = (left.len(), left.join(", "));
            notes.push(format!("{count} sessions did not end and wait for a daemon: {ids}"));
        }
        Ok(Report {
            data: json!({"stopped": true, "left": left}),
            text: String::new(),
            notes,
            exit: Exit::Done,
            mcp_version: None,
        })
    }
}

/// The sessions whose holders did not end with the daemon.
fn left_behind(socket: &Path) -> Vec<String> {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    let Some(Ok(held)) = paths.map(|paths| fs::read_dir(paths.holders())) else {
        return Vec::new();
    };
    let names = held.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".sock")?.to_owned())).collect()
}

/// Completes when nobody holds the daemon's lock; where there is none, when the socket is gone.
///
/// A socket that a service manager owns stays when the daemon has ended.
async fn gone(socket: &Path) {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    let lock = paths.map(|paths| paths.lock()).filter(|lock| lock.exists());
    let there = || lock.as_deref().map_or_else(|| socket.symlink_metadata().is_ok(), is_locked);
    while there() {
        sleep(LOOK_INTERVAL).await;
    }
}

/// Whether a daemon holds the lock. Asking takes a shared lock for a moment, no longer.
fn is_locked(lock: &Path) -> bool {
    let locked = File::open(lock).and_then(|file| file.try_lock_shared().map_err(io::Error::from));
    locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_counts_as_held_only_while_somebody_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.lock");
        assert!(!is_locked(&path));
        let held = File::create(&path).unwrap();
        held.lock().unwrap();
        assert!(is_locked(&path));
        drop(held);
        assert!(!is_locked(&path));
    }
}
