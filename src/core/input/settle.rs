//! What follows from what has happened: bytes of ended epochs are cut, writes are answered, and
//! everybody concerned is told.

use std::collections::VecDeque;

use crate::core::ids::{Epoch, PrincipalId};
use crate::core::input::idempotency::memory::CallStage;
use crate::core::input::queue::{Awaited, Queued};
use crate::core::input::request::{
    Completion, DiscardCause, Discarded, InputEvent, Warning, WriteError, WriteId, WriteOutcome,
};
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::moment::Moment;

impl Input {
    /// Does what time has done by now, at the moment of a check.
    pub(super) fn judge(&mut self, now: Moment) {
        self.step += 1;
        if !self.window.is_open(now) {
            let closed_at = self.window.closes_at().unwrap_or(now).min(now);
            self.pass_time(closed_at);
            self.window = WriteWindow::Closed;
            self.lease.end_all(closed_at, EndCause::WritingSwitchedOff);
        }
        self.pass_time(now);
        self.follow(now);
    }

    fn pass_time(&mut self, now: Moment) {
        // Writes come first, so that they keep a lease alive no longer than they are waited for.
        self.answer_overdue(now);
        self.lease.on_time(now);
    }

    pub(super) fn follow(&mut self, now: Moment) {
        self.take_from_lease(now);
        self.cut_ended_epochs(now);
        self.finish_done(now);
        self.lease.drop_spent();
        if !self.queue.has_writes_of(self.lease.epoch()) {
            self.lease.give_back(now);
        }
        self.take_from_lease(now);
    }

    fn take_from_lease(&mut self, now: Moment) {
        self.events.extend(self.lease.take_events().into_iter().map(InputEvent::Lease));
        for (waiter, grant) in self.lease.take_grants() {
            let granted = CallStage::Granted(grant.clone());
            self.calls.finish(now, &CallStage::Waiting(waiter), &granted);
            self.grants.push((waiter, grant));
        }
        for (waiter, error) in self.lease.take_refusals() {
            self.calls.forget(|stage| *stage == CallStage::Waiting(waiter));
            self.refusals.push((waiter, refusal(error)));
        }
    }

    /// Discards what was queued under a lease that is no longer in force.
    pub(super) fn cut_ended_epochs(&mut self, now: Moment) {
        let in_force = self.lease.epoch();
        let over = |epoch| Some(epoch) != in_force;
        let cause = match self.lease.is_persons() {
            true => DiscardCause::PersonTyped,
            false => DiscardCause::LeaseEnded,
        };
        self.cut(now, over, cause);
    }

    /// Cuts the writes of these epochs short, and tells those writers who have had their answer.
    pub(super) fn cut(&mut self, now: Moment, ends: impl Fn(Epoch) -> bool, cause: DiscardCause) {
        let (events, warnings, lease) = (&mut self.events, &mut self.warnings, &mut self.lease);
        self.queue.cut(ends, |queued, bytes| {
            // What was cut no longer keeps its lease alive.
            queued.take_holds().for_each(|hold| lease.let_go(now, hold));
            if bytes > 0 && queued.awaited.is_none() {
                let (writer, write) = (queued.writer.clone(), queued.write);
                warnings.add(writer.principal, bytes, cause);
                events.push(InputEvent::Discarded(Discarded { writer, write, bytes, cause }));
            }
        });
    }

    pub(super) fn finish_done(&mut self, now: Moment) {
        while let Some(queued) = self.queue.take_done() {
            self.complete(now, queued);
        }
    }

    fn answer_overdue(&mut self, now: Moment) {
        let overdue = self.queue.take_overdue(now);
        for (write, outcome, awaited) in overdue {
            self.tell_outcome(now, write, outcome, awaited);
        }
    }

    fn complete(&mut self, now: Moment, queued: Queued) {
        let outcome = queued.outcome();
        if let Some(awaited) = queued.awaited {
            self.tell_outcome(now, queued.write, outcome, awaited);
        }
        if let Some(hold) = queued.until_taken {
            self.lease.let_go(now, hold);
        }
    }

    fn tell_outcome(
        &mut self,
        now: Moment,
        write: WriteId,
        outcome: WriteOutcome,
        awaited: Awaited,
    ) {
        self.completions.push_back(Completion { write, outcome });
        self.calls.finish(now, &CallStage::Writing(write), &CallStage::Written(outcome));
        if let Some(hold) = awaited.hold {
            self.lease.let_go(now.min(awaited.until), hold);
        }
    }

    /// Discards all that is queued, even the rest of a key or a character.
    pub(super) fn discard_everything(&mut self, now: Moment) {
        self.cut(now, |_| true, DiscardCause::SessionEnded);
        for mut queued in self.queue.take_all() {
            queued.discarded += queued.progress.drop_rest();
            self.complete(now, queued);
        }
    }
}

fn refusal(error: LeaseError) -> WriteError {
    if let LeaseError::Lost { cause: EndCause::WritingSwitchedOff } = error {
        return WriteError::ReadOnly;
    }
    if let LeaseError::Lost { cause: EndCause::SessionEnded } = error {
        return WriteError::SessionEnded;
    }
    WriteError::Lease(error)
}

/// The warnings not told yet, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings {
    untold: VecDeque<(PrincipalId, Warning)>,
}

impl Warnings {
    /// For how many principals warnings are kept; the oldest give way.
    pub(super) const PRINCIPALS_MAX: usize = 64;

    pub(super) fn add(&mut self, principal: PrincipalId, bytes: usize, cause: DiscardCause) {
        let before = self.take(principal).map_or(0, |warning| warning.discarded);
        if self.untold.len() == Self::PRINCIPALS_MAX {
            self.untold.pop_front();
        }
        self.untold.push_back((principal, Warning { discarded: before + bytes, cause }));
    }

    pub(super) fn take(&mut self, principal: PrincipalId) -> Option<Warning> {
        let index = self.untold.iter().position(|(of, _)| *of == principal)?;
        self.untold.remove(index).map(|(_, warning)| warning)
    }
}
