//! Which calls are remembered under their idempotency keys, and as what.
//!
//! It knows nothing of how long or how many; that is the memory's business.

use crate::core::caller::Caller;
use crate::core::ids::LeaseId;
use crate::core::input::Input;
use crate::core::input::error::WriteError;
use crate::core::input::replay::{Full, Recall};
use crate::core::input::request::{IdempotencyKey, WriteId, WriteOutcome};
use crate::core::lease::request::{Grant, Released, WaiterId};
use crate::core::moment::Moment;

/// A call in flight that may be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    Write(WriteId),
    Wait(WaiterId),
}

/// What a call came to that may be asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Written(WriteOutcome),
    Granted(Grant),
    Released(Released),
}

impl Input {
    /// What is known of a call that has this key.
    pub(super) fn recall(
        &self,
        now: Moment,
        caller: &Caller,
        key: Option<&IdempotencyKey>,
    ) -> Recall<Flight, Outcome> {
        match key {
            Some(key) => self.replays.recall(now, caller.principal, key),
            None => Recall::New,
        }
    }

    /// Makes sure that the call can be remembered, before it has any effect.
    pub(super) fn make_room_to_remember(
        &mut self,
        now: Moment,
        caller: &Caller,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        match key {
            Some(_) => self
                .replays
                .make_room(now, caller.principal)
                .map_err(|Full| WriteError::TooManyInFlight),
            None => Ok(()),
        }
    }

    /// Remembers a call that was done at once.
    pub(super) fn remember(
        &mut self,
        now: Moment,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        outcome: Outcome,
    ) {
        if let Some(key) = key {
            self.replays.remember(now, caller.principal, key, outcome);
        }
    }

    /// Forgets that a lease was granted, since the grant reached nobody.
    pub(super) fn forget_grant(&mut self, lease: LeaseId) {
        let granted = |outcome: &Outcome| match outcome {
            Outcome::Granted(grant) => grant.lease == lease,
            Outcome::Written(_) | Outcome::Released(_) => false,
        };
        self.replays.forget_done(granted);
    }
}
