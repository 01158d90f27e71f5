//! Sessions for whose terminals nobody answers their daemon yet: whoever was at one waits for it.
//!
//! It asks the daemon, and knows nothing of shims nor of how a wait is shown.

use std::time::Duration;

use tokio::time::sleep;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::transport::client::ClientError;

/// How often is looked whether somebody answers.
pub const LOOK: Duration = Duration::from_millis(500);

/// Whether nobody answers for the terminal of a session, as the daemon says after so long.
///
/// # Errors
/// That the daemon has gone.
pub async fn is_silent(daemon: &Daemon, session: &str, after: Duration) -> Result<bool, Failure> {
    sleep(after).await;
    match daemon.session(session).await {
        Ok(session) => Ok(session.activity.is_silent()),
        Err(gone @ Failure::Request(ClientError::Closed)) => Err(gone),
        // Whatever is asked of the session next is answered so, too.
        Err(_) => Ok(false),
    }
}

/// Waits until somebody answers for the terminal of a session; `told` is called if nobody does at first.
///
/// # Errors
/// That the daemon has gone.
pub async fn over(daemon: &Daemon, session: &str, told: impl FnOnce()) -> Result<(), Failure> {
    if is_silent(daemon, session, Duration::ZERO).await? {
        told();
        while is_silent(daemon, session, LOOK).await? {}
    }
    Ok(())
}

/// What whoever waits is told.
pub fn note(name: &str) -> String {
    format!("[{name}: its terminal does not answer; waiting for it, C-c to stop]")
}
