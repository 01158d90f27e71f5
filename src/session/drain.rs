//! Lets a daemon leave its sessions to the next one, and ends the calls that wait on them.
//! Each waiting call reports the departure, so that its client continues with the next daemon instead of
//! losing its connection.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Whether the daemon is leaving, and which calls still wait.
#[derive(Debug, Default)]
pub struct Departure {
    begun: CancellationToken,
    waiting: TaskTracker,
}

/// A call that waits. The daemon does not leave before this is dropped.
#[derive(Clone, Debug)]
pub struct WaitingCall {
    begun: CancellationToken,
    _counted: TaskTrackerToken,
}

impl Departure {
    pub fn waiting(&self) -> WaitingCall {
        WaitingCall { begun: self.begun.clone(), _counted: self.waiting.token() }
    }

    /// Announces the departure to all present and future waiting calls, then waits until none is left.
    pub async fn begin(&self) {
        self.begun.cancel();
        self.nobody_waits().await;
    }

    /// Waits until no call waits. Does not announce a departure.
    pub async fn nobody_waits(&self) {
        self.waiting.close();
        self.waiting.wait().await;
    }
}

impl WaitingCall {
    pub async fn told(&self) {
        self.begun.cancelled().await;
    }

    /// Waits for `wanted`. Returns `None` if the daemon leaves first.
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
