//! Keeps calls of an ended lease from a server.

use std::sync::Arc;

use tokio::sync::watch;

use crate::core::ids::{Epoch, LeaseId};

/// The lease under which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLease {
    pub lease: LeaseId,
    pub epoch: Epoch,
}

/// The epoch of the lease in force of one mount.
///
/// Whoever keeps the lease sets it before anybody is told of a change. What is sent through [`Fence::pass`] is sent before
/// the next change, or not at all.
#[derive(Debug)]
pub struct Fence(watch::Sender<Option<Epoch>>);

impl Default for Fence {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Fence {
    /// Has only calls of this epoch pass from now on.
    pub fn set(&self, epoch: Option<Epoch>) {
        self.0.send_if_modified(|in_force| std::mem::replace(in_force, epoch) != epoch);
    }

    /// Whether there is a lease in force.
    pub fn is_held(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Sends something under this epoch; `None` if it is over, and nothing was sent.
    pub fn pass<T>(&self, epoch: Epoch, send: impl FnOnce() -> T) -> Option<T> {
        // A change waits for the end of this borrow.
        let in_force = self.0.borrow();
        (*in_force == Some(epoch)).then(send)
    }

    /// Waits until this epoch is over.
    pub async fn ended(&self, epoch: Epoch) {
        // The fence has the sending end, so that the wait ends with the epoch only.
        let _ = self.0.subscribe().wait_for(|in_force| *in_force != Some(epoch)).await;
    }
}

/// Says of something that waits to be sent whether its epoch is over meanwhile.
#[derive(Clone, Debug)]
pub struct EpochGate {
    fence: Arc<Fence>,
    epoch: Epoch,
}

impl EpochGate {
    pub fn new(fence: Arc<Fence>, epoch: Epoch) -> Self {
        Self { fence, epoch }
    }

    /// Whether it may still be sent.
    pub fn is_open(&self) -> bool {
        self.fence.pass(self.epoch, || ()).is_some()
    }

    /// Waits until it may not be sent any more.
    pub async fn closed(&self) {
        self.fence.ended(self.epoch).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn only_the_epoch_in_force_passes() {
        let fence = Fence::default();
        assert_eq!(fence.pass(Epoch(1), || ()), None);
        fence.set(Some(Epoch(1)));
        assert_eq!(fence.pass(Epoch(1), || 7), Some(7));
        assert_eq!(fence.pass(Epoch(2), || 7), None);
        assert!(timeout(Duration::ZERO, fence.ended(Epoch(1))).await.is_err());
        fence.set(Some(Epoch(2)));
        fence.ended(Epoch(1)).await;
        assert_eq!(fence.pass(Epoch(1), || 7), None);
        assert!(fence.is_held());
    }
}
