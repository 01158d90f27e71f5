//! The verbs of the lease, as callers of the session use them.
//!
//! Each goes through here and not straight to the lease, so that whatever becomes of a lease also
//! becomes of the bytes queued under it.

use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::input::Input;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::idempotency::memory::CallStage;
use crate::core::input::request::WriteError;
use crate::core::lease::error::EndCause;
use crate::core::lease::request::{
    AcquireRequest, Acquired, Grant, ReleaseRequest, Released, RenewRequest, WaiterId,
};
use crate::core::moment::Moment;

impl Input {
    /// Counts the time in which a lease of before can be taken back from this moment on.
    pub fn begin_reclaim(&mut self, now: Moment) {
        self.judge(now);
        self.lease.begin_reclaim(now);
    }

    /// Asks for the lease, or waits for it.
    ///
    /// # Errors
    /// Why there is none to be had; no lease and no deadline has changed then.
    pub fn acquire(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: AcquireRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Acquired, WriteError> {
        self.judge(now);
        match self.earlier_stage(now, caller, key.as_ref())? {
            Some(CallStage::Waiting(waiter)) => {
                self.lease.on_waits_again(waiter, caller);
                return Ok(Acquired::Waiting(waiter));
            }
            Some(CallStage::Granted(grant)) => {
                self.lease.on_asked_again(caller, grant.lease);
                return Ok(Acquired::Granted(grant));
            }
            Some(CallStage::Writing(_) | CallStage::Written(_) | CallStage::Released(_)) => {
                return Err(WriteError::KeyReused);
            }
            None => self.check_open(now)?,
        }
        self.make_room_to_remember(now, caller, key.as_ref())?;
        let acquired = self.lease.acquire(now, caller, request)?;
        let (stage, done_at) = match &acquired {
            Acquired::Granted(grant) => (CallStage::Granted(grant.clone()), Some(now)),
            Acquired::Waiting(waiter) => (CallStage::Waiting(*waiter), None),
        };
        self.remember(caller, key, stage, done_at);
        self.follow(now);
        Ok(acquired)
    }

    /// Prolongs a lease by name.
    ///
    /// # Errors
    /// Why the caller has none to renew.
    pub fn renew(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: RenewRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Grant, WriteError> {
        self.judge(now);
        if let Some(stage) = self.earlier_stage(now, caller, key.as_ref())? {
            let CallStage::Granted(grant) = stage else { return Err(WriteError::KeyReused) };
            self.lease.on_asked_again(caller, grant.lease);
            return Ok(grant);
        }
        self.check_open(now)?;
        self.make_room_to_remember(now, caller, key.as_ref())?;
        let grant = self.lease.renew(now, caller, request)?;
        self.remember(caller, key, CallStage::Granted(grant.clone()), Some(now));
        self.follow(now);
        Ok(grant)
    }

    /// Gives a lease back or hands it on; possible whether or not anybody may write.
    ///
    /// # Errors
    /// Why the caller has none to release.
    pub fn release(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: ReleaseRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Released, WriteError> {
        self.judge(now);
        if let Some(stage) = self.earlier_stage(now, caller, key.as_ref())? {
            let CallStage::Released(released) = stage else { return Err(WriteError::KeyReused) };
            return Ok(released);
        }
        self.make_room_to_remember(now, caller, key.as_ref())?;
        let released = self.lease.release(now, caller, request)?;
        self.remember(caller, key, CallStage::Released(released.clone()), Some(now));
        self.follow(now);
        Ok(released)
    }

    /// Ends the lease in force, whoever has it; says whether there was one.
    pub fn preempt(&mut self, now: Moment, by: PrincipalName) -> bool {
        self.judge(now);
        let held = self.lease.preempt(now, by);
        self.follow(now);
        held
    }

    /// Ends all that a principal has of the lease, since it may not write any more, and discards what it
    /// had queued.
    pub fn end_right_of(&mut self, now: Moment, principal: PrincipalId) {
        self.judge(now);
        self.lease.end_right_of(now, principal);
        self.follow(now);
    }

    /// Ends all that these tenants have of the lease, for this cause.
    pub fn end_rights_of(
        &mut self,
        now: Moment,
        ends: impl Fn(&TenantId) -> bool,
        cause: &EndCause,
    ) {
        self.judge(now);
        self.lease.end_rights(now, |_, of| ends(of), cause);
        self.follow(now);
    }

    /// Takes a caller out of the queue for the lease; says whether it was there. If not, it was
    /// granted the lease or refused in the meantime.
    pub fn cancel_wait(&mut self, now: Moment, waiter: WaiterId) -> bool {
        self.judge(now);
        self.calls.forget(|stage| *stage == CallStage::Waiting(waiter));
        self.lease.cancel_wait(now, waiter)
    }

    pub fn on_undeliverable(&mut self, now: Moment, waiter: WaiterId) {
        self.judge(now);
        if let Some(passed_on) = self.lease.on_undeliverable(now, waiter) {
            self.calls.forget(
                |stage| matches!(stage, CallStage::Granted(grant) if grant.lease == passed_on),
            );
        }
        self.follow(now);
    }

    /// Notes that a connection closed: its waits are over, and with the last one of its holder that
    /// used it a lease goes the way it was acquired with.
    pub fn on_connection_closed(&mut self, now: Moment, connection: ConnectionId) {
        self.judge(now);
        self.lease.on_connection_closed(now, connection);
        self.follow(now);
    }

    fn earlier_stage(
        &self,
        now: Moment,
        caller: &Caller,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<CallStage>, WriteError> {
        let Some(key) = key else { return Ok(None) };
        let known = self.calls.recall(now, caller.principal, key)?;
        Ok(known.map(|call| call.stage.clone()))
    }

    /// Makes sure that a call with a key can be remembered, before it has any effect.
    pub(super) fn make_room_to_remember(
        &mut self,
        now: Moment,
        caller: &Caller,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        match key {
            None => Ok(()),
            Some(key) if key.is_repetition() => Err(WriteError::NotRepeated),
            Some(_) => self.calls.make_room(now, caller.principal),
        }
    }

    pub(super) fn remember(
        &mut self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        stage: CallStage,
        done_at: Option<Moment>,
    ) {
        if let Some(key) = key {
            self.calls.insert(caller.principal, key, stage, done_at);
        }
    }

    /// Who has waited and got the lease.
    pub fn take_grants(&mut self) -> Vec<(WaiterId, Grant)> {
        std::mem::take(&mut self.grants)
    }

    /// Who waits no more and got nothing.
    pub fn take_refusals(&mut self) -> Vec<(WaiterId, WriteError)> {
        std::mem::take(&mut self.refusals)
    }
}
