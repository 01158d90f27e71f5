//! The lease of a mount: the same as that of a session, without a terminal behind it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::core::caller::{Caller, PrincipalName};
use crate::core::event::{Event, EventScope, LeaseOf};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId, TenantId};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::{InputEvent, WriteError};
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::LeaseManager;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::request::{
    AcquireRequest, Acquired, Grant, HoldToken, ReleaseRequest, Released, RenewRequest, TakeRule,
    WaiterId,
};
use crate::core::lease::view::{LeaseChange, LeaseEvent, LeaseView};
use crate::core::moment::Moment;
use crate::mount::fence::CallLease;
use crate::mount::servers::Mount;
use crate::session::registry::Registry;
use crate::surface::error::SurfaceError;

/// The lease of one mount, and those who wait for it.
#[derive(Debug)]
pub struct MountLease {
    mount: Mount,
    sessions: Registry,
    desk: Mutex<LeaseDesk>,
    /// Something may be due at another time.
    settled: Notify,
}

/// What is behind the lock. Nothing is awaited while it is held.
#[derive(Debug)]
struct LeaseDesk {
    /// Never given a byte. Its window is open: the gateway asks the switches for each call.
    input: Input,
    /// A caller that asks twice under one idempotency key waits twice in one place.
    waiting: BTreeMap<WaiterId, Vec<LeaseReply>>,
    /// What was to be seen last.
    view: LeaseView,
}

type LeaseReply = oneshot::Sender<Result<Grant, WriteError>>;

impl MountLease {
    /// A free lease, whose epochs are all above this one.
    pub fn new(mount: Mount, sessions: Registry, above: Epoch) -> Self {
        let lease = LeaseManager::new(above, sessions.limits().lease.clone());
        let input = Input::new(lease, WriteWindow::Open);
        let view = input.lease().view();
        let desk = Mutex::new(LeaseDesk { input, waiting: BTreeMap::new(), view });
        Self { mount, sessions, desk, settled: Notify::new() }
    }

    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// How it stands, and when it ends unless it is used before.
    pub fn view(&self) -> (LeaseView, Option<Moment>) {
        let desk = self.lock();
        (desk.input.lease().view(), desk.input.lease().expires_at(self.now()))
    }

    /// Why a caller does not have it. Of a holder of another tenant, it learns no more than that.
    pub fn refusal(&self, caller: &Caller, mut error: WriteError) -> SurfaceError {
        if let WriteError::Lease(held) = &mut error
            && let LeaseError::Held { tenant, expires_in, at_most, waiters, .. } = held
            && *tenant != caller.tenant
        {
            let (expires_in, at_most, waiters) = (*expires_in, *at_most, *waiters);
            *held = LeaseError::HeldByOtherTenant { expires_in, at_most, waiters };
        }
        SurfaceError::MountLease { mount: self.mount.name().clone(), error: Box::new(error) }
    }

    /// The epoch of the lease in force, if this principal has it.
    pub fn epoch_of(&self, principal: PrincipalId) -> Option<Epoch> {
        let desk = self.lock();
        let holding = desk.input.lease().view().holding?;
        (holding.by.principal == principal).then_some(holding.epoch)
    }

    /// The lease in force, if this caller has it.
    pub fn held_by(&self, caller: &Caller) -> Option<CallLease> {
        let epoch = self.epoch_of(caller.principal)?;
        let lease = self.lock().input.lease().id_of(caller)?;
        Some(CallLease { lease, epoch })
    }

    /// Whether it has, or had not long ago, this id.
    pub fn knows(&self, lease: LeaseId) -> bool {
        self.lock().input.lease().knows(lease)
    }

    /// Whether this caller made a call under this key before, be it another one.
    pub fn has_made(&self, caller: &Caller, key: &IdempotencyKey) -> bool {
        let made = self.change(|input, now| input.recall(now, caller, None, key));
        matches!(made, Ok(Some(_)) | Err(WriteError::KeyReused))
    }

    /// Asks for the lease, waiting in line as long as the request says. Dropping this gives the place up.
    ///
    /// # Errors
    /// Why there is none to be had.
    pub async fn acquire(
        &self,
        caller: &Caller,
        request: AcquireRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Grant, WriteError> {
        let (reply, granted) = oneshot::channel();
        let waiter = {
            let mut desk = self.lock();
            let acquired = desk.input.acquire(self.now(), caller, request, key);
            if let Ok(Acquired::Waiting(waiter)) = &acquired {
                desk.waiting.entry(*waiter).or_default().push(reply);
            }
            self.settle(&mut desk);
            match acquired? {
                Acquired::Granted(grant) => return Ok(grant),
                Acquired::Waiting(waiter) => waiter,
            }
        };
        let mut place = MountPlace { lease: self, waiter, granted: Some(granted) };
        place.granted().await
    }

    /// Prolongs the lease by name.
    ///
    /// # Errors
    /// Why the caller has none to renew.
    pub fn renew(
        &self,
        caller: &Caller,
        request: RenewRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Grant, WriteError> {
        self.change(|input, now| input.renew(now, caller, request, key))
    }

    /// Gives the lease back, or hands it on.
    ///
    /// # Errors
    /// Why the caller has none to release.
    pub fn release(
        &self,
        caller: &Caller,
        request: ReleaseRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Released, WriteError> {
        self.change(|input, now| input.release(now, caller, request, key))
    }

    /// Ends the lease in force, whoever has it. Returns whether anybody had.
    pub fn preempt(&self, by: PrincipalName) -> bool {
        self.change(|input, now| input.preempt(now, by))
    }

    /// The id of the lease that the command line holds.
    pub fn command_lines(&self) -> Option<LeaseId> {
        self.change(|input, now| {
            input.on_time(now);
            input.lease().command_lines()
        })
    }

    /// Notes that a connection closed.
    pub fn on_connection_closed(&self, connection: ConnectionId) {
        self.change(|input, now| input.on_connection_closed(now, connection));
    }

    /// Ends all that a principal has of the lease.
    pub fn end_right_of(&self, principal: PrincipalId) {
        self.change(|input, now| input.end_right_of(now, principal));
    }

    /// Ends all that these tenants have of the lease, for this cause.
    pub fn end_rights_of(&self, ends: impl Fn(&TenantId) -> bool, cause: &EndCause) {
        self.change(|input, now| input.end_rights_of(now, ends, cause));
    }

    /// Begins a call that needs the lease. The lease does not expire before the end of the call, and ends with it if it
    /// was taken for it.
    ///
    /// # Errors
    /// Why the caller may not.
    pub fn begin_call(
        self: &Arc<Self>,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<LeasedCall, WriteError> {
        let (grant, hold) = self.change(|input, now| {
            let act = input.allow(now, caller, presented, take)?;
            Ok::<_, WriteError>(input.commit_lasting(act))
        })?;
        let under = CallLease { lease: grant.lease, epoch: grant.epoch };
        Ok(LeasedCall { lease: Arc::clone(self), under, hold: Some(hold), has_done: false })
    }

    /// Finds out whether a caller may begin a call that needs the lease. Changes nothing.
    ///
    /// # Errors
    /// Why the caller may not.
    pub fn may_call(
        &self,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<(), WriteError> {
        self.change(|input, now| input.allow(now, caller, presented, take).map(drop))
    }

    /// Does what time does to the lease, until this is dropped.
    pub async fn keep_time(&self) {
        let clock = self.sessions.clock();
        loop {
            let deadline = self.lock().input.deadline();
            let due = async {
                match deadline {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.settled.notified() => {}
                () = due => self.change(Input::on_time),
            }
        }
    }

    fn now(&self) -> Moment {
        self.sessions.clock().now()
    }

    fn lock(&self) -> MutexGuard<'_, LeaseDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Input, Moment) -> T) -> T {
        let mut desk = self.lock();
        let changed = change(&mut desk.input, self.now());
        self.settle(&mut desk);
        changed
    }

    /// Closes the fence behind what has ended, and then tells everybody.
    fn settle(&self, desk: &mut LeaseDesk) {
        let before = desk.view.clone();
        loop {
            self.mount.fence().set(desk.input.lease().epoch());
            for event in desk.input.take_events() {
                match event {
                    InputEvent::Lease(event) => self.tell(event),
                    // Nothing is ever queued.
                    InputEvent::Discarded(_) => {}
                }
            }
            for (waiter, error) in desk.input.take_refusals() {
                desk.answer(waiter, &Err(error));
            }
            let mut passes_on = false;
            for (waiter, grant) in desk.input.take_grants() {
                if !desk.answer(waiter, &Ok(grant)) {
                    desk.input.on_undeliverable(self.now(), waiter);
                    passes_on = true;
                }
            }
            if !passes_on {
                break;
            }
        }
        desk.view = desk.input.lease().view();
        if desk.view != before {
            self.sessions.note_change();
        }
        self.settled.notify_one();
    }

    fn tell(&self, event: LeaseEvent) {
        let LeaseEvent { holder, epoch, change } = event.clone();
        let granted = change == LeaseChange::Granted;
        self.sessions.counters().leases_granted.add(u64::from(granted));
        let tenant = holder.tenant.clone();
        let scope = EventScope { tenant: &tenant, session: None };
        let mount = Some(self.mount.name().clone());
        self.sessions.tell_event_in(scope, Event::Lease { mount, holder, epoch, change });
        self.sessions.tell_lease(LeaseOf::Mount(self.mount.name().clone()), event);
    }
}

impl LeaseDesk {
    /// Answers those who wait here. Returns whether anybody was there.
    fn answer(&mut self, waiter: WaiterId, answer: &Result<Grant, WriteError>) -> bool {
        let replies = self.waiting.remove(&waiter).unwrap_or_default();
        replies.into_iter().filter(|reply| !reply.is_closed()).fold(false, |told, reply| {
            let sent = reply.send(answer.clone()).is_ok();
            told || sent
        })
    }
}

/// A place in the line for the lease, which is given up with the call that waits.
struct MountPlace<'a> {
    lease: &'a MountLease,
    waiter: WaiterId,
    /// `None` once it is answered.
    granted: Option<oneshot::Receiver<Result<Grant, WriteError>>>,
}

impl MountPlace<'_> {
    async fn granted(&mut self) -> Result<Grant, WriteError> {
        let Some(granted) = &mut self.granted else {
            return Err(LeaseError::WaitGivenUp.into());
        };
        let answer = granted.await;
        self.granted = None;
        answer.unwrap_or(Err(LeaseError::WaitGivenUp.into()))
    }
}

impl Drop for MountPlace<'_> {
    fn drop(&mut self) {
        let Some(granted) = self.granted.take() else { return };
        let (mut desk, now) = (self.lease.lock(), self.lease.now());
        drop(granted);
        match desk.waiting.get_mut(&self.waiter) {
            Some(replies) => {
                replies.retain(|reply| !reply.is_closed());
                if !replies.is_empty() {
                    return;
                }
                desk.waiting.remove(&self.waiter);
                desk.input.cancel_wait(now, self.waiter);
            }
            // It was granted the lease and did not hear of it.
            None => desk.input.on_undeliverable(now, self.waiter),
        }
        self.lease.settle(&mut desk);
    }
}

/// A call under a lease. The lease is let go of when this is dropped.
#[derive(Debug)]
pub struct LeasedCall {
    lease: Arc<MountLease>,
    under: CallLease,
    hold: Option<HoldToken>,
    has_done: bool,
}

impl LeasedCall {
    /// Notes that the server did what it was asked: that renews the lease, and a call that fails does not.
    pub fn done(&mut self) {
        self.has_done = true;
    }

    pub fn under(&self) -> CallLease {
        self.under
    }
}

impl Drop for LeasedCall {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.lease.change(|input, now| match self.has_done {
                true => input.let_go(now, hold),
                false => input.let_go_unused(now, hold),
            });
        }
    }
}
