//! How a lease changes hands: the steps from which every grant and every end is made.
//!
//! They ask nobody's permission; that was decided before. Each step leaves its events behind.

use std::collections::BTreeSet;

use crate::core::caller::Caller;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::event::LeaseChange;
use crate::core::lease::holding::{Due, Holding, Offer, Presence};
use crate::core::lease::request::{Grant, HandOver, Released, WaiterId};
use crate::core::lease::right::{How, Right};
use crate::core::lease::terms::Terms;
use crate::core::lease::waiters::Waiter;
use crate::core::lease::{LeaseManager, State};
use crate::core::moment::Moment;

impl LeaseManager {
    /// Uses a right that was just found: the lease is taken, revived, moved or renewed.
    pub(crate) fn exercise(&mut self, now: Moment, caller: &Caller, right: Right) -> Grant {
        match right.0 {
            How::Use => self.use_held(now, caller),
            How::Revive => self.revive(now, caller),
            How::Move => self.move_to(now, caller),
            How::Take(terms) => self.start(now, caller.clone(), terms, None),
            How::TakeUp(terms) => {
                self.finish(EndCause::HandedOver { to: caller.name() });
                self.start(now, caller.clone(), terms, None)
            }
        }
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
            State::Held(holding) | State::Lapsed(holding) => Some(holding),
            State::Free => None,
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
            presence: Presence::Here,
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
        self.state = State::Held(holding);
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

    fn grant_to(&mut self, now: Moment, waiter: Waiter) {
        let grant = self.start(now, waiter.caller, waiter.terms, Some(waiter.id));
        self.grants.push((waiter.id, grant));
    }

    /// Ends the lease in force, with nobody next.
    pub(super) fn finish(&mut self, cause: EndCause) {
        let Some(holding) = self.take_held() else { return };
        self.events.push(holding.event(LeaseChange::Ended(cause.clone())));
        // A person who comes back types; there is nothing it could show or revive.
        if holding.span.is_persons() {
            return;
        }
        if cause == EndCause::Expired {
            self.state = State::Lapsed(holding);
        } else {
            self.ended.remember(holding, cause);
        }
    }

    pub(super) fn take_held(&mut self) -> Option<Holding> {
        match std::mem::take(&mut self.state) {
            State::Held(held) => Some(held),
            other @ (State::Free | State::Lapsed(_)) => {
                self.state = other;
                None
            }
        }
    }

    /// Makes sure that an expired lease does not come back; says whether there was one.
    pub(super) fn forget_lapsed(&mut self, cause: EndCause) -> bool {
        match std::mem::take(&mut self.state) {
            State::Lapsed(lapsed) => {
                self.ended.remember(lapsed, cause);
                true
            }
            other @ (State::Free | State::Held(_)) => {
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
    pub(super) fn settle(&mut self, now: Moment) {
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

    fn on_due(&mut self, now: Moment, at: Moment, due: Due) {
        match (due, &mut self.state) {
            (Due::OfferReturns, State::Held(held)) => held.take_back(at),
            (Due::OfferReturns, State::Free | State::Lapsed(_)) => {}
            (Due::Ends(cause), _) => self.end(now, at, cause),
            (Due::SuspendedLeaves, _) => self.finish_suspended(EndCause::Disconnected),
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
    pub(super) fn due(&self) -> Option<(Moment, Due)> {
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
