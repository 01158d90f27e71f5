//! What people do at the keyboard: they type, take it over, and hand it back.
//!
//! As everywhere, the check, the bytes and the lease are one
//! method with nothing in between.

use std::collections::VecDeque;

use crate::core::caller::Caller;
use crate::core::ids::{LeaseId, PrincipalId, Watermark};
use crate::core::input::Input;
use crate::core::input::idempotency::earlier_writes::{FormerRecall, WriteStamp};
use crate::core::input::queue::NewWrite;
use crate::core::input::request::{Typing, WriteError, WriteId};
use crate::core::keys::Unit;
use crate::core::lease::request::Grant;
use crate::core::moment::Moment;

/// What people typed last that they may ask for again, when their connection broke.
#[derive(Debug, Default)]
pub(super) struct RecentlyTyped(VecDeque<WriteStamp>);

impl RecentlyTyped {
    /// How much of it is remembered: more than a person sends without having been answered.
    const KEPT_MAX: usize = 64;

    fn note(&mut self, stamp: WriteStamp) {
        if self.0.len() == Self::KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(stamp);
    }
}

/// What became of something that is to be typed, if it was asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedBefore {
    /// So many bytes of it are not to be typed again.
    Bytes(usize),
    /// It waits for the terminal; the completion of that write answers again.
    Waits(WriteId),
}

impl Input {
    /// What became of so many bytes that were to be typed under this stamp. Of what this daemon was
    /// asked to type nothing is typed again, of what one before was as far as the terminal took it.
    ///
    /// # Errors
    /// [`WriteError::KeyReused`] when something else was typed under the key.
    pub fn typed_before(
        &mut self,
        now: Moment,
        stamp: &WriteStamp,
        bytes: usize,
    ) -> Result<TypedBefore, WriteError> {
        self.judge(now);
        if let Some(write) = self.queue.await_again(stamp, now + Self::WRITE_ANSWER_AFTER) {
            return Ok(TypedBefore::Waits(write));
        }
        if self.typed.0.contains(stamp) {
            return Ok(TypedBefore::Bytes(bytes));
        }
        match self.former.recall(now, stamp) {
            FormerRecall::New => Ok(TypedBefore::Bytes(0)),
            FormerRecall::Made(write) => Ok(TypedBefore::Bytes(write.taken.min(bytes))),
            FormerRecall::Conflict => Err(WriteError::KeyReused),
        }
    }

    /// Checks that a person may type this now. [`Input::type_in`] in the same step succeeds.
    ///
    /// # Errors
    /// Why nothing may be typed.
    pub fn check_type_in(
        &mut self,
        now: Moment,
        caller: &Caller,
        unit: &Unit,
    ) -> Result<(), WriteError> {
        self.judge(now);
        self.check_open(now)?;
        self.lease.check_typing(now, caller)?;
        self.check_room(unit, self.lease.has_keyboard(caller))
    }

    /// Queues what a person types. The person gets the keyboard first if it does not have it: a
    /// lease in force is suspended, another person's plain typing ends, and what was queued before
    /// is discarded.
    ///
    /// The keyboard goes back when the person pauses for the limits' `person_idle`, counted from
    /// when the terminal has taken the last byte. A completion follows under the write's name.
    ///
    /// # Errors
    /// Why nothing is typed; nothing has changed then. [`LeaseError::Held`] when another person took
    /// the keyboard over.
    ///
    /// [`LeaseError::Held`]: crate::core::lease::error::LeaseError::Held
    pub fn type_in(
        &mut self,
        now: Moment,
        caller: &Caller,
        typing: Typing,
    ) -> Result<Grant, WriteError> {
        self.check_type_in(now, caller, &typing.unit)?;
        let grant = self.lease.type_in(now, caller, typing.fresh);
        self.cut_ended_epochs(now);
        let Typing { unit, write, stamp, fresh: _ } = typing;
        if let Some(stamp) = stamp {
            self.typed.note(stamp);
        }
        let until_taken = Some(self.lease.hold());
        let (epoch, own) = (grant.epoch, None);
        self.enqueue(now, caller.clone(), NewWrite { write, unit, epoch, until_taken, stamp, own });
        self.follow(now);
        Ok(grant)
    }

    /// Checks that a person may take over now. [`Input::take_over`] in the same step succeeds.
    ///
    /// # Errors
    /// Why nobody may write.
    pub fn check_take_over(&mut self, now: Moment) -> Result<(), WriteError> {
        self.judge(now);
        self.check_open(now)
    }

    /// Gives a person the keyboard until it hands it back, leaves, or presses no key for as long as
    /// the longest lease lasts. Other people may not type meanwhile, but take over in turn.
    ///
    /// # Errors
    /// Why nobody may write now; nothing has changed then.
    pub fn take_over(
        &mut self,
        now: Moment,
        caller: &Caller,
        fresh: LeaseId,
    ) -> Result<Grant, WriteError> {
        self.check_take_over(now)?;
        let grant = self.lease.take_over(now, caller, fresh);
        self.follow(now);
        Ok(grant)
    }

    /// Ends a person's time at the keyboard; says whether it had it. A suspended lease resumes, or
    /// the first who waits gets its own.
    pub fn hand_back(&mut self, now: Moment, caller: &Caller) -> bool {
        self.judge(now);
        let had = self.lease.hand_back(now, caller);
        self.follow(now);
        had
    }

    /// Notes that a person is no longer attached: what it has goes back at once.
    pub fn on_person_left(&mut self, now: Moment, person: PrincipalId) {
        self.judge(now);
        self.lease.on_person_left(now, person);
        self.follow(now);
    }

    /// Whether this person has the keyboard, so that the terminal may take the size of its view.
    pub fn has_keyboard(&mut self, now: Moment, caller: &Caller) -> bool {
        self.judge(now);
        self.lease.has_keyboard(caller)
    }

    /// Notes the watermark of the first frame that shows the lease after it resumed. Its holder
    /// writes again once it says that it has seen that frame or a later one.
    pub fn mark_resumed(&mut self, watermark: Watermark) {
        self.lease.mark_resumed(watermark);
    }
}
