//! The news that roots have changed, for a server that has asked for them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The shortest time between two such news. Further ones are told together.
const PAUSE: Duration = Duration::from_secs(1);

/// The news of one start of a server.
#[derive(Debug)]
pub(super) struct RootsNews {
    changed: Arc<Notify>,
    /// Nothing is told before, just after something was.
    after: Option<Instant>,
}

impl RootsNews {
    pub(super) fn new() -> Self {
        Self { changed: Arc::default(), after: None }
    }

    /// What a client that was asked notifies.
    pub(super) fn told_by(&self) -> Weak<Notify> {
        Arc::downgrade(&self.changed)
    }

    /// Waits until roots have changed. Cancelling this loses nothing.
    pub(super) async fn next(&mut self) {
        if let Some(after) = self.after {
            sleep_until(after).await;
            self.after = None;
        }
        self.changed.notified().await;
        self.after = Some(Instant::now() + PAUSE);
    }
}
