//! A daemon that leaves its sessions to the next one, and the calls that wait on them meanwhile.
//!
//! It knows nothing of what is waited for: whoever waits is told, and says so to its caller, who goes
//! on with the next daemon instead of being hung up on.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Whether the daemon leaves, and who has still to hear of it.
#[derive(Debug, Default)]
pub struct Departure {
    begun: CancellationToken,
    waiting: TaskTracker,
}

/// Somebody who waits; the daemon does not leave before this is dropped.
#[derive(Clone, Debug)]
pub struct Waiting {
    begun: CancellationToken,
    _counted: TaskTrackerToken,
}

impl Departure {
    /// Counts somebody who is about to wait.
    pub fn waiting(&self) -> Waiting {
        Waiting { begun: self.begun.clone(), _counted: self.waiting.token() }
    }

    /// Tells all who wait, and whoever is going to, and waits until none is left.
    pub async fn begin(&self) {
        self.begun.cancel();
        self.nobody_waits().await;
    }

    /// Waits until nobody waits any more, which those who do are not told.
    pub async fn nobody_waits(&self) {
        self.waiting.close();
        self.waiting.wait().await;
    }
}

impl Waiting {
    /// Waits until the daemon leaves.
    pub async fn told(&self) {
        self.begun.cancelled().await;
    }

    /// Waits for something, unless it has not come when the daemon leaves.
    pub async fn unless_told<T>(&self, wanted: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            came = wanted => Some(came),
            () = self.told() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_departure_waits_for_all_that_wait_and_tells_them_before() {
        let departure = Arc::new(Departure::default());
        let (first, second) = (departure.waiting(), departure.waiting());
        let leaving = Arc::clone(&departure);
        let leaving = tokio::spawn(async move { leaving.begin().await });
        for waiting in [first, second] {
            waiting.told().await;
            yield_now().await;
            assert!(!leaving.is_finished());
        }
        leaving.await.unwrap();
        departure.waiting().told().await;
    }
}
