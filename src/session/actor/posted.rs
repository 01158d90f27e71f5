//! What was posted past the line of commands: it counts before the next command and the next byte.

use crate::core::ids::ConnectionId;
use crate::core::lease::request::WaiterId;
use crate::session::actor::Actor;
use crate::session::pty::Pty;

/// How many connections that have ended are remembered.
const CLOSED_MAX: usize = 256;

impl<P: Pty> Actor<P> {
    /// Takes in all that was posted since this was last asked.
    pub(super) fn drain_urgent(&mut self) {
        let entries = self.urgent.take();
        let now = self.clock.now();
        for (by, reply) in entries.preempts {
            let held = self.input.preempt(now, by);
            self.preempted.push((reply, held));
        }
        for (name, reply) in entries.renames {
            let _ = reply.send(self.rename(name));
        }
        if let Some(window) = entries.window {
            self.input.set_window(now, window);
        }
        if entries.reclaim {
            self.input.begin_reclaim(now);
        }
        for waiter in entries.cancelled {
            self.give_up_waiting(waiter);
        }
        for write in entries.let_go {
            if let Some(token) = self.holds.remove(&write) {
                self.input.let_go(now, token);
            }
        }
        let given_up = entries.interrupts.into_iter();
        let given_up = given_up.filter(|(id, by)| self.may_interrupt(*id, by.as_ref()));
        let given_up = given_up.map(|(id, _)| id).collect();
        self.luggage.on_given_up(given_up, entries.spare_commands);
        for connection in entries.closed {
            self.on_connection_closed(connection);
        }
        self.detached.extend(entries.detached);
        self.parting = self.parting.max(entries.parting);
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
        self.input.on_connection_closed(self.clock.now(), connection);
        self.typed.retain(|_, (of, _)| *of != connection);
        self.closed.push_back(connection);
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
    }

    /// Tells operators what became of the lease, once nothing of it can go out any more.
    pub(super) fn answer_preempts(&mut self) {
        for (reply, held) in self.preempted.drain(..) {
            // An operator who no longer waits has got what it wanted.
            let _ = reply.send(held);
        }
    }
}
