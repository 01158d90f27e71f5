//! Cancelled calls that a server may still be working on.
//!
//! A server need not answer a call that was cancelled. So it is waited for a moment, and no longer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::ids::{ConnectionId, Epoch};
use crate::mount::handle::{CALLS_MAX, ServerCall};

/// How long a call counts that was cancelled: the next holder's calls wait for it, and other clients are not asked.
const CANCELLED_WAIT: Duration = Duration::from_secs(2);

/// How many cancelled calls are waited for.
const CANCELLED_MAX: usize = 2 * CALLS_MAX;

/// The cancelled calls, and the calls that wait for those of earlier holders.
#[derive(Debug, Default)]
pub(super) struct Draining {
    cancelled: BTreeMap<u64, CancelledCall>,
    /// Until when calls count that there was no room for.
    forgotten_until: Option<Instant>,
    waiting: VecDeque<ServerCall>,
}

#[derive(Debug)]
struct CancelledCall {
    /// Of the lease that it was made under.
    epoch: Option<Epoch>,
    client: Option<ConnectionId>,
    until: Instant,
}

impl Draining {
    /// Notes a call that was cancelled while the server had it.
    pub(super) fn on_cancelled(&mut self, id: u64, call: &ServerCall, now: Instant) {
        if self.cancelled.len() == CANCELLED_MAX {
            let forgotten = self.cancelled.pop_first().map(|(_, call)| call.until);
            self.forgotten_until = self.forgotten_until.max(forgotten);
        }
        let (epoch, client) = (call.under.map(|it| it.epoch), call.client());
        let until = now + CANCELLED_WAIT;
        self.cancelled.insert(id, CancelledCall { epoch, client, until });
    }

    /// Notes that the server is done with a call.
    pub(super) fn on_answered(&mut self, id: u64) {
        self.cancelled.remove(&id);
    }

    /// Forgets the calls that were waited for long enough.
    pub(super) fn on_time(&mut self, now: Instant) {
        self.cancelled.retain(|_, call| now < call.until);
        self.forgotten_until.take_if(|until| *until <= now);
    }

    /// When to call [`Draining::on_time`] next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let known = self.cancelled.values().map(|call| call.until);
        known.chain(self.forgotten_until).min()
    }

    /// Whether a call of this epoch has to wait.
    pub(super) fn blocks(&self, epoch: Epoch) -> bool {
        let is_earlier = |call: &CancelledCall| call.epoch.is_some_and(|it| it < epoch);
        self.forgotten_until.is_some() || self.cancelled.values().any(is_earlier)
    }

    /// The clients of the cancelled calls; of those that were forgotten, nobody knows.
    pub(super) fn clients(&self) -> impl Iterator<Item = Option<ConnectionId>> {
        let known = self.cancelled.values().map(|call| call.client);
        known.chain(self.forgotten_until.map(|_| None))
    }

    /// Has a call wait until nothing blocks it.
    pub(super) fn wait(&mut self, call: ServerCall) {
        self.waiting.push_back(call);
    }

    /// How many calls wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes all calls that wait.
    pub(super) fn take_all(&mut self) -> VecDeque<ServerCall> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes all calls that wait, in order, once the first one is not blocked. Those that still are wait again.
    pub(super) fn take_ready(&mut self) -> VecDeque<ServerCall> {
        let first = self.waiting.front().and_then(|call| call.under);
        match first {
            Some(under) if self.blocks(under.epoch) => VecDeque::new(),
            Some(_) | None => std::mem::take(&mut self.waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::mount::handle::CallChannels;
    use crate::mount::protocol::ServerParams;

    fn call(id: u64) -> ServerCall {
        let (reply, _) = oneshot::channel();
        let (params, channels) = (ServerParams::default(), CallChannels::default());
        ServerCall { id, method: "a", params, channels, under: None, reply }
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_was_no_room_for_counts_as_anybodys_as_long_as_the_others() {
        let (mut draining, now) = (Draining::default(), Instant::now());
        for id in 0..CANCELLED_MAX as u64 {
            draining.on_cancelled(id, &call(id), now);
        }
        assert!(!draining.blocks(Epoch(1)));
        draining.on_cancelled(CANCELLED_MAX as u64, &call(0), now);
        for id in 0..=CANCELLED_MAX as u64 {
            draining.on_answered(id);
        }
        assert_eq!(draining.clients().collect::<Vec<_>>(), [None]);
        assert!(draining.blocks(Epoch(1)));
        assert_eq!(draining.deadline(), Some(now + CANCELLED_WAIT));
        draining.on_time(now + CANCELLED_WAIT);
        assert_eq!((draining.clients().count(), draining.deadline()), (0, None));
        assert!(!draining.blocks(Epoch(1)));
    }
}
