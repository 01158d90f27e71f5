//! How far those have read who compare every row of a session. Its task keeps unread rows in history for them, at the
//! expense of the program, which waits meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::core::ids::RowNumber;

/// Those of one session.
#[derive(Debug, Default)]
pub struct RowFollowers {
    /// For each the first row that it has not read.
    next: Mutex<Vec<Arc<AtomicU64>>>,
    progress: Notify,
}

impl RowFollowers {
    /// The first row that one of them has not read; none without any.
    pub(in crate::session) fn next_row(&self) -> Option<RowNumber> {
        let followers = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        followers.iter().map(|row| RowNumber(row.load(Ordering::Relaxed))).min()
    }

    /// Waits until one of them has read more, or left.
    pub(in crate::session) async fn progress(&self) {
        self.progress.notified().await;
    }
}

/// One of them, while this exists.
#[derive(Debug)]
pub struct RowFollower {
    all: Arc<RowFollowers>,
    next: Arc<AtomicU64>,
}

impl RowFollower {
    /// Starts to read at this row.
    pub(in crate::session) fn start(all: Arc<RowFollowers>, row: RowNumber) -> Self {
        let next = Arc::new(AtomicU64::new(row.0));
        all.next.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&next));
        Self { all, next }
    }

    /// Notes that all rows above this one were read.
    pub fn advance(&self, row: RowNumber) {
        self.next.store(row.0, Ordering::Relaxed);
        self.all.progress.notify_one();
    }
}

impl Drop for RowFollower {
    fn drop(&mut self) {
        let mut next = self.all.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.retain(|row| !Arc::ptr_eq(row, &self.next));
        drop(next);
        self.all.progress.notify_one();
    }
}
