//! Whose turn it is to be the daemon: at once, or after one that is ending.
//!
//! It knows neither sessions nor what is asked of a daemon.

use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::config::paths::RuntimePaths;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::Process;
use crate::transport::unix::lock::{DaemonLock, LockError};

/// How often is looked whether the one before has gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// For how long a daemon must take clients in to count as one that works.
const SERVED_FOR: Duration = Duration::from_millis(200);

/// Takes the lock of the daemon, and waits for it while whoever has it takes nobody in any more,
/// which is how one ends.
///
/// # Errors
/// That another daemon has the lock and works, or has it for longer than `patience`.
pub(super) async fn take_in_turn(
    paths: &RuntimePaths,
    patience: Duration,
) -> Result<DaemonLock, LockError> {
    let until = Instant::now() + patience;
    let mut told = false;
    let mut served_since = None;
    loop {
        let taken = DaemonLock::take(&paths.lock());
        let owner = match &taken {
            Err(LockError::Held { pid }) => *pid,
            Ok(_) | Err(_) => return taken,
        };
        // One that was just killed can still be connected with, until its last thread has ended.
        served_since = match is_served(paths).await && !has_ended(owner) {
            true => served_since.or(Some(Instant::now())),
            false => None,
        };
        let works = served_since.is_some_and(|since| since.elapsed() >= SERVED_FOR);
        if works || Instant::now() >= until {
            return taken;
        }
        if !told && served_since.is_none() {
            tracing::info!("another daemon is ending; waiting for it");
            told = true;
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Whether a process has ended, though threads of it may still be ending.
fn has_ended(pid: Option<i32>) -> bool {
    pid.and_then(|pid| Process::find(ProcessId(pid))).is_some_and(|process| process.ended)
}

async fn is_served(paths: &RuntimePaths) -> bool {
    UnixStream::connect(paths.gateway()).await.is_ok()
}
