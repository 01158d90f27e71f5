//! How a lease changes hands: the steps from which every grant and every end is made.
//!
//! Whether it may was decided before. Each step leaves its events behind.

use std::collections::BTreeSet;

use crate::core::caller::Caller;
use crate::core::ids::{ConnectionId, LeaseId, PrincipalId, TenantId};
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::holding::{HolderPresence, Holding, LeaseDue, Offer};
use crate::core::lease::limits::Terms;
use crate::core::lease::request::{Grant, HandOver, Released, WaiterId};
use crate::core::lease::view::LeaseChange;
use crate::core::lease::waiters::LeaseWaiter;
use crate::core::lease::write_right::WriteRight;
use crate::core::lease::{LeaseManager, LeaseState};
use crate::core::moment::Moment;

impl LeaseManager {
    /// Uses a right that was just found: the lease is taken, revived, moved or renewed.
    pub(crate) fn exercise(&mut self, now: Moment, caller: &Caller, right: WriteRight) -> Grant {
        match right {
            WriteRight::Use => self.use_held(now, caller),
            WriteRight::Revive => self.revive(now, caller),
            WriteRight::Move => self.move_to(now, caller),
            WriteRight::Take(terms) => self.start(now, caller.clone(), terms, None),
            WriteRight::TakeUp(terms) => {
                self.finish(EndCause::HandedOver { to: caller.name() });
                self.start(now, caller.clone(), terms, None)
            }
        }
    }

    /// Begins to use the lease in force to which a right was just found, without renewing it.
    pub(crate) fn begin_use(&mut self, now: Moment, caller: &Caller) -> Grant {
        let held = self.in_force();
        held.follow(caller);
        held.grant(now, false)
    }

    /// Leaves the lease in force no time beyond the calls that keep it alive.
    pub(crate) fn spend(&mut self, now: Moment) {
        self.in_force().expires_at = now;
    }

    fn use_held(&mut self, now: Moment, caller: &Caller) -> Grant {
        let held = self.in_force();
        held.renew(now);
        held.follow(caller);
        held.grant(now, false)
    }

    fn revive(&mut self, now: Moment, caller: &Caller) -> Grant {
        let mut holding = self.take_known();
        holding.follow(caller);
        holding.renew(now);
        holding.granted_at = now;
        self.put_in_force(now, holding, LeaseChange::Revived)
    }

    fn move_to(&mut self, now: Moment, caller: &Caller) -> Grant {
        let cause = EndCause::HandedOver { to: caller.name() };
        let was_held = self.held().map(|held| held.event(LeaseChange::Ended(cause)));
        self.events.extend(was_held.clone());
        let mut holding = self.take_known();
        self.epoch = self.epoch.next();
        holding.epoch = self.epoch;
        holding.pass_to(caller, self.limits.grace_default);
        holding.waited_as = None;
        holding.renew(now);
        if was_held.is_none() {
            holding.granted_at = now;
        }
        self.put_in_force(now, holding, LeaseChange::Granted)
    }

    /// Takes out the lease to which a right was just found, in force or expired.
    fn take_known(&mut self) -> Holding {
        match std::mem::take(&mut self.state) {
            LeaseState::Held(holding) | LeaseState::Lapsed(holding) => Some(holding),
            LeaseState::Free => None,
        }
        .expect("a right is used at the moment it was found")
    }

    /// Grants the lease of a session that nobody holds.
    pub(super) fn start(
        &mut self,
        now: Moment,
        holder: Caller,
        terms: Terms,
        waited_as: Option<WaiterId>,
    ) -> Grant {
        self.forget_lapsed(EndCause::Expired);
        self.epoch = self.epoch.next();
        let Terms { fresh, ttl, on_disconnect, reason, span } = terms;
        let holding = Holding {
            id: fresh,
            holder,
            others: BTreeSet::new(),
            epoch: self.epoch,
            ttl,
            granted_at: now,
            renewed_at: now,
            expires_at: now + ttl,
            on_disconnect,
            presence: HolderPresence::Here,
            span,
            reason,
            offer: None,
            waited_as,
            stint: 0,
            calls_in_flight: 0,
            resumed: None,
        };
        self.put_in_force(now, holding, LeaseChange::Granted)
    }

    fn put_in_force(&mut self, now: Moment, mut holding: Holding, change: LeaseChange) -> Grant {
        self.stints += 1;
        holding.stint = self.stints;
        holding.calls_in_flight = 0;
        let revived = change == LeaseChange::Revived;
        let grant = holding.grant(now, revived);
        self.events.push(holding.event(change));
        self.grant_to_twins(&mut holding, &grant);
        self.state = LeaseState::Held(holding);
        grant
    }

    /// A principal that waited more than once has what it waited for each time, also on another
    /// connection.
    pub(super) fn grant_to_twins(&mut self, holding: &mut Holding, grant: &Grant) {
        for waiter in self.waiters.take_of_principal(holding.holder.principal) {
            holding.follow(&waiter.caller);
            self.grants.push((waiter.id, grant.clone()));
        }
    }

    /// Ends the lease in force, since `at`, and lets the next caller have it: first whoever was
    /// suspended, then whoever waits.
    pub(super) fn end(&mut self, now: Moment, at: Moment, cause: EndCause) {
        self.finish(cause);
        if self.resume(at) {
            return;
        }
        if let Some(waiter) = self.waiters.take_next() {
            self.grant_to(now, waiter);
        }
    }

    fn grant_to(&mut self, now: Moment, waiter: LeaseWaiter) {
        let grant = self.start(now, waiter.caller, waiter.terms, Some(waiter.id));
        self.grants.push((waiter.id, grant));
    }

    pub(super) fn finish(&mut self, cause: EndCause) {
        let Some(holding) = self.take_held() else { return };
        self.events.push(holding.event(LeaseChange::Ended(cause.clone())));
        // A person who comes back types; there is nothing it could show or revive.
        if holding.span.is_persons() {
            return;
        }
        if cause == EndCause::Expired {
            self.state = LeaseState::Lapsed(holding);
        } else {
            self.ended.remember(holding, cause);
        }
    }

    pub(super) fn take_held(&mut self) -> Option<Holding> {
        match std::mem::take(&mut self.state) {
            LeaseState::Held(held) => Some(held),
            other @ (LeaseState::Free | LeaseState::Lapsed(_)) => {
                self.state = other;
                None
            }
        }
    }

    /// Makes sure that an expired lease does not come back; says whether there was one.
    pub(super) fn forget_lapsed(&mut self, cause: EndCause) -> bool {
        match std::mem::take(&mut self.state) {
            LeaseState::Lapsed(lapsed) => {
                self.ended.remember(lapsed, cause);
                true
            }
            other @ (LeaseState::Free | LeaseState::Held(_)) => {
                self.state = other;
                false
            }
        }
    }

    /// Hands the lease in force to somebody: at once if it waits, else as an offer.
    pub(super) fn hand_over(&mut self, now: Moment, target: HandOver) -> Released {
        let offer_for = self.limits.offer;
        let held = self.in_force();
        let tenant = held.holder.tenant.clone();
        let (until, remaining) = (now + offer_for, held.remaining(now));
        match self.waiters.take_first_of(target.to.principal, &tenant) {
            Some(waiter) => {
                self.finish(EndCause::HandedOver { to: target.to });
                self.grant_to(now, waiter);
                Released::HandedOver
            }
            None => {
                let HandOver { to, fresh } = target;
                self.in_force().offer = Some(Offer { to, fresh, until, remaining });
                Released::Offered { until }
            }
        }
    }

    /// Does what time has done by now, in the order in which it came due.
    pub fn on_time(&mut self, now: Moment) {
        loop {
            let wait = self.waiters.deadline().filter(|at| *at <= now);
            let due = self.due().filter(|(at, _)| *at <= now);
            match (due, wait) {
                (Some((at, due)), wait) if wait.is_none_or(|wait| at <= wait) => {
                    self.on_due(now, at, due);
                }
                (_, Some(wait)) => self.refuse_waits_over(now, wait),
                (_, None) => return,
            }
        }
    }

    fn on_due(&mut self, now: Moment, at: Moment, due: LeaseDue) {
        match (due, &mut self.state) {
            (LeaseDue::OfferReturns, LeaseState::Held(held)) => held.take_back(at),
            (LeaseDue::OfferReturns, LeaseState::Free | LeaseState::Lapsed(_)) => {}
            (LeaseDue::Ends(cause), _) => self.end(now, at, cause),
            (LeaseDue::SuspendedLeaves, _) => self.finish_suspended(EndCause::Disconnected),
        }
    }

    fn refuse_waits_over(&mut self, now: Moment, wait: Moment) {
        for waiter in self.waiters.take_over_by(wait) {
            let right = self.right(now, &waiter.caller, None, Some(waiter.terms));
            let error = right.err().unwrap_or(LeaseError::WaitGivenUp);
            self.refusals.push((waiter.id, error));
        }
    }

    /// What time does to the lease in force, or to the suspended one, next and when.
    pub(super) fn due(&self) -> Option<(Moment, LeaseDue)> {
        let held = self.held().and_then(|held| {
            let contested = !self.waiters.is_empty() || held.span.is_persons();
            held.due(contested.then(|| self.latest_end(held)))
        });
        [self.suspended_due(), held].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// When a holding ends even if it is used, once somebody waits for it; a person's, when that
    /// person has pressed no key for so long that stuck bytes do not count any more.
    pub(super) fn latest_end(&self, held: &Holding) -> Moment {
        match held.span.is_persons() {
            true => held.renewed_at + self.limits.ttl_max,
            false => held.granted_at + self.limits.max_hold,
        }
    }
}

impl LeaseManager {
    /// Notes that a connection closed: its waits are over, and with the last one of its holder that
    /// used it a lease goes the way it was acquired with.
    pub fn on_connection_closed(&mut self, now: Moment, connection: ConnectionId) {
        self.on_time(now);
        for waiter in self.waiters.take_of_connection(connection) {
            self.refusals.push((waiter.id, LeaseError::WaitGivenUp));
        }
        let known = match &mut self.state {
            LeaseState::Held(holding) | LeaseState::Lapsed(holding) => Some(holding),
            LeaseState::Free => None,
        };
        let suspended = self.suspended.as_mut().map(|suspended| &mut suspended.holding);
        for holding in [known, suspended].into_iter().flatten() {
            holding.on_connection_closed(now, connection);
        }
        self.on_time(now);
    }

    /// Notes that a caller asked again for the lease it was granted before; where it still has it, it
    /// has it on this connection too.
    pub(crate) fn on_asked_again(&mut self, caller: &Caller, lease: LeaseId) {
        if let LeaseState::Held(held) = &mut self.state
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

impl LeaseManager {
    /// Ends all that a principal has here, since it may not write any more.
    pub(crate) fn end_right_of(&mut self, now: Moment, principal: PrincipalId) {
        self.end_rights(now, |of, _| of == principal, &EndCause::RightEnded);
    }

    /// Ends all that those have here who may not write any more: their lease, in force, expired, suspended, kept after
    /// its connection closed or left by a daemon before, what they are offered, and their waits.
    pub(crate) fn end_rights(
        &mut self,
        now: Moment,
        ends: impl Fn(PrincipalId, &TenantId) -> bool,
        cause: &EndCause,
    ) {
        self.on_time(now);
        for waiter in self.waiters.take_where(|it| ends(it.caller.principal, &it.caller.tenant)) {
            self.refusals.push((waiter.id, LeaseError::Lost { cause: cause.clone() }));
        }
        let has = |holding: &Holding| ends(holding.holder.principal, &holding.holder.tenant);
        if self.suspended.as_ref().is_some_and(|suspended| has(&suspended.holding)) {
            self.finish_suspended(cause.clone());
        }
        match &mut self.state {
            LeaseState::Held(held) if has(held) => self.end(now, now, cause.clone()),
            LeaseState::Held(held) => {
                // Leases are handed over within a tenant.
                let tenant = &held.holder.tenant;
                if held.offer.as_ref().is_some_and(|offer| ends(offer.to.principal, tenant)) {
                    held.take_back(now);
                }
            }
            LeaseState::Lapsed(lapsed) if has(lapsed) => {
                self.forget_lapsed(cause.clone());
            }
            LeaseState::Lapsed(_) | LeaseState::Free => {}
        }
    }
}
