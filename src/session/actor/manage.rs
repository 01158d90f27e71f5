//! Everything else a session is asked: its lease and its size.

use std::io::ErrorKind;

use tokio::sync::oneshot;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{LeaseId, Watermark};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::WriteError;
use crate::core::lease::request::{AcquireRequest, Acquired, Grant, TakeRule, WaiterId};
use crate::core::policy::bound::PermitBound;
use crate::session::actor::Actor;
use crate::session::command::{Act, ManageOrder, Reply, ResizeOrder};
use crate::session::error::SessionError;
use crate::session::off_worker::{is_large, while_others_go_on};
use crate::session::pty::Pty;

impl<P: Pty> Actor<P> {
    pub(super) fn on_acquire(
        &mut self,
        caller: &Caller,
        (request, key): (AcquireRequest, Option<IdempotencyKey>),
        seat: oneshot::Sender<WaiterId>,
        reply: Reply<Grant>,
    ) {
        match self.input.acquire(self.clock.now(), caller, request, key) {
            Ok(Acquired::Granted(grant)) => {
                self.settle();
                let _ = reply.send(Ok(grant));
            }
            Ok(Acquired::Waiting(waiter)) => {
                self.reserve.waiter = self.reserve.waiter.max(waiter);
                self.callers.wait(waiter, reply);
                if seat.send(waiter).is_err() {
                    self.give_up_waiting(waiter);
                }
                self.settle();
            }
            Err(error) => {
                self.settle();
                let _ = reply.send(Err(error.into()));
            }
        }
    }

    pub(super) fn on_resize(&mut self, order: ResizeOrder, reply: Reply<Watermark>) {
        let ResizeOrder { caller, presented, take, size, dry_run } = order;
        let allowed = self.input.allow(self.clock.now(), &caller, presented, take);
        let resized = allowed.map_err(SessionError::from).and_then(|act| {
            if dry_run {
                return Ok(());
            }
            // What the terminal refuses renews no lease and takes none.
            self.resize(size)?;
            self.input.commit_act(act);
            Ok(())
        });
        self.settle();
        let watermark = self.frames.borrow().watermark;
        let _ = reply.send(resized.map(|()| watermark));
    }

    /// The terminal first, so that a size which it does not take is on no screen. What the program paints for
    /// a new one is read after this, and finds it.
    pub(super) fn resize(&mut self, size: Size) -> Result<(), SessionError> {
        if self.frames.borrow().size.value != size {
            self.pty.resize(size).map_err(|error| {
                // It may have taken the size and failed after that. One that is silent gets its size back once
                // it answers.
                let _ = self.pty.resize(self.size);
                let silent = error.kind() == ErrorKind::TimedOut;
                if silent { SessionError::Silent } else { error.into() }
            })?;
            self.size = size;
            // This step began with another size, which may have been a small one.
            match is_large(size) {
                true => while_others_go_on(|| self.wrap_to(size)),
                false => self.wrap_to(size),
            }
        }
        Ok(())
    }

    /// Wraps the screen and its history to the size that the terminal has by now.
    fn wrap_to(&mut self, size: Size) {
        self.screen.resize(size);
        self.checkpoint_now(false);
        self.remember_size(size);
        self.pace.dirty = true;
        self.publish_output();
        self.remember_stillness();
    }

    pub(super) fn on_manage(&mut self, order: ManageOrder, reply: Reply<()>) {
        let ManageOrder { caller, act, fresh, over_any_lease, bound } = order;
        let is_unshared = || self.outlets.live.users().nobody_but(caller.principal);
        if bound == Some(PermitBound::Unshared) && !is_unshared() {
            let _ = reply.send(Err(SessionError::Stale));
            return;
        }
        if !over_any_lease && let Err(error) = self.check_manage(&caller, fresh) {
            self.remember_lease();
            let _ = reply.send(Err(error));
            return;
        }
        let done = match act {
            Act::Check => Ok(()),
            Act::Signal(signal) => {
                self.shell.on_signal(self.clock.now());
                self.pty.signal(signal).map_err(SessionError::from)
            }
            Act::ClearHistory => {
                self.screen.clear_history();
                self.checkpoint_now(false);
                self.pace.dirty = true;
                self.publish_output();
                Ok(())
            }
            Act::Kill => return self.kill_for(reply),
        };
        self.settle();
        let _ = reply.send(done);
    }

    /// Whoever manages a session needs its lease when somebody holds it, but none when it is free.
    fn check_manage(&mut self, caller: &Caller, fresh: LeaseId) -> Result<(), SessionError> {
        let take = TakeRule::ForThisCall(fresh);
        match self.input.allow(self.clock.now(), caller, None, take) {
            // What has ended can still be cleared and removed by whoever may write.
            Ok(_) | Err(WriteError::SessionEnded) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
