//! What this daemon's calls with idempotency keys came to.
//!
//! Only calls that had an effect are remembered: one that was
//! refused may be tried again under its key.

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::ids::PrincipalId;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::{CommandSent, WriteError, WriteId, WriteOutcome};
use crate::core::lease::request::{Grant, Released, WaiterId};
use crate::core::moment::Moment;

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::core::input) enum CallStage {
    Writing(WriteId),
    Waiting(WaiterId),
    Written(WriteOutcome),
    Granted(Grant),
    Released(Released),
}

/// A call that is remembered.
#[derive(Debug)]
pub(in crate::core::input) struct KeyedCall {
    key: IdempotencyKey,
    pub stage: CallStage,
    /// None while it is in flight.
    done_at: Option<Moment>,
    /// What it sent, where that was a command.
    pub command: Option<CommandSent>,
}

impl KeyedCall {
    fn is_stale(&self, now: Moment) -> bool {
        self.done_at.is_some_and(|at| at + KeyedCalls::KEPT_FOR <= now)
    }
}

/// The calls of one principal, oldest first.
#[derive(Debug)]
struct CallsOfPrincipal {
    principal: PrincipalId,
    calls: VecDeque<KeyedCall>,
}

/// The remembered calls of all principals.
#[derive(Debug, Default)]
pub(in crate::core::input) struct KeyedCalls {
    /// The principal that was longest quiet comes first.
    principals: VecDeque<CallsOfPrincipal>,
}

impl KeyedCalls {
    const CALLS_MAX: usize = 64;
    const PRINCIPALS_MAX: usize = 64;
    /// How long a call is remembered after it was done.
    pub(in crate::core::input) const KEPT_FOR: Duration = Duration::from_secs(300);

    /// What is known of a call at this moment.
    ///
    /// # Errors
    /// [`WriteError::KeyReused`] when the key was used for a call with other arguments.
    pub(in crate::core::input) fn recall(
        &self,
        now: Moment,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<Option<&KeyedCall>, WriteError> {
        let theirs = self.principals.iter().find(|theirs| theirs.principal == principal);
        let mut fresh = theirs
            .into_iter()
            .flat_map(|theirs| theirs.calls.iter().rev().filter(|call| !call.is_stale(now)));
        match fresh.find(|call| call.key.has_text_of(key)) {
            Some(call) if !call.key.is_of_call(key) => Err(WriteError::KeyReused),
            known => Ok(known),
        }
    }

    /// Makes sure that one more call of this principal can be remembered; to be asked before the
    /// call has any effect.
    ///
    /// # Errors
    /// [`WriteError::TooManyInFlight`] when nothing can be forgotten for it.
    pub(in crate::core::input) fn make_room(
        &mut self,
        now: Moment,
        principal: PrincipalId,
    ) -> Result<(), WriteError> {
        let index = self.principals.iter().position(|theirs| theirs.principal == principal);
        let mut theirs = match index.and_then(|index| self.principals.remove(index)) {
            Some(theirs) => theirs,
            None => {
                self.drop_quietest()?;
                CallsOfPrincipal { principal, calls: VecDeque::new() }
            }
        };
        theirs.calls.retain(|call| !call.is_stale(now));
        let oldest = theirs.calls.iter().position(|call| call.done_at.is_some());
        let full = theirs.calls.len() >= Self::CALLS_MAX;
        if let (true, Some(oldest)) = (full, oldest) {
            theirs.calls.remove(oldest);
        }
        self.principals.push_back(theirs);
        if full && oldest.is_none() { Err(WriteError::TooManyInFlight) } else { Ok(()) }
    }

    fn drop_quietest(&mut self) -> Result<(), WriteError> {
        if self.principals.len() < Self::PRINCIPALS_MAX {
            return Ok(());
        }
        let settled =
            |theirs: &CallsOfPrincipal| theirs.calls.iter().all(|call| call.done_at.is_some());
        let quietest = self.principals.iter().position(settled);
        self.principals.remove(quietest.ok_or(WriteError::TooManyInFlight)?);
        Ok(())
    }

    /// Remembers a call, after room was made for it; `done_at` is none for one in flight.
    pub(in crate::core::input) fn insert(
        &mut self,
        principal: PrincipalId,
        key: IdempotencyKey,
        stage: CallStage,
        done_at: Option<Moment>,
    ) {
        let theirs = self.principals.iter_mut().find(|theirs| theirs.principal == principal);
        if let Some(theirs) = theirs {
            theirs.calls.push_back(KeyedCall { key, stage, done_at, command: None });
        }
    }

    /// Notes which command a write in flight sends, if it is a remembered one.
    pub(in crate::core::input) fn note_command(&mut self, write: WriteId, command: CommandSent) {
        for call in self.calls_at(&CallStage::Writing(write)) {
            call.command = Some(command);
        }
    }

    /// Notes what a call in flight came to, if it is a remembered one.
    pub(in crate::core::input) fn finish(
        &mut self,
        now: Moment,
        flight: &CallStage,
        result: &CallStage,
    ) {
        for call in self.calls_at(flight) {
            (call.stage, call.done_at) = (result.clone(), Some(now));
        }
    }

    fn calls_at(&mut self, stage: &CallStage) -> impl Iterator<Item = &mut KeyedCall> {
        let all = self.principals.iter_mut().flat_map(|theirs| &mut theirs.calls);
        all.filter(move |call| call.stage == *stage)
    }

    /// Forgets the calls that are no further than this, since it came to nothing.
    pub(in crate::core::input) fn forget(&mut self, is_void: impl Fn(&CallStage) -> bool) {
        for theirs in &mut self.principals {
            theirs.calls.retain(|call| !is_void(&call.stage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn key(number: usize) -> IdempotencyKey {
        IdempotencyKey::new(&number.to_string(), 0).unwrap()
    }

    fn who(number: usize) -> PrincipalId {
        PrincipalId::Connection(number as u64)
    }

    fn writing(number: u64) -> CallStage {
        CallStage::Writing(WriteId(number))
    }

    fn done() -> CallStage {
        CallStage::Written(WriteOutcome::default())
    }

    fn stage(
        memory: &KeyedCalls,
        now: Moment,
        principal: PrincipalId,
        key: IdempotencyKey,
    ) -> Option<CallStage> {
        memory.recall(now, principal, &key).unwrap().map(|call| call.stage.clone())
    }

    fn with_one_done(principal: usize) -> KeyedCalls {
        let mut memory = KeyedCalls::default();
        memory.make_room(at(0), who(principal)).unwrap();
        memory.insert(who(principal), key(0), done(), Some(at(0)));
        memory
    }

    #[test]
    fn a_result_is_remembered_for_five_minutes_and_for_its_principal_alone() {
        let memory = with_one_done(1);
        assert_eq!(stage(&memory, at(299), who(1), key(0)), Some(done()));
        assert_eq!(stage(&memory, at(300), who(1), key(0)), None);
        assert_eq!(stage(&memory, at(0), who(2), key(0)), None);
    }

    #[test]
    fn a_call_in_flight_is_remembered_until_it_is_done_or_came_to_nothing() {
        let mut memory = KeyedCalls::default();
        memory.make_room(at(0), who(1)).unwrap();
        memory.insert(who(1), key(1), writing(7), None);
        memory.insert(who(1), key(2), writing(8), None);
        assert_eq!(stage(&memory, at(9_999), who(1), key(1)), Some(writing(7)));
        memory.finish(at(9_999), &writing(7), &done());
        memory.forget(|stage| *stage == writing(8));
        assert_eq!(stage(&memory, at(9_999), who(1), key(1)), Some(done()));
        assert_eq!(stage(&memory, at(9_999), who(1), key(2)), None);
    }

    #[test]
    fn the_oldest_result_gives_way_when_a_principal_has_too_many() {
        let mut memory = with_one_done(1);
        for number in 1..=KeyedCalls::CALLS_MAX {
            memory.make_room(at(0), who(1)).unwrap();
            memory.insert(who(1), key(number), done(), Some(at(0)));
        }
        assert_eq!(stage(&memory, at(0), who(1), key(0)), None);
        assert_eq!(stage(&memory, at(0), who(1), key(1)), Some(done()));
    }

    #[test]
    fn calls_in_flight_never_give_way() {
        let mut memory = KeyedCalls::default();
        for number in 0..KeyedCalls::CALLS_MAX {
            memory.make_room(at(0), who(1)).unwrap();
            memory.insert(who(1), key(number), writing(number as u64), None);
        }
        assert_eq!(memory.make_room(at(0), who(1)), Err(WriteError::TooManyInFlight));
        assert_eq!(stage(&memory, at(0), who(1), key(0)), Some(writing(0)));
    }

    #[test]
    fn the_principal_that_was_longest_quiet_gives_way_when_there_are_too_many() {
        let mut memory = with_one_done(0);
        for number in 1..=KeyedCalls::PRINCIPALS_MAX {
            memory.make_room(at(0), who(number)).unwrap();
            memory.insert(who(number), key(0), done(), Some(at(0)));
        }
        assert_eq!(stage(&memory, at(0), who(0), key(0)), None);
        assert_eq!(stage(&memory, at(0), who(1), key(0)), Some(done()));
    }

    #[test]
    fn a_key_that_is_empty_or_too_long_is_none() {
        assert_eq!(IdempotencyKey::new("", 0), None);
        assert_eq!(IdempotencyKey::new(&"x".repeat(IdempotencyKey::LEN_MAX + 1), 0), None);
        assert!(IdempotencyKey::new(&"x".repeat(IdempotencyKey::LEN_MAX), 0).is_some());
    }
}
