//! Acquires the daemon's lock, waits for an ending daemon, and notices the loss of the lock.

use std::time::Duration;

use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::config::paths::RuntimePaths;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::Process;
use crate::transport::unix::changes::Changes;
use crate::transport::unix::lock::{DaemonLock, LockError, LockState};

/// The interval between attempts to take the lock.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How long a daemon must accept clients to count as working.
const SERVED_FOR: Duration = Duration::from_millis(200);

/// How long to wait after a change of the lock's file, and between two checks where changes are not reported.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);

/// When to check even so: no change is reported of the directories above, or over a network.
const LOOK_ANYWAY: Duration = Duration::from_secs(600);

/// Takes the daemon's lock. Waits while its owner accepts no clients, because such a daemon is ending.
///
/// # Errors
/// Fails when a working daemon has the lock, or any process has it longer than `patience`.
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
        // A killed process accepts connections until its last thread has ended.
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

/// Keeps the lock's file in place; completes when another daemon has the lock.
pub(super) async fn lost(lock: &DaemonLock) {
    loop {
        // Watched first, so that no change is missed.
        let changes = Changes::of(lock.path());
        if lock.counts()
            && let Ok(changes) = changes
        {
            // Without its directory the file does not count either.
            let _ = timeout(LOOK_ANYWAY, changes.next()).await;
        }
        // While this process was stopped, another daemon may have run. Sessions whose shims served it notice that
        // meanwhile and end this daemon, whose state is stale.
        sleep(KEEP_INTERVAL).await;
        if lock.counts() {
            continue;
        }
        let lock = lock.clone();
        if matches!(spawn_blocking(move || lock.keep()).await, Ok(LockState::Lost)) {
            return;
        }
    }
}

/// Whether a process has ended, even if some of its threads still run.
fn has_ended(pid: Option<i32>) -> bool {
    pid.and_then(|pid| Process::find(ProcessId(pid))).is_some_and(|process| process.ended)
}

async fn is_served(paths: &RuntimePaths) -> bool {
    UnixStream::connect(paths.gateway()).await.is_ok()
}
