//! Reaching a daemon with retries, and the error when none is reached.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::core::code::Code;
use crate::transport::bridge::upstream::Upstream;

/// The delay between attempts.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dial {
    /// Only check for a running daemon.
    Connect,
    /// A request is waiting: start a daemon if that is allowed.
    ConnectOrStart,
}

/// Why no daemon was reached.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Undialed {
    /// The error code for waiting requests. [`Code::UpstreamUnavailable`] means that a later attempt may succeed.
    pub code: Code,
    pub reason: String,
}

impl Undialed {
    fn may_change(&self) -> bool {
        self.code == Code::UpstreamUnavailable
    }
}

/// Retries until the deadline, but tries at least once. Stops at once when a daemon rejected the connection.
pub(super) async fn insist(
    dial: &impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    give_up_at: Instant,
) -> Result<Upstream, Undialed> {
    loop {
        match dial(Dial::ConnectOrStart).await {
            Err(undialed) if undialed.may_change() && Instant::now() < give_up_at => {
                sleep(RETRY_MIN).await;
            }
            dialed => return dialed,
        }
    }
}
