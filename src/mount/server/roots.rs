//! The news that roots have changed, for a server that has asked for them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::mount::asking::{CallAsker, RootsHearer};

/// The shortest time between two such news. Further ones are told together.
const PAUSE: Duration = Duration::from_secs(1);

/// The news of one start of a server.
#[derive(Debug)]
pub(super) struct RootsNews {
    hearer: Arc<RootsHearer>,
    /// Nothing is told before, just after something was.
    after: Option<Instant>,
}

impl RootsNews {
    pub(super) fn new() -> Self {
        Self { hearer: Arc::default(), after: None }
    }

    /// What a client that was asked tells.
    pub(super) fn told_by(&self) -> Weak<RootsHearer> {
        Arc::downgrade(&self.hearer)
    }

    /// The client whose roots have changed, to be asked for them once.
    pub(super) fn take_asker(&self) -> Option<CallAsker> {
        self.hearer.take_asker()
    }

    /// Waits until roots have changed. Cancelling this loses nothing.
    pub(super) async fn next(&mut self) {
        if let Some(after) = self.after {
            sleep_until(after).await;
            self.after = None;
        }
        self.hearer.changed().await;
        self.after = Some(Instant::now() + PAUSE);
    }
}
