//! Those who wait for a lease: first come, first served, bounded, each with an own deadline.

use std::collections::VecDeque;

use crate::core::caller::Caller;
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::lease::error::LeaseError;
use crate::core::lease::limits::Terms;
use crate::core::lease::request::WaiterId;
use crate::core::moment::Moment;

/// A caller in the queue, and the terms on which it wants the lease.
#[derive(Clone, Debug)]
pub(super) struct LeaseWaiter {
    pub id: WaiterId,
    pub until: Moment,
    pub caller: Caller,
    pub terms: Terms,
}

/// The queue of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    queue: VecDeque<LeaseWaiter>,
    issued: u64,
}

impl Waiters {
    /// Nobody waits; names are given above this one.
    pub(super) fn after(newest: WaiterId) -> Self {
        Self { issued: newest.0, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn join(
        &mut self,
        caller: Caller,
        terms: Terms,
        until: Moment,
        (waiters_max, of_tenant_max): (usize, usize),
    ) -> Result<WaiterId, LeaseError> {
        let of_tenant = |waiter: &&LeaseWaiter| waiter.caller.tenant == caller.tenant;
        if self.queue.len() >= waiters_max {
            return Err(LeaseError::QueueFull { waiters_max });
        }
        if self.queue.iter().filter(of_tenant).count() >= of_tenant_max {
            return Err(LeaseError::QueueFull { waiters_max: of_tenant_max });
        }
        self.issued += 1;
        let id = WaiterId(self.issued);
        self.queue.push_back(LeaseWaiter { id, until, caller, terms });
        Ok(id)
    }

    /// Notes that a waiter asks on this connection now.
    pub(super) fn follow(&mut self, id: WaiterId, caller: &Caller) {
        if let Some(waiter) = self.queue.iter_mut().find(|waiter| waiter.id == id) {
            waiter.caller = caller.clone();
        }
    }

    pub(super) fn take_next(&mut self) -> Option<LeaseWaiter> {
        self.queue.pop_front()
    }

    /// Takes a principal that waits out of its turn.
    pub(super) fn take_first_of(
        &mut self,
        principal: PrincipalId,
        tenant: &TenantId,
    ) -> Option<LeaseWaiter> {
        let wanted = |waiter: &LeaseWaiter| {
            waiter.caller.principal == principal && waiter.caller.tenant == *tenant
        };
        let index = self.queue.iter().position(wanted)?;
        self.queue.remove(index)
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        self.queue.iter().map(|waiter| waiter.until).min()
    }

    pub(super) fn cancel(&mut self, id: WaiterId) -> bool {
        !self.take_where(|waiter| waiter.id == id).is_empty()
    }

    pub(super) fn take_over_by(&mut self, now: Moment) -> Vec<LeaseWaiter> {
        self.take_where(|waiter| waiter.until <= now)
    }

    pub(super) fn take_of_connection(&mut self, connection: ConnectionId) -> Vec<LeaseWaiter> {
        self.take_where(|waiter| waiter.caller.connection == connection)
    }

    pub(super) fn take_of_principal(&mut self, principal: PrincipalId) -> Vec<LeaseWaiter> {
        self.take_where(|waiter| waiter.caller.principal == principal)
    }

    pub(super) fn take_all(&mut self) -> Vec<LeaseWaiter> {
        self.take_where(|_| true)
    }

    pub(super) fn take_where(&mut self, leaves: impl Fn(&LeaseWaiter) -> bool) -> Vec<LeaseWaiter> {
        let (gone, stay): (VecDeque<_>, _) = self.queue.drain(..).partition(leaves);
        self.queue = stay;
        gone.into()
    }
}
