//! What was posted past the line of commands: it counts before the next command and the next byte.

use crate::core::ids::ConnectionId;
use crate::core::lease::request::WaiterId;
use crate::session::actor::Actor;
use crate::session::pty::Pty;

/// How many connections that have ended are remembered.
const CLOSED_MAX: usize = 256;

impl<P: Pty> Actor<P> {
    /// Takes in all that was posted since this was last asked, one thing after the other: what is not done
    /// yet when one of them fails is done after it.
    pub(super) fn drain_urgent(&mut self) {
        self.collect_posted();
        let now = self.clock.now();
        while let Some((by, reply)) = self.reserve.inbox.preempts.pop_front() {
            let held = self.input.preempt(now, by);
            self.preempted.push((reply, held));
        }
        while let Some(principal) = self.reserve.inbox.ended_rights.pop_first() {
            self.input.end_right_of(now, principal);
        }
        while let Some(reply) = self.reserve.inbox.finders.pop_front() {
            // Judged now, it is no lease that is over.
            self.input.on_time(now);
            let _ = reply.send(self.input.lease().command_lines());
        }
        while let Some((name, reply)) = self.reserve.inbox.renames.pop_front() {
            let _ = reply.send(self.rename(name));
        }
        if let Some(window) = self.reserve.inbox.window.take() {
            self.reserve.window = window;
            self.input.set_window(now, window);
        }
        if std::mem::take(&mut self.reserve.inbox.reclaim) {
            self.input.begin_reclaim(now);
        }
        while let Some(waiter) = self.reserve.inbox.cancelled.pop_first() {
            self.give_up_waiting(waiter);
        }
        while let Some(write) = self.reserve.inbox.let_go.pop_first() {
            if let Some(token) = self.holds.remove(&write) {
                self.input.let_go(now, token);
            }
        }
        if std::mem::take(&mut self.reserve.inbox.spare_commands) {
            self.luggage.spare();
        }
        while let Some(given_up) = self.reserve.inbox.interrupts.pop_front() {
            self.luggage.on_given_up(given_up);
        }
        while let Some(connection) = self.reserve.inbox.closed.pop_first() {
            self.on_connection_closed(connection);
        }
        let mut detached = std::mem::take(&mut self.reserve.inbox.detached);
        self.detached.append(&mut detached);
    }

    /// Takes in what was posted, and does nothing of it but to note that the daemon ends.
    pub(super) fn collect_posted(&mut self) {
        self.reserve.inbox.add(self.urgent.take());
        self.parting = self.parting.max(self.reserve.inbox.parting.take());
    }

    /// Takes a caller out of the line that no longer waits, unless another call of the same waits
    /// with it.
    pub(super) fn give_up_waiting(&mut self, waiter: WaiterId) {
        let replies = self.waiting.entry(waiter).or_default();
        replies.retain(|reply| !reply.is_closed());
        if !replies.is_empty() {
            return;
        }
        self.waiting.remove(&waiter);
        let now = self.clock.now();
        if !self.input.cancel_wait(now, waiter) {
            // It was granted the lease in the same moment, and nobody is there to use it.
            self.input.on_undeliverable(now, waiter);
        }
    }

    fn on_connection_closed(&mut self, connection: ConnectionId) {
        self.closed.push_back(connection);
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
        self.typed.retain(|_, (of, _)| *of != connection);
        self.input.on_connection_closed(self.clock.now(), connection);
    }

    /// Tells operators what became of the lease, once nothing of it can go out any more.
    pub(super) fn answer_preempts(&mut self) {
        for (reply, held) in self.preempted.drain(..) {
            // An operator who no longer waits has got what it wanted.
            let _ = reply.send(held);
        }
    }
}
