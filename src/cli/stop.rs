//! `stop`: ends the daemon and all its sessions.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::Deserialize as _;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::cli::context::Context;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::config::paths::RuntimePaths;
use crate::core::counted::counted;
use crate::mcp::request_class::STOP_METHOD;
use crate::transport::client::ClientError;
use crate::transport::unix::lock::DaemonLock;
use crate::wire::status::{Stopping, UnendedSession};

/// How long a daemon may take to end.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How often to check.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// End the daemon and all its sessions
///
/// Ends all processes of the sessions within 5 seconds. If some remain, it names them and ends with 1.
#[derive(Debug, Args)]
pub struct StopCommand {}

impl StopCommand {
    /// Afterwards another daemon can start.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] when no daemon runs, [`CliFailure::StillRunning`] when it does not end.
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let daemon = context.running_daemon().await.map_err(CliFailure::without_start)?;
        let socket = daemon.path().to_owned();
        let late = |_| CliFailure::StillRunning(STOP_MAX);
        let asked = daemon.client().request(STOP_METHOD, json!({}));
        let unended = match timeout(STOP_MAX, asked).await.map_err(late)? {
            Ok(answer) => Stopping::deserialize(answer).ok().map(|stopping| stopping.unended),
            // The daemon may exit before its answer is sent.
            Err(ClientError::Closed) => None,
            Err(error) => return Err(error.into()),
        };
        drop(daemon);
        timeout(STOP_MAX, gone(&socket)).await.map_err(late)?;
        Ok(report(unended.as_deref(), &left_behind(&socket).await))
    }
}

/// The report about a daemon that ended, with sessions that did not end and sessions left behind.
fn report(unended: Option<&[UnendedSession]>, left: &[String]) -> CommandReport {
    let mut notes = vec!["the daemon has ended".to_owned()];
    notes.extend(unended.unwrap_or_default().iter().map(
        |UnendedSession { session, name, what }| {
            format!("session {name} ({session}) did not end: {what}")
        },
    ));
    if unended.is_none() {
        notes.push("the daemon did not say whether all its sessions ended".to_owned());
    }
    if !left.is_empty() {
        let (count, ids) = (counted(left.len(), "session"), left.join(", "));
        notes.push(format!("{count} did not end; the next daemon resumes: {ids}"));
    }
    let all = unended.is_some_and(<[_]>::is_empty) && left.is_empty();
    let data = json!({"stopped": true, "left": left, "unended": unended});
    let exit = if all { CommandExit::Done } else { CommandExit::Failed };
    CommandReport { notes, exit, ..CommandReport::new(data, "") }
}

/// The sessions whose shims still run a moment after the daemon.
async fn left_behind(socket: &Path) -> Vec<String> {
    /// Longer than a shim takes to end.
    const LEFT_FOR: Duration = Duration::from_secs(2);
    let looking = async |left: &mut Vec<String>| {
        while !left.is_empty() {
            sleep(LOOK_INTERVAL).await;
            // New sessions may belong to a daemon that was started meanwhile.
            let there = held(socket);
            left.retain(|one| there.contains(one));
        }
    };
    let mut left = held(socket);
    let _ = timeout(LEFT_FOR, looking(&mut left)).await;
    left
}

/// The sessions whose shims have a socket.
fn held(socket: &Path) -> Vec<String> {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    let Some(Ok(held)) = paths.map(|paths| fs::read_dir(paths.shims())) else {
        return Vec::new();
    };
    let names = held.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".sock")?.to_owned())).collect()
}

/// Completes when no process holds the daemon's lock; without a lock, when the socket is gone.
///
/// A service manager's socket stays after the daemon ended.
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
        let done = report(Some(&[]), &[]);
        assert_eq!((done.exit, done.notes.len()), (CommandExit::Done, 1));
        let what = "processes that do not end: 7 (sudo, of user 0)";
        let (session, name) = ("0123456789ab".to_owned(), "build".to_owned());
        let told = report(Some(&[UnendedSession { session, name, what: what.to_owned() }]), &[]);
        assert_eq!(told.exit, CommandExit::Failed);
        assert_eq!(told.notes[1], format!("session build (0123456789ab) did not end: {what}"));
        assert_eq!(told.data["unended"][0]["what"], what);
        let left = report(Some(&[]), &["0123456789ab".to_owned()]);
        assert_eq!(
            (left.exit, &left.data["left"][0]),
            (CommandExit::Failed, &json!("0123456789ab"))
        );
    }

    #[test]
    fn a_daemon_that_did_not_say_what_became_of_its_sessions_is_a_failure() {
        let told = report(None, &[]);
        assert_eq!((told.exit, &told.data["unended"]), (CommandExit::Failed, &json!(null)));
        assert_eq!(told.notes[1], "the daemon did not say whether all its sessions ended");
    }
}
