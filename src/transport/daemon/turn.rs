//! Whose turn it is to be the daemon: at once, or after one that is ending.
//!
//! It knows neither sessions nor what is asked of a daemon.

use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::config::paths::RuntimePaths;
use crate::transport::unix::lock::{DaemonLock, LockError};

/// How often is looked whether the one before has gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

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
    loop {
        let taken = DaemonLock::take(&paths.lock());
        let is_held = matches!(taken, Err(LockError::Held { .. }));
        if !is_held || Instant::now() >= until || is_served(paths).await {
            return taken;
        }
        if !told {
            tracing::info!("another daemon is ending; waiting for it");
            told = true;
        }
        sleep(LOOK_INTERVAL).await;
    }
}

async fn is_served(paths: &RuntimePaths) -> bool {
    UnixStream::connect(paths.gateway()).await.is_ok()
}
