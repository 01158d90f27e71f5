//! Tells one listener that rows left the screen of a session, or that it ended. Other changes wake nobody.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::core::ids::RowNumber;

/// What a session has told.
#[derive(Debug, Default)]
pub struct ScrolledRows {
    /// The end of history, and whether the session ended in the lowest bit.
    told: AtomicU64,
    changed: Notify,
}

impl ScrolledRows {
    /// Notes up to which row the newest frame has history, and whether it shows the end of the session.
    pub(in crate::session) fn note(&self, end: RowNumber, ended: bool) {
        let now = end.0 << 1 | u64::from(ended);
        // Only the session's task writes it.
        if self.told.load(Ordering::Relaxed) != now {
            self.told.store(now, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// Waits until rows left the screen or the session ended since this was last waited for.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
