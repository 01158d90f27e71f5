//! Reaching a daemon, and what whoever waits for one is told if none is reached.
//!
//! It must not know how a daemon is found or started; that is done by whoever made the bridge.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::core::code::Code;
use crate::transport::bridge::upstream::Upstream;

/// How soon is tried again.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(50);

/// How much may be done to reach a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dial {
    /// Look whether one is there.
    Connect,
    /// Somebody waits for it: start one, where that is allowed.
    ConnectOrStart,
}

/// Why no daemon was reached.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Undialed {
    /// What whoever waits for one is answered; [`Code::UpstreamUnavailable`] where it may well be
    /// reached in a moment.
    pub code: Code,
    pub reason: String,
}

impl Undialed {
    fn may_change(&self) -> bool {
        self.code == Code::UpstreamUnavailable
    }
}

/// Tries to reach a daemon until the time is over, and once at least; gives up at once where it was
/// reached and turned us away.
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
