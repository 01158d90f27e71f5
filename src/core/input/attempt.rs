//! One act on the session: checked once, then committed with nothing in between.
//!
//! What is found out here holds for one step. A commit looks nothing up again, so it panics when
//! the input was asked for anything else since.

use crate::core::caller::Caller;
use crate::core::ids::{Epoch, LeaseId, Watermark};
use crate::core::input::Input;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::idempotency::memory::CallStage;
use crate::core::input::idempotency::{EarlierCall, IdempotencyKey};
use crate::core::input::queue::{Awaited, NewWrite};
use crate::core::input::request::{DiscardCause, WriteError, WriteId};
use crate::core::keys::Unit;
use crate::core::lease::request::{Grant, HoldToken, TakeRule};
use crate::core::lease::write_right::WriteRight;
use crate::core::moment::Moment;

/// What a caller shows and asks for before it writes.
#[derive(Clone, Debug)]
pub struct AttemptRequest {
    /// The id of the lease to write with; the one the caller holds when not given.
    pub presented: Option<LeaseId>,
    pub take: TakeRule,
    pub key: Option<IdempotencyKey>,
    /// Up to where the caller has seen the screen; that it still matches is not checked here.
    pub expected: Option<Watermark>,
}

/// The answer to a caller that wants to write.
#[derive(Debug)]
pub enum Tried {
    Allowed(Attempt),
    /// The same call was made before.
    Earlier(EarlierCall),
}

/// An act without bytes that its caller may do in this step.
#[derive(Debug)]
#[must_use = "an act that is not committed renews nothing"]
pub struct AllowedAct {
    now: Moment,
    caller: Caller,
    right: WriteRight,
    step: u64,
}

/// A write that its caller may make in this step.
#[derive(Debug)]
#[must_use = "an attempt that is not committed writes nothing"]
pub struct Attempt {
    act: AllowedAct,
    key: Option<IdempotencyKey>,
}

/// How long a write keeps its lease alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepLease {
    UntilAnswered,
    /// The call goes on after its write. The lease still ends when others wait and it has lasted as
    /// long as it may; one that was taken for this call is given back when it lets go.
    UntilLetGo,
}

/// A write that is queued; a completion follows under its name.
#[derive(Debug)]
pub struct Committed {
    pub grant: Grant,
    /// Given where the lease is held until the call lets go of it.
    pub hold: Option<HoldToken>,
    /// By what the next daemon knows the write, if it has an idempotency key.
    pub stamp: Option<WriteStamp>,
}

impl Input {
    /// Finds out whether a caller may write now: by its key whether it did so before, else by
    /// switch, lease and what it has seen. Changes nothing but what time has done.
    ///
    /// # Errors
    /// Why the caller may not.
    pub fn attempt(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: AttemptRequest,
    ) -> Result<Tried, WriteError> {
        let AttemptRequest { presented, take, key, expected } = request;
        if let Some(key) = &key
            && let Some(earlier) = self.recall(now, caller, presented, key)?
        {
            return Ok(Tried::Earlier(earlier));
        }
        let act = self.allow(now, caller, presented, take)?;
        self.check_seen(&act.right, expected)?;
        Ok(Tried::Allowed(Attempt { act, key }))
    }

    /// Checks that there is room for these bytes, and to remember the call. [`Input::commit`] in the same step succeeds.
    ///
    /// # Errors
    /// Why there is no room.
    pub fn check_commit(&mut self, attempt: &Attempt, unit: &Unit) -> Result<(), WriteError> {
        let Attempt { act, key } = attempt;
        self.check_room(unit, act.right.keeps_epoch())?;
        self.make_room_to_remember(act.now, &act.caller, key.as_ref())
    }

    /// Queues these bytes and renews the lease, if there is room.
    ///
    /// # Errors
    /// Why there is no room; no lease and no deadline has changed then.
    pub fn commit(
        &mut self,
        attempt: Attempt,
        write: WriteId,
        unit: Unit,
        holding: KeepLease,
    ) -> Result<Committed, WriteError> {
        self.check_commit(&attempt, &unit)?;
        let Attempt { act, key } = attempt;
        let now = act.now;
        let (caller, grant) = self.exercise(act);
        let hold = (holding == KeepLease::UntilLetGo).then(|| self.lease.hold());
        self.lease.on_seen();
        self.cut_ended_epochs(now);
        let stamp = key.as_ref().map(|key| WriteStamp::new(&caller.tenant, grant.lease, key));
        let own = key.as_ref().map(|key| WriteStamp::of_principal(caller.principal, key));
        self.remember(&caller, key, CallStage::Writing(write), None);
        let epoch = grant.epoch;
        self.enqueue(now, caller, NewWrite { write, unit, epoch, until_taken: None, stamp, own });
        self.follow(now);
        Ok(Committed { grant, hold, stamp })
    }

    /// Finds out whether a caller may do what sends no bytes but changes the terminal as a write
    /// does. Changes nothing but what time has done.
    ///
    /// # Errors
    /// Why the caller may not.
    pub fn allow(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<AllowedAct, WriteError> {
        self.judge(now);
        let right = self.right(now, caller, presented, take)?;
        Ok(AllowedAct { now, caller: caller.clone(), right, step: self.step })
    }

    /// Renews the lease for an act that was done. A lease that is taken for this act is given back
    /// already.
    pub fn commit_act(&mut self, act: AllowedAct) {
        let now = act.now;
        self.exercise(act);
        self.follow(now);
    }

    /// Begins an act, and keeps the lease from expiring until the act lets go of it: with [`Input::let_go`], which renews
    /// the lease, or with [`Input::let_go_unused`]. A lease that is taken for this act is given back then.
    pub fn commit_lasting(&mut self, act: AllowedAct) -> (Grant, HoldToken) {
        let now = act.now;
        let revives = matches!(act.right, WriteRight::Revive);
        let grant = match act.right.keeps_epoch() {
            true => self.lease.begin_use(now, &act.caller),
            false => self.exercise(act).1,
        };
        let hold = self.lease.hold();
        if revives {
            // It is over again unless the act comes to something.
            self.lease.spend(now);
        }
        self.follow(now);
        (grant, hold)
    }

    /// Finds out whether a command that was sent under this epoch may still be interrupted for its caller:
    /// while no other holding began since, else where the caller has one now and may write blindly. Without
    /// an epoch the caller sent it, if at all, in a holding that is over, and nobody may have one.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_interrupt(
        &mut self,
        now: Moment,
        caller: &Caller,
        sent_in: Option<Epoch>,
    ) -> Result<(), WriteError> {
        self.judge(now);
        self.check_open(now)?;
        let is_untouched = match sent_in {
            Some(epoch) => epoch == self.lease.newest_epoch(),
            None => self.lease.epoch().is_none() || self.lease.is_reclaimable(),
        };
        if is_untouched {
            return Ok(());
        }
        let right = self.right(now, caller, None, TakeRule::HeldOnly)?;
        self.check_seen(&right, None)
    }

    pub(super) fn right(
        &self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<WriteRight, WriteError> {
        self.check_open(now)?;
        Ok(self.lease.right_under(now, caller, presented, take)?)
    }

    pub(super) fn check_open(&self, now: Moment) -> Result<(), WriteError> {
        if self.ended {
            return Err(WriteError::SessionEnded);
        }
        if !self.window.is_open(now) {
            return Err(WriteError::ReadOnly);
        }
        Ok(())
    }

    fn check_seen(
        &self,
        right: &WriteRight,
        expected: Option<Watermark>,
    ) -> Result<(), WriteError> {
        self.lease.check_seen(right, expected).map_err(|since| WriteError::NotSeen { since })
    }

    pub(super) fn check_room(&self, unit: &Unit, keeps_epoch: bool) -> Result<(), WriteError> {
        // What is in the way of an interrupt, or was queued by a former holder, makes room.
        let (queued, writes) = match unit.is_interrupt() || !keeps_epoch {
            true => (self.queue.tail(), 1),
            false => (self.queue.bytes(), self.queue.writes()),
        };
        let bytes_max = Self::QUEUE_BYTES_MAX;
        if queued + unit.len() > bytes_max || writes >= Self::QUEUE_WRITES_MAX {
            return Err(WriteError::TooMuchQueued { queued, bytes_max });
        }
        Ok(())
    }

    fn exercise(&mut self, act: AllowedAct) -> (Caller, Grant) {
        let AllowedAct { now, caller, right, step } = act;
        assert_eq!(step, self.step, "an act is committed in the step that allowed it");
        let grant = self.lease.exercise(now, &caller, right);
        (caller, grant)
    }

    pub(super) fn enqueue(&mut self, now: Moment, caller: Caller, wanted: NewWrite) {
        if wanted.unit.is_interrupt() {
            self.cut(now, |_| true, DiscardCause::Interrupted);
        }
        let kept = wanted.until_taken.is_some();
        let hold = (!kept).then(|| self.lease.hold());
        let awaited = Awaited { until: now + Self::WRITE_ANSWER_AFTER, hold };
        self.queue.push(caller, wanted, awaited);
        self.finish_done(now);
    }
}
