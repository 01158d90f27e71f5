//! Whose turn it is to be the daemon: at once, or after one that is ending; and until when.
//!
//! It knows neither sessions nor what is asked of a daemon.

use std::time::Duration;

use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::config::paths::RuntimePaths;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::Process;
use crate::transport::unix::lock::{DaemonLock, Keeping, LockError};

/// How often is looked whether the one before has gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// For how long a daemon must take clients in to count as one that works.
const SERVED_FOR: Duration = Duration::from_millis(200);

/// How often a daemon looks whether it still has its place.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);

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

/// Keeps the place of the daemon that has the lock, and completes when another one has it.
pub(super) async fn lost(lock: &DaemonLock) {
    loop {
        sleep(KEEP_INTERVAL).await;
        if lock.counts() {
            continue;
        }
        // After a standstill another daemon may have come and gone. Sessions whose shims listened to that
        // one notice it meanwhile, which ends this daemon: what it knows of them is old.
        sleep(KEEP_INTERVAL).await;
        let lock = lock.clone();
        if matches!(spawn_blocking(move || lock.keep()).await, Ok(Keeping::Lost)) {
            return;
        }
    }
}

/// Whether a process has ended, though threads of it may still be ending.
fn has_ended(pid: Option<i32>) -> bool {
    pid.and_then(|pid| Process::find(ProcessId(pid))).is_some_and(|process| process.ended)
}

async fn is_served(paths: &RuntimePaths) -> bool {
    UnixStream::connect(paths.gateway()).await.is_ok()
}
