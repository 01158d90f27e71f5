//! Who waits for an answer of a session's task, and whose connection has ended.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use crate::core::ids::ConnectionId;
use crate::core::input::request::WriteId;
use crate::core::lease::request::{Grant, HoldToken, WaiterId};
use crate::session::actor::Actor;
use crate::session::actor::write::Pending;
use crate::session::command::Reply;
use crate::session::pty::Pty;

/// How many connections that have ended are remembered.
const CLOSED_MAX: usize = 256;

/// The callers of a session, by what they wait for.
#[derive(Debug, Default)]
pub(super) struct Callers {
    pub(super) writes: u64,
    /// Those who wait for the terminal to take a write.
    pub(super) writing: Vec<(WriteId, Pending)>,
    /// Those who wait for the lease.
    waiting: HashMap<WaiterId, Vec<Reply<Grant>>>,
    /// What keeps the lease alive for those whose call goes on after its write.
    pub(super) holds: HashMap<WriteId, HoldToken>,
    /// Operators to be told whether the lease that they ended was held.
    pub(super) preempted: Vec<(oneshot::Sender<bool>, bool)>,
    /// The connections that ended last: their commands may still come, and have no effect.
    closed: VecDeque<ConnectionId>,
}

impl Callers {
    pub(super) fn next_write(&mut self) -> WriteId {
        self.writes += 1;
        WriteId(self.writes)
    }

    pub(super) fn wait(&mut self, waiter: WaiterId, reply: Reply<Grant>) {
        self.waiting.entry(waiter).or_default().push(reply);
    }

    pub(super) fn has_left(&self, connection: ConnectionId) -> bool {
        self.closed.contains(&connection)
    }

    /// Leaves those without an answer who wait for a part that failed; no command was given up by that.
    pub(super) fn dismiss(&mut self) {
        for (_, pending) in self.writing.drain(..) {
            pending.dismiss();
        }
        self.waiting.clear();
        self.holds.clear();
    }

    fn on_closed(&mut self, connection: ConnectionId) {
        self.closed.push_back(connection);
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn answer_waiters(&mut self) {
        for (waiter, grant) in self.input.take_grants() {
            let replies = self.callers.waiting.remove(&waiter).unwrap_or_default();
            let mut delivered = false;
            for reply in replies {
                delivered |= reply.send(Ok(grant.clone())).is_ok();
            }
            if !delivered {
                self.input.on_undeliverable(self.clock.now(), waiter);
            }
        }
        for (waiter, error) in self.input.take_refusals() {
            for reply in self.callers.waiting.remove(&waiter).unwrap_or_default() {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }

    /// Takes a caller out of the line that no longer waits, unless another call of the same waits
    /// with it.
    pub(super) fn give_up_waiting(&mut self, waiter: WaiterId) {
        let replies = self.callers.waiting.entry(waiter).or_default();
        replies.retain(|reply| !reply.is_closed());
        if !replies.is_empty() {
            return;
        }
        self.callers.waiting.remove(&waiter);
        let now = self.clock.now();
        if !self.input.cancel_wait(now, waiter) {
            // It was granted the lease in the same moment, and nobody is there to use it.
            self.input.on_undeliverable(now, waiter);
        }
    }

    pub(super) fn on_connection_closed(&mut self, connection: ConnectionId) {
        self.callers.on_closed(connection);
        self.typists.on_closed(connection);
        self.input.on_connection_closed(self.clock.now(), connection);
    }

    /// Tells operators what became of the lease, once nothing of it can go out any more.
    pub(super) fn answer_preempts(&mut self) {
        for (reply, held) in self.callers.preempted.drain(..) {
            // An operator who no longer waits has got what it wanted.
            let _ = reply.send(held);
        }
    }
}
