//! People at the keyboard: they come first, and the lease they find stands aside until they are done.
//!
//! A person's grant is a holding like any other, so that there is
//! one rule for who may write; what is special is how it begins and how it ends.

use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{LeaseId, PrincipalId, Watermark};
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::holding::{AfterPerson, Holding, LeaseDue, Suspended};
use crate::core::lease::limits::{LeasePurpose, Terms};
use crate::core::lease::request::{Grant, OnDisconnect};
use crate::core::lease::view::LeaseChange;
use crate::core::lease::write_right::WriteRight;
use crate::core::lease::{LeaseManager, LeaseState};
use crate::core::moment::Moment;

impl LeaseManager {
    pub(crate) fn has_keyboard(&self, caller: &Caller) -> bool {
        self.persons().is_some_and(|held| held.holder.principal == caller.principal)
    }

    pub(crate) fn is_persons(&self) -> bool {
        self.persons().is_some()
    }

    /// Finds out whether a person may type: always, unless another one took the keyboard over.
    pub(crate) fn check_typing(&self, now: Moment, caller: &Caller) -> Result<(), LeaseError> {
        match self.persons() {
            Some(held) if held.span == LeasePurpose::TakenOver && !self.has_keyboard(caller) => {
                Err(self.held_by(held, now))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Gives the keyboard to a person who types, or lets it go on typing.
    pub(crate) fn type_in(&mut self, now: Moment, caller: &Caller, fresh: LeaseId) -> Grant {
        if !self.has_keyboard(caller) {
            self.begin_persons(now, caller, fresh);
        }
        let held = self.in_force();
        held.renew(now);
        held.grant(now, false)
    }

    pub(crate) fn take_over(&mut self, now: Moment, caller: &Caller, fresh: LeaseId) -> Grant {
        if !self.has_keyboard(caller) {
            self.begin_persons(now, caller, fresh);
        }
        let ttl = self.limits.ttl_max;
        let held = self.in_force();
        (held.span, held.ttl) = (LeasePurpose::TakenOver, ttl);
        held.renew(now);
        held.grant(now, false)
    }

    /// Ends a person's grant; says whether it had one.
    pub(crate) fn hand_back(&mut self, now: Moment, caller: &Caller) -> bool {
        let had = self.has_keyboard(caller);
        if had {
            self.end(now, now, EndCause::Released);
        }
        had
    }

    pub(crate) fn on_person_left(&mut self, now: Moment, person: PrincipalId) {
        if self.persons().is_some_and(|held| held.holder.principal == person) {
            self.end(now, now, EndCause::Disconnected);
        }
    }

    /// Notes the watermark of the first frame that shows the lease as it was resumed: only who has
    /// seen that frame has seen what the person left behind.
    pub(crate) fn mark_resumed(&mut self, watermark: Watermark) {
        match &mut self.state {
            LeaseState::Held(known) | LeaseState::Lapsed(known)
                if known.resumed == Some(AfterPerson::Unseen) =>
            {
                known.resumed = Some(AfterPerson::ShownAt(watermark));
            }
            LeaseState::Held(_) | LeaseState::Lapsed(_) | LeaseState::Free => {}
        }
    }

    /// Finds out whether whoever writes by this right has seen what a person left behind; if not,
    /// tells the watermark to read from, where a frame shows it already.
    pub(crate) fn check_seen(
        &self,
        right: &WriteRight,
        expected: Option<Watermark>,
    ) -> Result<(), Option<Watermark>> {
        if !right.keeps_lease() {
            return Ok(());
        }
        let known = match &self.state {
            LeaseState::Held(known) | LeaseState::Lapsed(known) => known.resumed,
            LeaseState::Free => None,
        };
        match known {
            None => Ok(()),
            Some(AfterPerson::Unseen) => Err(None),
            Some(AfterPerson::ShownAt(shown)) if expected >= Some(shown) => Ok(()),
            Some(AfterPerson::ShownAt(shown)) => Err(Some(shown)),
        }
    }

    pub(crate) fn on_seen(&mut self) {
        self.in_force().resumed = None;
    }

    /// Ends a suspended lease that was taken for one call, once no call is in flight any more.
    pub(crate) fn drop_spent(&mut self) {
        let spent = |it: &Suspended| {
            it.holding.span == LeasePurpose::OneCall && it.holding.calls_in_flight == 0
        };
        if self.suspended.as_ref().is_some_and(spent) {
            self.finish_suspended(EndCause::Released);
        }
    }

    /// What becomes of a suspended lease next, and when: only its holder's leaving counts.
    pub(super) fn suspended_due(&self) -> Option<(Moment, LeaseDue)> {
        let leaves_at = self.suspended.as_ref()?.holding.leaves_at();
        leaves_at.map(|at| (at, LeaseDue::SuspendedLeaves))
    }

    pub(super) fn finish_suspended(&mut self, cause: EndCause) {
        if let Some(Suspended { holding, .. }) = self.suspended.take() {
            self.events.push(holding.event(LeaseChange::Ended(cause.clone())));
            self.ended.remember(holding, cause);
        }
    }

    /// Puts the suspended lease in force again, from `at`; says whether there was one.
    pub(super) fn resume(&mut self, at: Moment) -> bool {
        let Some(Suspended { mut holding, since, remaining }) = self.suspended.take() else {
            return false;
        };
        self.epoch = self.epoch.next();
        holding.epoch = self.epoch;
        holding.expires_at = at + remaining;
        holding.granted_at = holding.granted_at + since.until(at);
        holding.resumed = Some(AfterPerson::Unseen);
        self.events.push(holding.event(LeaseChange::Resumed));
        let grant = holding.grant(at, false);
        self.grant_to_twins(&mut holding, &grant);
        self.state = LeaseState::Held(holding);
        true
    }

    /// Lets the holder of a suspended lease that asks for it again keep it, though the connections it
    /// hung on are gone.
    pub(super) fn return_to_suspended(&mut self, caller: &Caller) {
        let grace = self.limits.grace_default;
        let Some(Suspended { holding, .. }) = &mut self.suspended else { return };
        if holding.is_of(caller) && !holding.is_former() {
            holding.follow(caller);
        } else {
            holding.pass_to(caller, grace);
        }
    }

    /// Tells the holder of a suspended lease whom it waits for.
    pub(super) fn suspended_by(&self, suspended: &Suspended, now: Moment) -> LeaseError {
        let person = self.held().expect("a lease is suspended only while a person holds");
        LeaseError::Suspended {
            by: person.holder.name(),
            kind: person.holder.kind,
            resumes_in: person.remaining(now),
            remaining: suspended.remaining,
        }
    }

    fn begin_persons(&mut self, now: Moment, caller: &Caller, fresh: LeaseId) {
        if self.is_persons() {
            self.finish(EndCause::Replaced { by: caller.name() });
        } else {
            self.suspend(now, caller.name());
        }
        let terms = Terms {
            fresh,
            ttl: self.limits.person_idle,
            on_disconnect: OnDisconnect::Release,
            reason: None,
            span: LeasePurpose::Typing,
        };
        self.start(now, caller.clone(), terms, None);
    }

    fn suspend(&mut self, now: Moment, by: PrincipalName) {
        let Some(mut holding) = self.take_held() else { return };
        holding.take_back(now);
        self.events.push(holding.event(LeaseChange::Suspended { by }));
        // A holder that comes back to it has its whole time, as if nobody had typed.
        let remaining = if holding.is_former() { holding.ttl } else { holding.remaining(now) };
        self.suspended = Some(Suspended { holding, since: now, remaining });
    }

    fn persons(&self) -> Option<&Holding> {
        self.held().filter(|held| held.span.is_persons())
    }
}
