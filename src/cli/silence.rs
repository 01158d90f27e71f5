//! Waits while a session's shim does not answer its daemon.

use std::time::Duration;

use tokio::time::sleep;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::transport::client::ClientError;

/// How often to check whether the shim answers.
pub const LOOK: Duration = Duration::from_millis(500);

/// Whether a session's shim is silent, as the daemon reports after this delay.
///
/// # Errors
/// The daemon is gone.
pub async fn is_silent(daemon: &Daemon, session: &str, after: Duration) -> Result<bool, Failure> {
    sleep(after).await;
    match daemon.session(session).await {
        Ok(session) => Ok(session.activity.is_silent()),
        Err(gone @ Failure::Request(ClientError::Closed)) => Err(gone),
        // The next request about the session gets the same error.
        Err(_) => Ok(false),
    }
}

/// Waits until a session's shim answers. It calls `told` if the shim is silent at first.
///
/// # Errors
/// The daemon is gone.
pub async fn over(daemon: &Daemon, session: &str, told: impl FnOnce()) -> Result<(), Failure> {
    if is_silent(daemon, session, Duration::ZERO).await? {
        told();
        while is_silent(daemon, session, LOOK).await? {}
    }
    Ok(())
}

/// The note for a person who waits.
pub fn note(name: &str) -> String {
    format!("[{name}: its terminal does not answer; waiting for it, C-c to stop]")
}
