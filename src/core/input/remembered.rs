//! Which calls are remembered under their idempotency keys, and as what.
//!
//! It knows nothing of how long or how many; that is the memory's business.

use crate::core::caller::Caller;
use crate::core::ids::{LeaseId, Watermark};
use crate::core::input::Input;
use crate::core::input::earlier_writes::{FormerRecall, FormerWrite, FormerWrites, WriteStamp};
use crate::core::input::error::WriteError;
use crate::core::input::idempotency::{Full, Recall, Replays};
use crate::core::input::request::{
    Accepted, CommandRecall, CommandSent, IdempotencyKey, KeyedCall, WriteId, WriteOutcome,
};
use crate::core::lease::request::{Grant, Released, TakeRule, WaiterId};
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
    /// The same input, which knows the writes with idempotency keys that daemons before have made,
    /// oldest first, and makes none of them again for as long as results are kept.
    pub fn with_former(self, now: Moment, writes: Vec<FormerWrite>) -> Self {
        let kept_for = Replays::<Flight, Outcome>::KEPT_FOR;
        Self { former: FormerWrites::new(now, writes, kept_for), ..self }
    }

    /// The writes of daemons before that it knows, oldest first.
    pub fn former(&self) -> &[FormerWrite] {
        self.former.writes()
    }

    /// What became of the write that a caller made before under this key, if it made one; asking
    /// again has no effect, so neither the lease nor the screen matters any more.
    ///
    /// A write of a daemon before is recognised under the same lease, by whoever holds it or shows
    /// its id, and takes it back as any other; what the terminal did not take of it then is gone.
    ///
    /// # Errors
    /// [`WriteError::KeyReused`] when the key was used for another call.
    pub fn made_before(
        &mut self,
        now: Moment,
        caller: &Caller,
        call: KeyedCall<'_>,
    ) -> Result<Option<Accepted>, WriteError> {
        match self.recall(now, caller, call.key) {
            Recall::New => self.made_by_former(now, caller, call),
            Recall::InFlight(Flight::Write(write)) => Ok(Some(Accepted::InFlight(write))),
            Recall::Done(Outcome::Written(outcome)) => Ok(Some(Accepted::Replayed(outcome))),
            Recall::InFlight(Flight::Wait(_))
            | Recall::Done(Outcome::Granted(_) | Outcome::Released(_))
            | Recall::Conflict => Err(WriteError::KeyReused),
        }
    }

    /// Which command a caller sent before under this key; asking for one of a daemon before takes the
    /// lease back as asking for the write does.
    ///
    /// # Errors
    /// [`WriteError::KeyReused`] when the key was used for another call.
    pub fn command_sent_before(
        &mut self,
        now: Moment,
        caller: &Caller,
        call: KeyedCall<'_>,
    ) -> Result<CommandRecall, WriteError> {
        if self.made_before(now, caller, call)?.is_none() {
            return Ok(CommandRecall::New);
        }
        let known = |key| self.replays.command_of(now, caller.principal, key);
        let known = call.key.and_then(known).or_else(|| {
            let FormerRecall::Made(write) = self.recall_former(now, caller, call)? else {
                return None;
            };
            // Whatever is shown by now came after it.
            write.command.map(|id| CommandSent { id, before: Watermark(0) })
        });
        Ok(known.map_or(CommandRecall::Forgotten, CommandRecall::Sent))
    }

    /// By what the next daemon knows a call that has a key and a lease.
    pub fn stamp_of(&self, caller: &Caller, call: KeyedCall<'_>) -> Option<WriteStamp> {
        let lease = call.presented.or_else(|| self.lease.id_of(caller))?;
        Some(WriteStamp::new(&caller.tenant, lease, call.key?))
    }

    /// Notes which command a write sends that was queued just now.
    pub fn note_command(&mut self, write: WriteId, command: CommandSent) {
        self.replays.note_command(Flight::Write(write), command);
    }

    fn made_by_former(
        &mut self,
        now: Moment,
        caller: &Caller,
        call: KeyedCall<'_>,
    ) -> Result<Option<Accepted>, WriteError> {
        match self.recall_former(now, caller, call) {
            None | Some(FormerRecall::New) => Ok(None),
            Some(FormerRecall::Made(FormerWrite { taken: written, length, .. })) => {
                self.take_back(now, caller, call.presented);
                let discarded = length.map_or(0, |length| length.saturating_sub(written));
                Ok(Some(Accepted::Replayed(WriteOutcome { written, discarded, queued: 0 })))
            }
            Some(FormerRecall::Conflict) => Err(WriteError::KeyReused),
        }
    }

    /// Gives the lease back to whoever held it with the daemon before, if it is still to be had; a
    /// call that is only repeated does nothing else to a lease.
    fn take_back(&mut self, now: Moment, caller: &Caller, presented: Option<LeaseId>) {
        self.judge(now);
        if self.lease.is_reclaimable()
            && let Ok(right) = self.right(now, caller, presented, TakeRule::HeldOnly)
        {
            self.lease.exercise(now, caller, right);
            self.follow(now);
        }
    }

    fn recall_former(
        &self,
        now: Moment,
        caller: &Caller,
        call: KeyedCall<'_>,
    ) -> Option<FormerRecall> {
        let own = WriteStamp::of_principal(caller.principal, call.key?);
        match self.former.recall(now, &own) {
            FormerRecall::New => Some(self.former.recall(now, &self.stamp_of(caller, call)?)),
            known @ (FormerRecall::Made(_) | FormerRecall::Conflict) => Some(known),
        }
    }

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
