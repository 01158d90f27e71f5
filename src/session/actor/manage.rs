//! Everything else a session is asked: its lease, its size, its end.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use crate::core::frame::Size;
use crate::core::input::error::WriteError;
use crate::core::lease::request::{Acquired, TakeRule};
use crate::session::actor::Actor;
use crate::session::command::{Acquire, Act, Manage, Release, Renew, Resize};
use crate::session::error::SessionError;
use crate::session::off_worker::{is_large, while_others_go_on};
use crate::session::pty::Pty;
use crate::session::pty::kill::KillError;

/// How long the end of a program is waited for once all its processes are gone.
pub(super) const END_TOLD_MAX: Duration = Duration::from_secs(2);

impl<P: Pty> Actor<P> {
    pub(super) fn on_acquire(&mut self, ask: Acquire) {
        let Acquire { caller, request, key, accepted, reply, seat } = ask;
        match self.input.acquire(self.clock.now(), &caller, request, key) {
            Ok(Acquired::Granted(grant)) => {
                self.settle();
                let _ = reply.send(Ok(grant));
            }
            Ok(Acquired::Waiting(waiter)) => {
                self.reserve.waiter = self.reserve.waiter.max(waiter);
                self.waiting.entry(waiter).or_default().push(reply);
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
        drop(accepted);
    }

    /// Answers those who waited for the lease.
    pub(super) fn answer_waiters(&mut self) {
        for (waiter, grant) in self.input.take_grants() {
            let replies = self.waiting.remove(&waiter).unwrap_or_default();
            let mut delivered = false;
            for reply in replies {
                delivered |= reply.send(Ok(grant.clone())).is_ok();
            }
            if !delivered {
                self.input.on_undeliverable(self.clock.now(), waiter);
            }
        }
        for (waiter, error) in self.input.take_refusals() {
            for reply in self.waiting.remove(&waiter).unwrap_or_default() {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }

    pub(super) fn on_renew(&mut self, ask: Renew) {
        let Renew { caller, request, key, accepted, reply } = ask;
        let renewed = self.input.renew(self.clock.now(), &caller, request, key);
        self.settle();
        let _ = reply.send(renewed.map_err(SessionError::from));
        drop(accepted);
    }

    pub(super) fn on_release(&mut self, ask: Release) {
        let Release { caller, request, key, accepted, reply } = ask;
        let released = self.input.release(self.clock.now(), &caller, request, key);
        self.settle();
        let _ = reply.send(released.map_err(SessionError::from));
        drop(accepted);
    }

    pub(super) fn on_resize(&mut self, ask: Resize) {
        let Resize { caller, presented, take, size, accepted, reply } = ask;
        let allowed = self.input.allow(self.clock.now(), &caller, presented, take);
        let resized = allowed.map_err(SessionError::from).and_then(|act| {
            // What the terminal refuses renews no lease and takes none.
            self.resize(size)?;
            self.input.commit_act(act);
            Ok(())
        });
        self.settle();
        let watermark = self.frames.borrow().watermark;
        let _ = reply.send(resized.map(|()| watermark));
        drop(accepted);
    }

    /// The terminal first, so that a size which it does not take is on no screen. What the program paints for
    /// a new one is read after this, and finds it.
    pub(super) fn resize(&mut self, size: Size) -> Result<(), SessionError> {
        if self.frames.borrow().size.value != size {
            self.pty.resize(size).map_err(|error| {
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
        self.dirty = true;
        self.publish_output();
        self.remember_stillness();
    }

    pub(super) fn on_manage(&mut self, ask: Manage) {
        let Manage { caller, act, fresh, over_any_lease, accepted, reply } = ask;
        if !over_any_lease && let Err(error) = self.check_manage(&caller, fresh) {
            self.remember_lease();
            let _ = reply.send(Err(error));
            return;
        }
        let done = match act {
            Act::Check => Ok(()),
            Act::Signal(signal) => {
                self.outlets.live.set_interrupted_at(self.clock.now());
                self.pty.signal(signal).map_err(SessionError::from)
            }
            Act::ClearHistory => {
                self.screen.clear_history();
                self.checkpoint_now(false);
                self.dirty = true;
                self.publish_output();
                Ok(())
            }
            Act::Kill => {
                // What was left behind by a program that has ended goes with its session.
                self.removing |= self.exit.is_some();
                self.end_processes();
                self.killers.push(reply);
                return;
            }
        };
        self.settle();
        let _ = reply.send(done);
        drop(accepted);
    }

    /// Whoever manages a session needs its lease when somebody holds it, but none when it is free.
    fn check_manage(
        &mut self,
        caller: &crate::core::caller::Caller,
        fresh: crate::core::ids::LeaseId,
    ) -> Result<(), SessionError> {
        let take = TakeRule::ForThisCall(fresh);
        match self.input.allow(self.clock.now(), caller, None, take) {
            // What has ended can still be cleared and removed by whoever may write.
            Ok(_) | Err(WriteError::SessionEnded) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins to end everything in the terminal, unless that was begun.
    pub(super) fn end_processes(&mut self) {
        let pty = Arc::clone(&self.pty);
        if self.killing.is_none() {
            self.killing = Some(Box::pin(async move { pty.kill().await }));
        }
    }

    pub(super) fn on_killed(&mut self, killed: Result<(), KillError>) {
        self.killing = None;
        let problem = killed.err().map(|error| error.to_string());
        if self.removing {
            self.remove_at = Some(self.clock.now());
        }
        // Whoever killed the session finds it ended, so a success is answered after its end is told,
        // unless nobody tells it.
        if problem.is_some() || self.exit.is_some() {
            self.answer_killers(problem.as_deref());
        } else {
            self.killers_until = Some(self.clock.now() + END_TOLD_MAX);
        }
    }

    /// Answers those who killed a session whose end nobody tells.
    pub(super) fn answer_patient_killers(&mut self) {
        if self.killers_until.is_some_and(|until| until <= self.clock.now()) {
            self.answer_killers(None);
        }
    }

    pub(super) fn answer_killers(&mut self, problem: Option<&str>) {
        self.killers_until = None;
        for reply in self.killers.drain(..) {
            let answer = match problem {
                None => Ok(()),
                Some(problem) => {
                    Err(SessionError::Terminal(std::io::Error::other(problem.to_owned())))
                }
            };
            let _ = reply.send(answer);
        }
    }
}
