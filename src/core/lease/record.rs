//! What of a lease outlives its daemon or its task, and the lease that is made of it.
//!
//! A record holds what the next daemon must know and no more: a use of the lease does not change it, and ids
//! that it does not name are answered as those of leases that were, whether they ever were or not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId, TenantId};
use crate::core::lease::error::EndCause;
use crate::core::lease::holding::{AfterPerson, HolderPresence, Holding};
use crate::core::lease::limits::{LeaseLimits, LeasePurpose};
use crate::core::lease::request::{OnDisconnect, WaiterId};
use crate::core::lease::view::{LeaseChange, LeaseEvent};
use crate::core::lease::waiters::Waiters;
use crate::core::lease::{LeaseManager, LeaseState};
use crate::core::moment::Moment;

/// What the next daemon must know of the lease of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The epoch of the newest holding.
    pub epoch: Epoch,
    /// The holding that its holder may take back: the one in force, or the one that stands aside
    /// for a person. None for a person's, for one that was taken for one call, and for one that
    /// was to end with its holder's connection.
    pub holding: Option<HoldingRecord>,
}

/// What the next daemon must know of one holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingRecord {
    pub lease: LeaseId,
    pub tenant: TenantId,
    pub kind: Kind,
    /// What the holder called itself.
    pub label: Arc<str>,
    /// The number of the token that the holder showed, which stays the same. That of a connection is
    /// not kept, since the next daemon counts anew.
    pub token: Option<u64>,
    /// How long it lasts without use.
    pub ttl: Duration,
    pub on_disconnect: OnDisconnect,
    /// What the holder said it is doing.
    pub reason: Option<Box<str>>,
    /// A person typed, and the holder has not said since that it saw the screen.
    pub must_look: bool,
}

impl LeaseManager {
    /// How long whoever held the lease when a daemon ended may take it back from the next one.
    pub const RECLAIM_FOR: Duration = Duration::from_secs(10);

    pub fn record(&self) -> LeaseRecord {
        let aside = self.suspended.as_ref().map(|suspended| &suspended.holding);
        let kept = aside.or(self.held()).filter(|holding| outlives_a_daemon(holding));
        // Whoever stands aside cannot have seen what the person does meanwhile.
        let must_look = |holding: &Holding| aside.is_some() || holding.resumed.is_some();
        let holding = kept.map(|kept| HoldingRecord::of(kept, must_look(kept)));
        LeaseRecord { epoch: self.epoch, holding }
    }

    /// The lease of a session whose daemon ended.
    ///
    /// Every epoch it gives is above those of `record` and above `newest`, the highest epoch under
    /// which bytes are known to have gone out; and above the number of microseconds since boot, so
    /// that it is higher than any of a daemon before also where the record was lost, or where that
    /// daemon was only stopped and still gives some. The recorded holding is nobody's until a
    /// caller of its tenant shows its id, in whatever call, which makes that caller its holder as
    /// after any lost connection: same id, next epoch, whole time; the owner of the token it was held
    /// with need not show the id. Nobody else is granted the lease
    /// before [`LeaseManager::RECLAIM_FOR`] is over; then it is free, or goes to the first in line.
    pub fn recovered(record: LeaseRecord, newest: Epoch, limits: LeaseLimits, now: Moment) -> Self {
        let micros = u64::try_from(now.since_boot().as_micros()).unwrap_or(Epoch::MAX.0);
        let floor = record.epoch.max(newest).max(Epoch(micros));
        let mut lease = Self::new(floor.min(Epoch::MAX), limits);
        if let Some(holding) = record.holding {
            lease.epoch = lease.epoch.next();
            let holding = lease.reclaimable(holding, now);
            lease.state = LeaseState::Held(holding);
        }
        lease
    }

    /// Counts the time in which a lease of before can be taken back from this moment on, unless it is over:
    /// only now can its holder come.
    pub fn begin_reclaim(&mut self, now: Moment) {
        if let LeaseState::Held(holding) = &mut self.state
            && let HolderPresence::Former { until } = &mut holding.presence
        {
            *until = (*until).max(now + Self::RECLAIM_FOR);
        }
    }

    fn reclaimable(&self, record: HoldingRecord, now: Moment) -> Holding {
        let ttl = record.ttl.min(self.limits.ttl_max).max(self.limits.ttl_min);
        Holding {
            id: record.lease,
            holder: Caller {
                principal: record.token.map_or(PrincipalId::FORMER, PrincipalId::Token),
                connection: ConnectionId::FORMER,
                tenant: record.tenant,
                kind: record.kind,
                label: record.label,
            },
            others: BTreeSet::new(),
            epoch: self.epoch,
            ttl,
            granted_at: now,
            renewed_at: now,
            expires_at: now + ttl,
            on_disconnect: record.on_disconnect,
            presence: HolderPresence::Former { until: now + Self::RECLAIM_FOR },
            span: LeasePurpose::Kept,
            reason: record.reason,
            offer: None,
            waited_as: None,
            stint: 0,
            calls_in_flight: 0,
            resumed: record.must_look.then_some(AfterPerson::Unseen),
        }
    }
}

impl HoldingRecord {
    fn of(holding: &Holding, must_look: bool) -> Self {
        let Caller { principal, tenant, kind, label, .. } = &holding.holder;
        Self {
            lease: holding.id,
            tenant: tenant.clone(),
            kind: *kind,
            label: Arc::clone(label),
            token: match *principal {
                PrincipalId::Token(number) => Some(number),
                PrincipalId::Connection(_) => None,
            },
            ttl: holding.ttl,
            on_disconnect: holding.on_disconnect,
            reason: holding.reason.clone(),
            must_look,
        }
    }
}

fn outlives_a_daemon(holding: &Holding) -> bool {
    holding.span == LeasePurpose::Kept && holding.on_disconnect != OnDisconnect::Release
}

/// Somebody who has a lease, in force or suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseParty {
    pub lease: LeaseId,
    pub epoch: Epoch,
    pub holder: Caller,
}

impl LeaseParty {
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

impl LeaseManager {
    /// A free lease in place of one that failed. Every epoch and every name that it gives is above those
    /// from before; whoever had the lease is told that it ended.
    /// `epoch` and `waiter` are the highest that anybody was told of.
    pub fn after_failure(
        parties: &[LeaseParty],
        epoch: Epoch,
        waiter: WaiterId,
        limits: LeaseLimits,
    ) -> Self {
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

    pub fn limits(&self) -> &LeaseLimits {
        &self.limits
    }
}
