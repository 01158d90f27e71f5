//! Who may write: the one decision on which every path to a terminal rests.
//!
//! It decides and changes nothing, so that a call which then fails for another reason has left no
//! trace, and a rehearsal gives the very answer that the call would get.

use crate::core::caller::Caller;
use crate::core::ids::LeaseId;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::holding::{HolderPresence, Holding, Suspended};
use crate::core::lease::limits::{LeasePurpose, Terms};
use crate::core::lease::{LeaseManager, LeaseState};
use crate::core::moment::Moment;

/// A right to write that was found, and what must happen to the lease when it is used.
///
/// It holds for the moment it was found at and must be used with nothing in between.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) enum WriteRight {
    /// The lease in force is used.
    Use,
    /// An expired lease goes on.
    Revive,
    /// The lease moves to the caller, since its holder's connection is gone.
    Move,
    /// The caller takes up what it was offered.
    TakeUp(Terms),
    /// The session is free and the caller takes the lease.
    Take(Terms),
}

impl WriteRight {
    /// Whether bytes queued under the lease in force stay valid.
    pub(crate) fn keeps_epoch(&self) -> bool {
        matches!(self, Self::Use)
    }

    /// Whether a lease goes on that there was before.
    pub(super) fn keeps_lease(&self) -> bool {
        match self {
            Self::Use | Self::Revive | Self::Move => true,
            Self::TakeUp(_) | Self::Take(_) => false,
        }
    }
}

impl LeaseManager {
    /// Finds out by which right a caller may write; `terms` are those on which it would take a free
    /// lease, if it would.
    pub(super) fn right(
        &self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        terms: Option<Terms>,
    ) -> Result<WriteRight, LeaseError> {
        match presented {
            Some(id) => self.right_by_key(now, caller, id),
            None => self.right_by_name(now, caller, terms),
        }
    }

    /// The id of the lease that this caller has by name: in force, expired or suspended.
    pub(crate) fn id_of(&self, caller: &Caller) -> Option<LeaseId> {
        let own = |holding: &&Holding| holding.holder.principal == caller.principal;
        self.known().find(own).map(|holding| holding.id)
    }

    /// The id of the lease that the command line holds beyond one call, for itself alone.
    pub(crate) fn command_lines(&self) -> Option<LeaseId> {
        let own =
            |holding: &&Holding| holding.span == LeasePurpose::Kept && holding.is_command_lines();
        self.known().find(own).map(|holding| holding.id)
    }

    /// Whether a lease has, or had not long ago, this id.
    pub fn knows(&self, id: LeaseId) -> bool {
        self.known().any(|holding| holding.id == id) || self.ended.find(id).is_some()
    }

    fn known(&self) -> impl Iterator<Item = &Holding> {
        let aside = self.suspended.as_ref().map(|suspended| &suspended.holding);
        let known = match &self.state {
            LeaseState::Held(known) | LeaseState::Lapsed(known) => Some(known),
            LeaseState::Free => None,
        };
        aside.into_iter().chain(known)
    }

    fn right_by_name(
        &self,
        now: Moment,
        caller: &Caller,
        terms: Option<Terms>,
    ) -> Result<WriteRight, LeaseError> {
        let lost = self.ended.lost_by(caller.principal);
        let lost = lost.map(|cause| LeaseError::Lost { cause: cause.clone() });
        if let Some(suspended) = &self.suspended
            && suspended.holding.is_named(caller)
        {
            return Err(self.suspended_by(suspended, now));
        }
        match (&self.state, terms) {
            (LeaseState::Held(held), terms) if held.is_offered_to(caller) => {
                self.take_up(held, terms)
            }
            (LeaseState::Held(held), _) if held.is_named(caller) => right_of_holder(held),
            (LeaseState::Held(held), Some(_)) => Err(self.held_by(held, now)),
            (LeaseState::Held(held), None) => Err(lost.unwrap_or_else(|| self.held_by(held, now))),
            (LeaseState::Lapsed(lapsed), _) if lapsed.is_named(caller) => Ok(WriteRight::Revive),
            (LeaseState::Lapsed(_) | LeaseState::Free, Some(terms)) => Ok(WriteRight::Take(terms)),
            (LeaseState::Lapsed(_) | LeaseState::Free, None) => {
                Err(lost.unwrap_or(LeaseError::Required))
            }
        }
    }

    fn right_by_key(
        &self,
        now: Moment,
        caller: &Caller,
        id: LeaseId,
    ) -> Result<WriteRight, LeaseError> {
        if let Some(suspended) = self.suspended.as_ref().filter(|it| it.holding.id == id) {
            return Err(self.refusal_of_suspended(now, caller, suspended));
        }
        match &self.state {
            LeaseState::Held(held) if held.id == id => self.right_to_held(now, caller, held),
            LeaseState::Lapsed(lapsed) if lapsed.id == id => right_to_lapsed(caller, lapsed),
            LeaseState::Held(_) | LeaseState::Lapsed(_) | LeaseState::Free => {
                match self.ended.find(id) {
                    Some(ended) if ended.tenant != caller.tenant => Err(LeaseError::OtherTenant),
                    Some(ended) => Err(LeaseError::Lost { cause: ended.cause.clone() }),
                    None => Err(LeaseError::Superseded),
                }
            }
        }
    }

    fn right_to_held(
        &self,
        now: Moment,
        caller: &Caller,
        held: &Holding,
    ) -> Result<WriteRight, LeaseError> {
        if held.holder.tenant != caller.tenant {
            return Err(LeaseError::OtherTenant);
        }
        if held.is_offered_to(caller) {
            return self.take_up(held, None);
        }
        if held.is_of(caller) {
            return right_of_holder(held);
        }
        if is_here(held) {
            return Err(self.held_by(held, now));
        }
        use_unless_offered(held).map(|_| WriteRight::Move)
    }

    fn refusal_of_suspended(
        &self,
        now: Moment,
        caller: &Caller,
        suspended: &Suspended,
    ) -> LeaseError {
        let Suspended { holding, .. } = suspended;
        if holding.holder.tenant != caller.tenant {
            return LeaseError::OtherTenant;
        }
        let may_come_back = holding.is_of(caller) || !is_here(holding);
        match &self.state {
            LeaseState::Held(person) if !may_come_back => self.held_by(person, now),
            LeaseState::Held(_) | LeaseState::Lapsed(_) | LeaseState::Free => {
                self.suspended_by(suspended, now)
            }
        }
    }

    fn take_up(&self, held: &Holding, terms: Option<Terms>) -> Result<WriteRight, LeaseError> {
        let fresh = held.offer.as_ref().map_or(held.id, |offer| offer.fresh);
        let terms = terms.unwrap_or_else(|| self.default_terms(fresh));
        Ok(WriteRight::TakeUp(Terms { fresh, span: LeasePurpose::Kept, ..terms }))
    }

    /// Says who holds the lease, to somebody who would have liked it.
    pub(super) fn held_by(&self, held: &Holding, now: Moment) -> LeaseError {
        let expires_in = held.remaining(now);
        LeaseError::Held {
            by: held.holder.name(),
            tenant: held.holder.tenant.clone(),
            kind: held.holder.kind,
            reason: held.reason.clone(),
            expires_in,
            at_most: match held.is_former() {
                true => expires_in,
                false => now.until(self.latest_end(held)),
            },
            waiters: self.waiters.len(),
            reclaimable: held.is_former(),
        }
    }
}

fn right_to_lapsed(caller: &Caller, lapsed: &Holding) -> Result<WriteRight, LeaseError> {
    if lapsed.holder.tenant != caller.tenant {
        return Err(LeaseError::OtherTenant);
    }
    if lapsed.is_of(caller) {
        return Ok(WriteRight::Revive);
    }
    if is_here(lapsed) {
        return Err(LeaseError::Lost { cause: EndCause::Expired });
    }
    Ok(WriteRight::Move)
}

/// Whoever held it with a daemon before has it back with the next epoch.
fn right_of_holder(held: &Holding) -> Result<WriteRight, LeaseError> {
    let right = use_unless_offered(held)?;
    Ok(if held.is_former() { WriteRight::Move } else { right })
}

fn use_unless_offered(held: &Holding) -> Result<WriteRight, LeaseError> {
    match &held.offer {
        Some(offer) => Err(LeaseError::Offered { to: offer.to.clone() }),
        None => Ok(WriteRight::Use),
    }
}

fn is_here(holding: &Holding) -> bool {
    holding.presence == HolderPresence::Here
}
