//! The connections of callers: a lease and a wait live as long as one of their own that uses them.
//!
//! Nothing about rights is decided here; a connection is where a principal speaks, and no more.

use crate::core::caller::Caller;
use crate::core::ids::{ConnectionId, LeaseId};
use crate::core::lease::error::LeaseError;
use crate::core::lease::request::WaiterId;
use crate::core::lease::{LeaseManager, State};
use crate::core::moment::Moment;

impl LeaseManager {
    /// Notes that a connection closed: its waits are over, and with the last one of its holder that
    /// used it a lease goes the way it was acquired with.
    pub fn on_connection_closed(&mut self, now: Moment, connection: ConnectionId) {
        self.judge(now);
        for waiter in self.waiters.take_of_connection(connection) {
            self.refusals.push((waiter.id, LeaseError::WaitGivenUp));
        }
        let known = match &mut self.state {
            State::Held(holding) | State::Lapsed(holding) => Some(holding),
            State::Free => None,
        };
        let suspended = self.suspended.as_mut().map(|suspended| &mut suspended.holding);
        for holding in [known, suspended].into_iter().flatten() {
            holding.on_connection_closed(now, connection);
        }
        self.judge(now);
    }

    /// Notes that a caller asked again for the lease it was granted before; where it still has it, it
    /// has it on this connection too.
    pub(crate) fn on_asked_again(&mut self, caller: &Caller, lease: LeaseId) {
        if let State::Held(held) = &mut self.state
            && held.id == lease
        {
            held.follow(caller);
        }
    }

    /// Notes that a caller asked again for what it waits for: the wait is one of this connection now.
    pub(crate) fn on_waits_again(&mut self, waiter: WaiterId, caller: &Caller) {
        self.waiters.follow(waiter, caller);
    }
}
