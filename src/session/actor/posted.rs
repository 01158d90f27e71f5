//! What was posted past the line of commands: it counts before the next command and the next byte.

use crate::session::actor::Actor;
use crate::session::pty::Pty;

impl<P: Pty> Actor<P> {
    /// Takes in all that was posted since this was last asked, one thing after the other: what is not done
    /// yet when one of them fails is done after it.
    pub(super) fn drain_urgent(&mut self) {
        self.collect_posted();
        let now = self.clock.now();
        while let Some((by, reply)) = self.reserve.inbox.preempts.pop_front() {
            let held = self.input.preempt(now, by);
            self.callers.preempted.push((reply, held));
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
            if let Some(token) = self.callers.holds.remove(&write) {
                self.input.let_go(now, token);
            }
        }
        if std::mem::take(&mut self.reserve.inbox.spare_commands) {
            self.luggage.spare();
        }
        while let Some(given_up) = self.reserve.inbox.interrupts.pop_front() {
            self.luggage.on_given_up(now, given_up);
        }
        while let Some(connection) = self.reserve.inbox.closed.pop_first() {
            self.on_connection_closed(connection);
        }
        self.typists.left.append(&mut self.reserve.inbox.detached);
    }

    /// Takes in what was posted, and does nothing of it but to note that the daemon ends.
    pub(super) fn collect_posted(&mut self) {
        self.reserve.inbox.add(self.urgent.take());
        self.ending.parting = self.ending.parting.max(self.reserve.inbox.parting.take());
    }
}
