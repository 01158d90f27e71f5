//! How many long messages are read at a time from the servers of one mount, so that many together cannot fill the daemon's
//! memory.
//!
//! One that gets no place is read no further, and the rest of it stays with its server.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a message may become without a place, in bytes.
const SHORT_MAX: usize = 256 * 1024;

/// How many have a place. Each may become as long as a message may be, so none waits for another part of itself.
const LONG_MAX: usize = 4;

/// The places of one mount. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct LongMessages(Arc<Semaphore>);

impl LongMessages {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LONG_MAX)))
    }

    /// For the messages of one response, which come one after the other.
    pub(super) fn place(&self) -> MessagePlace<'_> {
        MessagePlace { all: &self.0, taken: None }
    }
}

/// The place of a message, once it is long.
#[derive(Debug)]
pub(super) struct MessagePlace<'a> {
    all: &'a Semaphore,
    taken: Option<SemaphorePermit<'a>>,
}

impl MessagePlace<'_> {
    /// Waits until as much of a message may be held as this, in bytes.
    pub(super) async fn hold(&mut self, bytes: usize) {
        if bytes > SHORT_MAX && self.taken.is_none() {
            // Nothing closes the semaphore.
            self.taken = self.all.acquire().await.ok();
        }
    }

    /// No more is held than this.
    pub(super) fn keep(&mut self, bytes: usize) {
        if bytes <= SHORT_MAX {
            self.taken = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn short_messages_never_wait_and_a_long_one_waits_for_the_end_of_another() {
        let all = LongMessages::new();
        let mut long: Vec<_> = (0..LONG_MAX).map(|_| all.place()).collect();
        for place in &mut long {
            place.hold(SHORT_MAX + 1).await;
            place.hold(usize::MAX).await;
        }
        let mut last = all.place();
        last.hold(SHORT_MAX).await;
        let is_held = async |place: &mut MessagePlace<'_>| {
            timeout(Duration::from_secs(1), place.hold(SHORT_MAX + 1)).await.is_ok()
        };
        assert!(!is_held(&mut last).await);
        long[0].keep(SHORT_MAX + 1);
        assert!(!is_held(&mut last).await);
        long[0].keep(0);
        assert!(is_held(&mut last).await && !is_held(&mut long[0]).await);
        drop(last);
        assert!(is_held(&mut long[0]).await);
    }
}
