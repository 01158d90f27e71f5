//! The last few leases that ended, so that whoever comes back with one is told what became of it.
//!
//! It knows nothing of leases in force.

use std::collections::VecDeque;

use crate::core::caller::Caller;
use crate::core::ids::{LeaseId, PrincipalId, TenantId};
use crate::core::lease::error::EndCause;
use crate::core::lease::holding::Holding;

/// A lease that ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub id: LeaseId,
    pub principal: PrincipalId,
    pub tenant: TenantId,
    pub cause: EndCause,
}

/// The last few leases that ended, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedLeases {
    recent: VecDeque<Ended>,
}

impl EndedLeases {
    /// How many ended leases are remembered.
    pub(super) const KEPT_MAX: usize = 16;

    /// Remembers how a lease ended. One that nobody took back after a restart is none: its id is
    /// answered like all others from before.
    pub(super) fn remember(&mut self, holding: Holding, cause: EndCause) {
        if holding.is_former() {
            return;
        }
        let Holding { id, holder, .. } = holding;
        self.remember_of(id, holder, cause);
    }

    /// Remembers how the lease of this holder ended.
    pub(super) fn remember_of(&mut self, id: LeaseId, holder: Caller, cause: EndCause) {
        if self.recent.len() == Self::KEPT_MAX {
            self.recent.pop_front();
        }
        let Caller { principal, tenant, .. } = holder;
        self.recent.push_back(Ended { id, principal, tenant, cause });
    }

    pub(super) fn find(&self, id: LeaseId) -> Option<&Ended> {
        self.recent.iter().rev().find(|ended| ended.id == id)
    }

    /// The newest lease that a principal had and lost or gave up.
    pub(super) fn last_of(&self, principal: PrincipalId) -> Option<&Ended> {
        self.recent.iter().rev().find(|ended| ended.principal == principal)
    }

    /// How the newest lease of a principal ended, if that was not its own doing.
    pub(super) fn lost_by(&self, principal: PrincipalId) -> Option<&EndCause> {
        let cause = &self.last_of(principal)?.cause;
        match cause {
            EndCause::Released | EndCause::HandedOver { .. } => None,
            EndCause::Expired
            | EndCause::HeldTooLong
            | EndCause::Disconnected
            | EndCause::Undeliverable
            | EndCause::Preempted { .. }
            | EndCause::Replaced { .. }
            | EndCause::WritingSwitchedOff
            | EndCause::SessionEnded
            | EndCause::SessionRestarted
            | EndCause::RightEnded => Some(cause),
        }
    }
}
