//! One holding of a lease: who has it, until when, and what would end it; and the last few that ended.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::core::caller::{Caller, Kind, PrincipalName};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId, TenantId, Watermark};
use crate::core::lease::error::EndCause;
use crate::core::lease::limits::LeasePurpose;
use crate::core::lease::request::{Grant, OnDisconnect, WaiterId};
use crate::core::lease::view::{HoldingView, LeaseChange, LeaseEvent};
use crate::core::moment::Moment;

/// How many connections of its holder a lease hangs on; the one that used it last is always among
/// them.
const CONNECTIONS_MAX: usize = 16;

/// A lease that stands aside for people, its time standing still.
#[derive(Clone, Debug)]
pub(super) struct Suspended {
    pub holding: Holding,
    pub since: Moment,
    /// What was left of its time.
    pub remaining: Duration,
}

/// Whether a connection that a lease hangs on lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HolderPresence {
    Here,
    /// The last one closed, and the lease ends at `until` if it is to end at all.
    Gone {
        until: Option<Moment>,
    },
    /// It ended with its daemon, and the lease ends at `until` unless its id is shown by then.
    Former {
        until: Moment,
    },
}

/// A lease on its way to somebody.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub to: PrincipalName,
    pub fresh: LeaseId,
    pub until: Moment,
    /// What was left of the holder's time, which stands still meanwhile.
    pub remaining: Duration,
}

/// What time does to a holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseDue {
    Ends(EndCause),
    /// Nobody took the offer up, and the lease returns to its holder.
    OfferReturns,
    /// The holder of the suspended lease did not come back in time.
    SuspendedLeaves,
}

/// How far a holder can have seen what a person left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterPerson {
    /// No frame shows yet that the lease is back.
    Unseen,
    /// The first frame that shows it has this watermark.
    ShownAt(Watermark),
}

/// One holding.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub id: LeaseId,
    /// Who has it, on the connection that used it last.
    pub holder: Caller,
    /// Other connections of the holder that used it and live.
    pub others: BTreeSet<ConnectionId>,
    pub epoch: Epoch,
    pub ttl: Duration,
    pub granted_at: Moment,
    /// When it was last used.
    pub renewed_at: Moment,
    pub expires_at: Moment,
    pub on_disconnect: OnDisconnect,
    pub presence: HolderPresence,
    pub span: LeasePurpose,
    pub reason: Option<Box<str>>,
    pub offer: Option<Offer>,
    /// The waiter this was granted to, if its holder had to wait.
    pub waited_as: Option<WaiterId>,
    /// Tells this stretch of holding from an earlier one of the same epoch.
    pub stint: u64,
    /// How many calls in flight keep it from expiring.
    pub calls_in_flight: usize,
    /// It came back after a person had the keyboard, and its holder is to look before it writes.
    pub resumed: Option<AfterPerson>,
}

impl Holding {
    pub(super) fn renew(&mut self, now: Moment) {
        self.renewed_at = now;
        self.expires_at = now + self.ttl;
    }

    /// Follows the holder to the connection it is on now, and hangs on the others as before.
    pub(super) fn follow(&mut self, caller: &Caller) {
        let is_here = self.presence == HolderPresence::Here;
        let moves = self.holder.connection != caller.connection || !is_here;
        if !self.is_of(caller) || !moves {
            return;
        }
        if is_here {
            self.others.insert(self.holder.connection);
        }
        self.others.remove(&caller.connection);
        if self.others.len() == CONNECTIONS_MAX {
            self.others.pop_first();
        }
        self.holder.connection = caller.connection;
        self.presence = HolderPresence::Here;
    }

    /// Passes to another holder, who is the only one from now on.
    pub(super) fn pass_to(&mut self, caller: &Caller, grace: Duration) {
        self.holder = caller.clone();
        self.others.clear();
        self.presence = HolderPresence::Here;
        self.on_disconnect = match (caller.kind, self.on_disconnect) {
            (Kind::Operator, _) => OnDisconnect::Keep,
            (Kind::Agent | Kind::Human, OnDisconnect::Keep) => OnDisconnect::Grace(grace),
            (Kind::Agent | Kind::Human, as_before) => as_before,
        };
    }

    /// Whether this caller has it without showing its id.
    pub(super) fn is_named(&self, caller: &Caller) -> bool {
        self.holder.principal == caller.principal
    }

    /// Whether this caller has it once it shows its id: all connections of one user's command line are
    /// the same holder. Of the same tenant, it is to be asked of nobody else.
    pub(super) fn is_of(&self, caller: &Caller) -> bool {
        self.is_named(caller) || (self.is_command_lines() && caller.kind == Kind::Operator)
    }

    /// Whether the command line has it, and keeps it from one of its connections to the next.
    pub(super) fn is_command_lines(&self) -> bool {
        self.on_disconnect == OnDisconnect::Keep && self.holder.kind == Kind::Operator
    }

    /// Notes that a connection closed; with the last one that used it, its holder is gone.
    pub(super) fn on_connection_closed(&mut self, now: Moment, connection: ConnectionId) {
        if self.others.remove(&connection) || self.holder.connection != connection {
            return;
        }
        match self.others.pop_last() {
            Some(other) => self.holder.connection = other,
            None => self.on_disconnect(now),
        }
    }

    fn on_disconnect(&mut self, now: Moment) {
        let until = match self.on_disconnect {
            OnDisconnect::Release => Some(now),
            OnDisconnect::Grace(grace) => Some(now + grace),
            OnDisconnect::Keep => None,
        };
        self.presence = HolderPresence::Gone { until };
    }

    pub(super) fn leaves_at(&self) -> Option<Moment> {
        match self.presence {
            HolderPresence::Here => None,
            HolderPresence::Gone { until } => until,
            HolderPresence::Former { until } => Some(until),
        }
    }

    pub(super) fn is_offered_to(&self, caller: &Caller) -> bool {
        let offered =
            self.offer.as_ref().is_some_and(|offer| offer.to.principal == caller.principal);
        offered && self.holder.tenant == caller.tenant
    }

    /// Ends an offer that nobody took up.
    pub(super) fn take_back(&mut self, at: Moment) {
        if let Some(offer) = self.offer.take() {
            self.expires_at = at + offer.remaining;
        }
    }

    /// Whether it is of a daemon before, and nobody has shown its id since.
    pub(super) fn is_former(&self) -> bool {
        matches!(self.presence, HolderPresence::Former { .. })
    }

    /// How much time is left unless it is renewed.
    pub(super) fn remaining(&self, now: Moment) -> Duration {
        match (&self.offer, self.presence) {
            (Some(offer), _) => offer.remaining,
            (None, HolderPresence::Former { until }) => now.until(until),
            (None, _) if self.calls_in_flight > 0 => self.ttl,
            (None, _) => now.until(self.expires_at),
        }
    }

    /// What time does to it next, and when. `most` is when it must end even if it is used.
    pub(super) fn due(&self, most: Option<Moment>) -> Option<(Moment, LeaseDue)> {
        let too_long = most.map(|at| (at, LeaseDue::Ends(EndCause::HeldTooLong)));
        if let Some(offer) = &self.offer {
            let returns = Some((offer.until, LeaseDue::OfferReturns));
            return [too_long, returns].into_iter().flatten().min_by_key(|(at, _)| *at);
        }
        let idle = self.calls_in_flight == 0 && !self.is_former();
        let expires = idle.then_some((self.expires_at, LeaseDue::Ends(EndCause::Expired)));
        let left = self.leaves_at().map(|at| (at, LeaseDue::Ends(EndCause::Disconnected)));
        [expires, left, too_long].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(super) fn grant(&self, now: Moment, revived: bool) -> Grant {
        let expires_at = now + self.remaining(now);
        Grant { lease: self.id, epoch: self.epoch, ttl: self.ttl, expires_at, revived }
    }

    pub(super) fn view(&self) -> HoldingView {
        HoldingView {
            tenant: self.holder.tenant.clone(),
            by: self.holder.name(),
            kind: self.holder.kind,
            epoch: self.epoch,
            reason: self.reason.clone(),
            offered_to: self.offer.as_ref().map(|offer| offer.to.clone()),
            reclaimable: self.is_former(),
        }
    }

    pub(super) fn event(&self, change: LeaseChange) -> LeaseEvent {
        LeaseEvent { holder: self.holder.clone(), epoch: self.epoch, change }
    }
}

/// A lease that ended.
#[derive(Clone, Debug)]
pub(super) struct EndedLease {
    pub id: LeaseId,
    pub principal: PrincipalId,
    pub tenant: TenantId,
    pub cause: EndCause,
}

/// The last few leases that ended, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedLeases {
    recent: VecDeque<EndedLease>,
}

impl EndedLeases {
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

    pub(super) fn remember_of(&mut self, id: LeaseId, holder: Caller, cause: EndCause) {
        if self.recent.len() == Self::KEPT_MAX {
            self.recent.pop_front();
        }
        let Caller { principal, tenant, .. } = holder;
        self.recent.push_back(EndedLease { id, principal, tenant, cause });
    }

    pub(super) fn find(&self, id: LeaseId) -> Option<&EndedLease> {
        self.recent.iter().rev().find(|ended| ended.id == id)
    }

    /// The newest lease that a principal had and lost or gave up.
    pub(super) fn last_of(&self, principal: PrincipalId) -> Option<&EndedLease> {
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
