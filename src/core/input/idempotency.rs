//! Calls with idempotency keys: asking again has no second effect, after a restart either.
//!
//! This daemon's own calls are known by principal and key, those of daemons before by their stamps.

pub mod earlier_writes;

pub(super) mod memory;

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::ids::{LeaseId, Watermark};
use crate::core::input::Input;
use crate::core::input::idempotency::earlier_writes::{
    FormerRecall, FormerWrite, FormerWrites, WriteStamp,
};
use crate::core::input::idempotency::memory::{CallStage, KeyedCalls};
use crate::core::input::request::{CommandSent, WriteError, WriteId, WriteOutcome};
use crate::core::lease::request::TakeRule;
use crate::core::moment::Moment;

/// A write that its caller made before under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierCall {
    pub write: EarlierResult,
    /// The command it sent; none also where that is forgotten.
    pub command: Option<CommandSent>,
}

/// What such a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierResult {
    /// It is on its way; its completion answers both.
    InFlight(WriteId),
    Written(WriteOutcome),
}

impl Input {
    /// The same input, which knows the writes with idempotency keys that daemons before have made,
    /// oldest first, and makes none of them again for as long as results are kept.
    pub fn with_former(self, now: Moment, writes: Vec<FormerWrite>) -> Self {
        Self { former: FormerWrites::new(now, writes, KeyedCalls::KEPT_FOR), ..self }
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
    pub fn recall(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        key: &IdempotencyKey,
    ) -> Result<Option<EarlierCall>, WriteError> {
        self.judge(now);
        if let Some(call) = self.calls.recall(now, caller.principal, key)? {
            let write = match call.stage {
                CallStage::Writing(write) => EarlierResult::InFlight(write),
                CallStage::Written(outcome) => EarlierResult::Written(outcome),
                CallStage::Waiting(_) | CallStage::Granted(_) | CallStage::Released(_) => {
                    return Err(WriteError::KeyReused);
                }
            };
            return Ok(Some(EarlierCall { write, command: call.command }));
        }
        match self.recall_former(now, caller, presented, key) {
            FormerRecall::New => Ok(None),
            FormerRecall::Conflict => Err(WriteError::KeyReused),
            FormerRecall::Made(FormerWrite { taken: written, length, command, .. }) => {
                self.take_back(now, caller, presented);
                let discarded = length.map_or(0, |length| length.saturating_sub(written));
                let write = EarlierResult::Written(WriteOutcome { written, discarded, queued: 0 });
                // Whatever is shown by now came after it.
                let command = command.map(|id| CommandSent { id, before: Watermark(0) });
                Ok(Some(EarlierCall { write, command }))
            }
        }
    }

    /// Notes which command a write sends that was queued just now.
    pub fn note_command(&mut self, write: WriteId, command: CommandSent) {
        self.calls.note_command(write, command);
    }

    /// Gives the lease back to whoever held it with the daemon before, if it is still to be had; a
    /// call that is only repeated does nothing else to a lease.
    fn take_back(&mut self, now: Moment, caller: &Caller, presented: Option<LeaseId>) {
        if let Ok(act) = self.allow(now, caller, presented, TakeRule::HeldOnly)
            && self.lease.is_reclaimable()
        {
            self.commit_act(act);
        }
    }

    fn recall_former(
        &self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        key: &IdempotencyKey,
    ) -> FormerRecall {
        if self.former.writes().is_empty() {
            return FormerRecall::New;
        }
        let own = WriteStamp::of_principal(caller.principal, key);
        match self.former.recall(now, &own) {
            FormerRecall::New => match presented.or_else(|| self.lease.id_of(caller)) {
                Some(lease) => {
                    self.former.recall(now, &WriteStamp::new(&caller.tenant, lease, key))
                }
                None => FormerRecall::New,
            },
            known @ (FormerRecall::Made(_) | FormerRecall::Conflict) => known,
        }
    }
}

/// The name a caller gives to one call, so that asking again has no second effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    text: Arc<str>,
    fingerprint: u64,
    /// The call may only be answered as before.
    is_repetition: bool,
}

impl IdempotencyKey {
    pub const LEN_MAX: usize = 128;

    /// The key of a call whose tool and arguments hash to `fingerprint`; none when it is empty or
    /// too long.
    pub fn new(text: &str, fingerprint: u64) -> Option<Self> {
        let fits = (1..=Self::LEN_MAX).contains(&text.len());
        fits.then(|| Self { text: Arc::from(text), fingerprint, is_repetition: false })
    }

    /// The same key, for a call that may have no effect of its own.
    pub fn of_repetition(self) -> Self {
        Self { is_repetition: true, ..self }
    }

    /// Whether its call may have no effect of its own.
    pub fn is_repetition(&self) -> bool {
        self.is_repetition
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// What tells calls with the same text apart.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether both are the same text, be it for different calls.
    pub fn has_text_of(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// Whether both stand for the same call.
    pub fn is_of_call(&self, other: &Self) -> bool {
        self.has_text_of(other) && self.fingerprint == other.fingerprint
    }
}
