//! `stop`: ends the daemon and every session with it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::config::paths::RuntimePaths;
use crate::mcp::request_class::STOP_METHOD;
use crate::transport::client::ClientError;
use crate::transport::unix::lock::DaemonLock;

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
        let socket = daemon.path().to_owned();
        let late = |_| Failure::StillRunning(STOP_MAX);
        let asked = daemon.client().request(STOP_METHOD, json!({}));
        let unended = match timeout(STOP_MAX, asked).await.map_err(late)? {
            Ok(mut answer) => answer["unended"].take(),
            // It may be gone before its answer is.
            Err(ClientError::Closed) => Value::Null,
            Err(error) => return Err(error.into()),
        };
        drop(daemon);
        timeout(STOP_MAX, gone(&socket)).await.map_err(late)?;
        Ok(report(&unended, &left_behind(&socket).await))
    }
}

/// What is said of a daemon that has ended: what of its sessions did not, and which sessions wait for another.
fn report(unended: &Value, left: &[String]) -> Report {
    let mut notes = vec!["the daemon has ended".to_owned()];
    let told = unended.as_array().map_or(&[][..], Vec::as_slice);
    notes.extend(told.iter().map(|one| {
        let said = |member: &str| one[member].as_str().unwrap_or("?");
        format!("session {} ({}) did not end: {}", said("name"), said("session"), said("what"))
    }));
    if unended.is_null() {
        notes.push("the daemon did not say whether all its sessions ended".to_owned());
    }
    if !left.is_empty() {
        let (count, ids) = (left.len(), left.join(", "));
        notes.push(format!("{count} sessions did not end and wait for a daemon: {ids}"));
    }
    let all = !unended.is_null() && told.is_empty() && left.is_empty();
    Report {
        data: json!({"stopped": true, "left": left, "unended": unended}),
        text: String::new(),
        notes,
        exit: if all { Exit::Done } else { Exit::Failed },
        mcp_version: None,
    }
}

/// The sessions whose shims have not ended a moment after the daemon.
async fn left_behind(socket: &Path) -> Vec<String> {
    /// Longer than a shim takes to end that was told to.
    const LEFT_FOR: Duration = Duration::from_secs(2);
    let looking = async |left: &mut Vec<String>| {
        while !left.is_empty() {
            sleep(LOOK_INTERVAL).await;
            // Others may be a daemon's that was started meanwhile.
            let there = held(socket);
            left.retain(|one| there.contains(one));
        }
    };
    let mut left = held(socket);
    let _ = timeout(LEFT_FOR, looking(&mut left)).await;
    left
}

/// The sessions at whose places something lies.
fn held(socket: &Path) -> Vec<String> {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    let Some(Ok(held)) = paths.map(|paths| fs::read_dir(paths.shims())) else {
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
    let is_locked = |lock: &Path| DaemonLock::owner(lock).is_some();
    let there = || lock.as_deref().map_or_else(|| socket.symlink_metadata().is_ok(), is_locked);
    while there() {
        sleep(LOOK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_end_is_named_and_is_a_failure() {
        let done = report(&json!([]), &[]);
        assert_eq!((done.exit, done.notes.len()), (Exit::Done, 1));
        let what = "processes that do not end: 7 (sudo, of user 0)";
        let one = json!({"session": "0123456789ab", "name": "build", "what": what});
        let told = report(&json!([one]), &[]);
        assert_eq!(told.exit, Exit::Failed);
        assert_eq!(told.notes[1], format!("session build (0123456789ab) did not end: {what}"));
        assert_eq!(told.data["unended"][0]["what"], what);
        let left = report(&json!([]), &["0123456789ab".to_owned()]);
        assert_eq!((left.exit, &left.data["left"][0]), (Exit::Failed, &json!("0123456789ab")));
    }

    #[test]
    fn a_daemon_that_did_not_say_what_became_of_its_sessions_is_a_failure() {
        let told = report(&Value::Null, &[]);
        assert_eq!((told.exit, &told.data["unended"]), (Exit::Failed, &Value::Null));
        assert_eq!(told.notes[1], "the daemon did not say whether all its sessions ended");
    }
}
