//! The lease after the task that kept it failed: nobody has it, and who had it is answered so.
//!
//! What failed is not asked. What it was known by before is enough to tell each holder, and to give no
//! epoch and no name a second time.

use crate::core::caller::Caller;
use crate::core::ids::{Epoch, LeaseId};
use crate::core::lease::LeaseManager;
use crate::core::lease::error::EndCause;
use crate::core::lease::event::{LeaseChange, LeaseEvent};
use crate::core::lease::holding::Holding;
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::request::WaiterId;
use crate::core::lease::waiters::Waiters;

/// Somebody who has a lease, in force or suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    pub lease: LeaseId,
    pub epoch: Epoch,
    pub holder: Caller,
}

impl Party {
    /// Whether it is the same holding, on the same connection.
    pub fn is_of(&self, lease: LeaseId, epoch: Epoch, holder: &Caller) -> bool {
        (self.lease, self.epoch) == (lease, epoch) && self.holder.connection == holder.connection
    }

    /// What its holder is told after the failure.
    pub fn ended(self) -> LeaseEvent {
        let change = LeaseChange::Ended(EndCause::SessionRestarted);
        LeaseEvent { holder: self.holder, epoch: self.epoch, change }
    }
}

/// What is known of a lease whose task failed.
#[derive(Debug)]
pub struct Failed<'a> {
    /// Who had it, and who waited for a person to be done.
    pub parties: &'a [Party],
    /// The highest epoch that anybody was told of.
    pub epoch: Epoch,
    /// The newest name of somebody who waited.
    pub waiter: WaiterId,
    pub limits: LeaseLimits,
}

impl LeaseManager {
    /// A free lease in place of one that failed. Every epoch and every name that it gives is above those
    /// from before; whoever had the lease is told that it ended.
    pub fn after_failure(failed: Failed<'_>) -> Self {
        let Failed { parties, epoch, waiter, limits } = failed;
        let mut lease = Self::new(epoch, limits);
        lease.waiters = Waiters::after(waiter);
        for party in parties {
            let cause = EndCause::SessionRestarted;
            lease.ended.remember_of(party.lease, party.holder.clone(), cause);
        }
        lease
    }

    /// Those who have a lease: the holder of the one in force, then the one that stands aside.
    pub fn parties(&self) -> impl Iterator<Item = (LeaseId, Epoch, &Caller)> {
        let aside = self.suspended.as_ref().map(|suspended| &suspended.holding);
        let all = self.held().into_iter().chain(aside);
        all.map(|Holding { id, epoch, holder, .. }| (*id, *epoch, holder))
    }

    /// Its bounds.
    pub fn limits(&self) -> &LeaseLimits {
        &self.limits
    }
}
