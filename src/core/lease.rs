//! The lease of one session: the exclusive right to write to it, and the queue for that right.
//!
//! `now` comes with every call, and expiry is judged
//! at that moment, so that a late timer can neither lengthen a lease nor let two callers have it.

pub mod error;
pub mod limits;
pub mod record;
pub mod request;
pub mod view;

mod holding;
mod people;
mod transitions;
mod waiters;
pub(crate) mod write_right;

#[cfg(test)]
mod tests;

use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{Epoch, LeaseId};
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::holding::{EndedLeases, Holding, Suspended};
use crate::core::lease::limits::{LeaseLimits, LeasePurpose, Terms};
use crate::core::lease::request::{
    AcquireRequest, Acquired, Grant, HandOver, HoldToken, ReleaseRequest, Released, RenewRequest,
    TakeRule, WaiterId,
};
use crate::core::lease::view::{LeaseChange, LeaseEvent, LeaseView};
use crate::core::lease::waiters::Waiters;
use crate::core::lease::write_right::WriteRight;
use crate::core::moment::Moment;

#[derive(Clone, Debug, Default)]
enum LeaseState {
    #[default]
    Free,
    Held(Holding),
    /// Expired, and nobody was granted one since.
    Lapsed(Holding),
}

/// The lease of one session and those who wait for it.
///
/// Getters tell how it stands; `acquire`, `renew`, `release`, `preempt` and `cancel_wait` are what
/// callers want; `on_*` is what the world did; `deadline` and `take_*` say what the shell must do
/// next. Every method judges expiry first, at the `now` it is given.
#[derive(Debug)]
pub struct LeaseManager {
    limits: LeaseLimits,
    /// The epoch of the newest holding.
    epoch: Epoch,
    stints: u64,
    state: LeaseState,
    /// What stands aside while a person holds; nothing is suspended otherwise.
    suspended: Option<Suspended>,
    waiters: Waiters,
    ended: EndedLeases,
    events: Vec<LeaseEvent>,
    grants: Vec<(WaiterId, Grant)>,
    refusals: Vec<(WaiterId, LeaseError)>,
}

impl LeaseManager {
    /// A free lease; every epoch it gives is above `floor`.
    pub fn new(floor: Epoch, limits: LeaseLimits) -> Self {
        Self {
            limits,
            epoch: floor,
            stints: 0,
            state: LeaseState::Free,
            suspended: None,
            waiters: Waiters::default(),
            ended: EndedLeases::default(),
            events: Vec::new(),
            grants: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The epoch of the lease in force.
    pub fn epoch(&self) -> Option<Epoch> {
        self.held().map(|held| held.epoch)
    }

    /// The epoch of the newest holding, in force or over.
    pub fn newest_epoch(&self) -> Epoch {
        self.epoch
    }

    /// Who holds the lease in force.
    pub fn holder(&self) -> Option<&Caller> {
        self.held().map(|held| &held.holder)
    }

    /// Whether whoever held it with a daemon before may still take it back.
    pub(crate) fn is_reclaimable(&self) -> bool {
        self.held().is_some_and(Holding::is_former)
    }

    /// The lease in force as its holder is told of it; nobody else may see it.
    pub fn grant(&self, now: Moment) -> Option<Grant> {
        self.held().map(|held| held.grant(now, false))
    }

    /// When the lease in force ends unless it is used before.
    pub fn expires_at(&self, now: Moment) -> Option<Moment> {
        self.held().map(|held| now + held.remaining(now))
    }

    /// What everybody may know.
    pub fn view(&self) -> LeaseView {
        LeaseView {
            holding: self.held().map(Holding::view),
            suspended: self.suspended.as_ref().map(|suspended| suspended.holding.view()),
            waiters: self.waiters.len(),
        }
    }

    /// Asks for the lease.
    ///
    /// Its holder gets the same lease again, on the terms of this request and renewed; an offer it
    /// has made is taken back. With `wait_until` the caller queues behind another holder.
    ///
    /// # Errors
    /// Why there is none to be had now; no lease and no deadline has changed then.
    pub fn acquire(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: AcquireRequest,
    ) -> Result<Acquired, LeaseError> {
        self.on_time(now);
        let terms = self.asked_terms(&request)?;
        let mut right = self.right(now, caller, request.presented, Some(terms.clone()));
        if let (Err(LeaseError::Offered { .. }), LeaseState::Held(held)) = (&right, &mut self.state)
        {
            held.take_back(now);
            right = self.right(now, caller, request.presented, Some(terms.clone()));
        }
        match right {
            Ok(right) => {
                let grant = self.exercise(now, caller, right);
                Ok(Acquired::Granted(self.adopt(now, request, grant)))
            }
            Err(held @ (LeaseError::Held { .. } | LeaseError::Suspended { .. })) => {
                if matches!(held, LeaseError::Suspended { .. }) {
                    self.return_to_suspended(caller);
                }
                let most = request.waiters_max.unwrap_or(self.limits.tenant_waiters_max);
                self.queue_up(now, caller, request.wait_until, (terms, most))?.ok_or(held)
            }
            Err(error) => Err(error),
        }
    }

    /// Prolongs a lease by name, for the time given or the one it has.
    ///
    /// # Errors
    /// Why the caller has no lease to renew, or that the time is out of bounds.
    pub fn renew(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: RenewRequest,
    ) -> Result<Grant, LeaseError> {
        let RenewRequest { presented, ttl } = request;
        self.on_time(now);
        ttl.map(|ttl| self.checked(ttl)).transpose()?;
        let right = self.right(now, caller, presented, None)?;
        let revived = self.exercise(now, caller, right).revived;
        let held = self.in_force();
        held.ttl = ttl.unwrap_or(held.ttl);
        held.renew(now);
        let (grant, event) = (held.grant(now, revived), held.event(LeaseChange::Renewed));
        self.events.push(event);
        Ok(grant)
    }

    /// Gives a lease back, or hands it to somebody. Whoever is offered a lease declines it so.
    ///
    /// What is already gone is no error for its former holder. A suspended lease can be given back,
    /// but not handed on: nobody could take it up.
    ///
    /// # Errors
    /// Why the caller has no lease to release.
    pub fn release(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: ReleaseRequest,
    ) -> Result<Released, LeaseError> {
        self.on_time(now);
        match self.right(now, caller, request.presented, None) {
            Ok(WriteRight::TakeUp(_)) => {
                self.in_force().take_back(now);
                Ok(Released::Returned)
            }
            Ok(_) | Err(LeaseError::Offered { .. }) => Ok(self.give_up(now, request.hand_to)),
            Err(error @ LeaseError::Suspended { .. }) => match request.hand_to {
                Some(_) => Err(error),
                None => {
                    self.finish_suspended(EndCause::Released);
                    Ok(Released::Freed)
                }
            },
            Err(LeaseError::Lost { cause }) => Ok(Released::AlreadyGone(cause)),
            Err(error) => match self.ended.last_of(caller.principal) {
                Some(ended) if request.presented.is_none() => {
                    Ok(Released::AlreadyGone(ended.cause.clone()))
                }
                Some(_) | None => Err(error),
            },
        }
    }

    /// Ends the lease in force, whoever has it, and the one that is suspended below it; says whether
    /// there was one.
    pub fn preempt(&mut self, now: Moment, by: PrincipalName) -> bool {
        self.on_time(now);
        let held = self.held().is_some();
        self.finish_suspended(EndCause::Preempted { by: by.clone() });
        self.end(now, now, EndCause::Preempted { by });
        held
    }

    /// Ends the lease in force and every wait, for a cause that leaves nobody to be next.
    pub fn end_all(&mut self, now: Moment, cause: EndCause) {
        self.on_time(now);
        for waiter in self.waiters.take_all() {
            self.refusals.push((waiter.id, LeaseError::Lost { cause: cause.clone() }));
        }
        self.finish_suspended(cause.clone());
        self.finish(cause.clone());
        self.forget_lapsed(cause);
    }

    /// Takes a caller out of the queue; says whether it was there.
    pub fn cancel_wait(&mut self, now: Moment, waiter: WaiterId) -> bool {
        self.on_time(now);
        self.waiters.cancel(waiter)
    }

    /// Passes on a lease whose grant found nobody there; says which, if it was still in force.
    pub fn on_undeliverable(&mut self, now: Moment, waiter: WaiterId) -> Option<LeaseId> {
        self.on_time(now);
        let lease = self.held().filter(|held| held.waited_as == Some(waiter))?.id;
        self.end(now, now, EndCause::Undeliverable);
        Some(lease)
    }

    /// Keeps the lease in force from expiring while a call of its holder is in flight. It still
    /// ends when others wait and it has lasted as long as it may.
    pub(crate) fn hold(&mut self) -> HoldToken {
        let held = self.in_force();
        held.calls_in_flight += 1;
        HoldToken { stint: held.stint }
    }

    /// Lets go of a lease after the call it was kept alive for, which ended at `at`; its time counts
    /// from there. To be judged afterwards.
    pub(crate) fn let_go(&mut self, at: Moment, token: HoldToken) {
        if let LeaseState::Held(held) = &mut self.state
            && held.stint == token.stint
        {
            held.calls_in_flight = held.calls_in_flight.saturating_sub(1);
            held.expires_at = held.expires_at.max(at + held.ttl);
        }
        if let Some(Suspended { holding, .. }) = &mut self.suspended
            && holding.stint == token.stint
        {
            holding.calls_in_flight = holding.calls_in_flight.saturating_sub(1);
        }
    }

    /// Lets go of a lease after a call that came to nothing, which does not renew it. To be judged afterwards.
    pub(crate) fn let_go_unused(&mut self, token: HoldToken) {
        if let LeaseState::Held(held) = &mut self.state
            && held.stint == token.stint
        {
            held.calls_in_flight = held.calls_in_flight.saturating_sub(1);
        }
    }

    /// Gives a lease back that was taken for one call, if no call is in flight any more.
    pub(crate) fn give_back(&mut self, now: Moment) {
        let spent =
            |held: &Holding| held.span == LeasePurpose::OneCall && held.calls_in_flight == 0;
        if self.held().is_some_and(spent) {
            self.end(now, now, EndCause::Released);
        }
    }

    /// When to call [`LeaseManager::on_time`] next.
    pub fn deadline(&self) -> Option<Moment> {
        let due = self.due().map(|(at, _)| at);
        [due, self.waiters.deadline()].into_iter().flatten().min()
    }

    /// What happened since this was last asked, in order.
    pub fn take_events(&mut self) -> Vec<LeaseEvent> {
        std::mem::take(&mut self.events)
    }

    /// Who has waited and got the lease.
    pub fn take_grants(&mut self) -> Vec<(WaiterId, Grant)> {
        std::mem::take(&mut self.grants)
    }

    /// Who waits no more and got nothing.
    pub fn take_refusals(&mut self) -> Vec<(WaiterId, LeaseError)> {
        std::mem::take(&mut self.refusals)
    }

    /// Finds out by which right a caller may write under a rule.
    pub(crate) fn right_under(
        &self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<WriteRight, LeaseError> {
        let terms = self.terms_under(take)?;
        self.right(now, caller, presented, terms)
    }

    /// Puts a caller in the line, if it wants to wait.
    fn queue_up(
        &mut self,
        now: Moment,
        caller: &Caller,
        until: Option<Moment>,
        (terms, of_tenant_max): (Terms, usize),
    ) -> Result<Option<Acquired>, LeaseError> {
        let Some(until) = until.filter(|until| *until > now) else { return Ok(None) };
        let waiter = self.waiters.join(
            caller.clone(),
            terms,
            until,
            (self.limits.waiters_max, of_tenant_max),
        )?;
        // A holding that has lasted too long ends as soon as somebody waits.
        self.on_time(now);
        Ok(Some(Acquired::Waiting(waiter)))
    }

    fn give_up(&mut self, now: Moment, hand_to: Option<HandOver>) -> Released {
        if self.forget_lapsed(EndCause::Released) {
            return Released::AlreadyGone(EndCause::Expired);
        }
        match hand_to {
            Some(target) if !self.is_persons() => self.hand_over(now, target),
            Some(_) | None => {
                self.end(now, now, EndCause::Released);
                Released::Freed
            }
        }
    }

    fn held(&self) -> Option<&Holding> {
        match &self.state {
            LeaseState::Held(held) => Some(held),
            LeaseState::Free | LeaseState::Lapsed(_) => None,
        }
    }

    /// The lease in force, to be asked for where a right to it was just found or used.
    fn in_force(&mut self) -> &mut Holding {
        match &mut self.state {
            LeaseState::Held(held) => Some(held),
            LeaseState::Free | LeaseState::Lapsed(_) => None,
        }
        .expect("a right is used at the moment it was found, and leaves a lease in force")
    }
}
