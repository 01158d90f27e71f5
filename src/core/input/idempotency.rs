//! What calls with idempotency keys came to, so that asking again has no second effect.
//!
//! It knows nothing of what the calls do. Only calls that had an effect are remembered: one that was
//! refused may be tried again under its key.

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::ids::PrincipalId;
use crate::core::input::request::{CommandSent, IdempotencyKey};
use crate::core::moment::Moment;

/// What is known of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recall<F, R> {
    New,
    InFlight(F),
    Done(R),
    /// The key was used for a call with other arguments.
    Conflict,
}

/// Says that every remembered call of a principal, or of all principals, is still in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Clone, Debug)]
enum Stage<F, R> {
    InFlight(F),
    Done { result: R, at: Moment },
}

#[derive(Clone, Debug)]
struct Remembered<F, R> {
    key: IdempotencyKey,
    stage: Stage<F, R>,
    /// What it sent, where that was a command.
    command: Option<CommandSent>,
}

impl<F, R> Remembered<F, R> {
    fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::InFlight(_))
    }

    fn is_stale(&self, now: Moment, kept_for: Duration) -> bool {
        match &self.stage {
            Stage::InFlight(_) => false,
            Stage::Done { at, .. } => *at + kept_for <= now,
        }
    }
}

/// The calls of one principal, oldest first.
#[derive(Clone, Debug)]
struct Calls<F, R> {
    principal: PrincipalId,
    calls: VecDeque<Remembered<F, R>>,
}

/// The remembered calls of all principals; `F` names a call in flight, `R` is what one came to.
#[derive(Clone, Debug)]
pub(super) struct Replays<F, R> {
    /// The principal that was longest quiet comes first.
    principals: VecDeque<Calls<F, R>>,
}

// Derived, it would ask for defaults of F and R, which are not needed.
impl<F, R> Default for Replays<F, R> {
    fn default() -> Self {
        Self { principals: VecDeque::new() }
    }
}

impl<F: Copy + PartialEq, R: Clone> Replays<F, R> {
    /// How many calls of one principal are remembered.
    pub(super) const CALLS_MAX: usize = 64;
    /// How many principals are remembered.
    pub(super) const PRINCIPALS_MAX: usize = 64;
    /// How long a call is remembered after it was done.
    pub(super) const KEPT_FOR: Duration = Duration::from_secs(300);

    /// What is known of a call at this moment.
    pub(super) fn recall(
        &self,
        now: Moment,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Recall<F, R> {
        match self.known(now, principal, key) {
            None => Recall::New,
            Some(call) if call.key != *key => Recall::Conflict,
            Some(call) => match &call.stage {
                Stage::InFlight(flight) => Recall::InFlight(*flight),
                Stage::Done { result, .. } => Recall::Done(result.clone()),
            },
        }
    }

    /// The command that a call sent, as far as it is known at this moment.
    pub(super) fn command_of(
        &self,
        now: Moment,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Option<CommandSent> {
        self.known(now, principal, key)?.command
    }

    fn known(
        &self,
        now: Moment,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Option<&Remembered<F, R>> {
        let theirs = self.principals.iter().find(|calls| calls.principal == principal)?;
        let fresh = theirs.calls.iter().filter(|call| !call.is_stale(now, Self::KEPT_FOR));
        fresh.rev().find(|call| call.key.has_text_of(key))
    }

    /// Makes sure that one more call of this principal can be remembered; to be asked before the
    /// call has any effect.
    ///
    /// # Errors
    /// [`Full`] when nothing can be forgotten for it.
    pub(super) fn make_room(&mut self, now: Moment, principal: PrincipalId) -> Result<(), Full> {
        let index = self.principals.iter().position(|calls| calls.principal == principal);
        let mut theirs = match index.and_then(|index| self.principals.remove(index)) {
            Some(theirs) => theirs,
            None => {
                self.drop_quietest()?;
                Calls { principal, calls: VecDeque::new() }
            }
        };
        theirs.calls.retain(|call| !call.is_stale(now, Self::KEPT_FOR));
        let oldest = theirs.calls.iter().position(|call| !call.is_in_flight());
        let full = theirs.calls.len() >= Self::CALLS_MAX;
        if let (true, Some(oldest)) = (full, oldest) {
            theirs.calls.remove(oldest);
        }
        self.principals.push_back(theirs);
        if full && oldest.is_none() { Err(Full) } else { Ok(()) }
    }

    fn drop_quietest(&mut self) -> Result<(), Full> {
        if self.principals.len() < Self::PRINCIPALS_MAX {
            return Ok(());
        }
        let settled = |theirs: &Calls<F, R>| !theirs.calls.iter().any(Remembered::is_in_flight);
        let quietest = self.principals.iter().position(settled).ok_or(Full)?;
        self.principals.remove(quietest);
        Ok(())
    }

    /// Remembers a call that is on its way, after room was made for it.
    pub(super) fn begin(&mut self, principal: PrincipalId, key: IdempotencyKey, flight: F) {
        let stage = Stage::InFlight(flight);
        self.insert(principal, Remembered { key, stage, command: None });
    }

    /// Remembers a call that was done at once, after room was made for it.
    pub(super) fn remember(
        &mut self,
        now: Moment,
        principal: PrincipalId,
        key: IdempotencyKey,
        result: R,
    ) {
        let stage = Stage::Done { result, at: now };
        self.insert(principal, Remembered { key, stage, command: None });
    }

    fn insert(&mut self, principal: PrincipalId, call: Remembered<F, R>) {
        let theirs = self.principals.iter_mut().find(|calls| calls.principal == principal);
        if let Some(theirs) = theirs {
            theirs.calls.push_back(call);
        }
    }

    /// Notes which command a call in flight sends, if it is a remembered one.
    pub(super) fn note_command(&mut self, flight: F, command: CommandSent) {
        for call in self.principals.iter_mut().flat_map(|theirs| &mut theirs.calls) {
            if matches!(call.stage, Stage::InFlight(known) if known == flight) {
                call.command = Some(command);
            }
        }
    }

    /// Notes what a call in flight came to, if it is a remembered one.
    pub(super) fn finish(&mut self, now: Moment, flight: F, result: &R) {
        for call in self.principals.iter_mut().flat_map(|theirs| &mut theirs.calls) {
            if matches!(call.stage, Stage::InFlight(known) if known == flight) {
                call.stage = Stage::Done { result: result.clone(), at: now };
            }
        }
    }

    /// Forgets the calls that came to this, since it did not last.
    pub(super) fn forget_done(&mut self, is_void: impl Fn(&R) -> bool) {
        let is_void = |call: &Remembered<F, R>| match &call.stage {
            Stage::InFlight(_) => false,
            Stage::Done { result, .. } => is_void(result),
        };
        for theirs in &mut self.principals {
            theirs.calls.retain(|call| !is_void(call));
        }
    }

    /// Forgets a call in flight that came to nothing.
    pub(super) fn forget(&mut self, flight: F) {
        for theirs in &mut self.principals {
            theirs
                .calls
                .retain(|call| !matches!(call.stage, Stage::InFlight(known) if known == flight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Memory = Replays<u64, &'static str>;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn key(number: usize) -> IdempotencyKey {
        IdempotencyKey::new(&number.to_string(), 0).unwrap()
    }

    fn who(number: usize) -> PrincipalId {
        PrincipalId::Connection(number as u64)
    }

    fn with_one_done(principal: usize) -> Memory {
        let mut memory = Memory::default();
        memory.make_room(at(0), who(principal)).unwrap();
        memory.remember(at(0), who(principal), key(0), "done");
        memory
    }

    #[test]
    fn a_result_is_remembered_for_five_minutes_and_for_its_principal_alone() {
        let memory = with_one_done(1);
        assert_eq!(memory.recall(at(299), who(1), &key(0)), Recall::Done("done"));
        assert_eq!(memory.recall(at(300), who(1), &key(0)), Recall::New);
        assert_eq!(memory.recall(at(0), who(2), &key(0)), Recall::New);
    }

    #[test]
    fn a_call_in_flight_is_remembered_until_it_is_done_or_came_to_nothing() {
        let mut memory = Memory::default();
        memory.make_room(at(0), who(1)).unwrap();
        memory.begin(who(1), key(1), 7);
        memory.begin(who(1), key(2), 8);
        assert_eq!(memory.recall(at(9_999), who(1), &key(1)), Recall::InFlight(7));
        memory.finish(at(9_999), 7, &"done");
        memory.forget(8);
        assert_eq!(memory.recall(at(9_999), who(1), &key(1)), Recall::Done("done"));
        assert_eq!(memory.recall(at(9_999), who(1), &key(2)), Recall::New);
    }

    #[test]
    fn the_oldest_result_gives_way_when_a_principal_has_too_many() {
        let mut memory = with_one_done(1);
        for number in 1..=Memory::CALLS_MAX {
            memory.make_room(at(0), who(1)).unwrap();
            memory.remember(at(0), who(1), key(number), "done");
        }
        assert_eq!(memory.recall(at(0), who(1), &key(0)), Recall::New);
        assert_eq!(memory.recall(at(0), who(1), &key(1)), Recall::Done("done"));
    }

    #[test]
    fn calls_in_flight_never_give_way() {
        let mut memory = Memory::default();
        for number in 0..Memory::CALLS_MAX {
            memory.make_room(at(0), who(1)).unwrap();
            memory.begin(who(1), key(number), number as u64);
        }
        assert_eq!(memory.make_room(at(0), who(1)), Err(Full));
        assert_eq!(memory.recall(at(0), who(1), &key(0)), Recall::InFlight(0));
    }

    #[test]
    fn the_principal_that_was_longest_quiet_gives_way_when_there_are_too_many() {
        let mut memory = with_one_done(0);
        for number in 1..=Memory::PRINCIPALS_MAX {
            memory.make_room(at(0), who(number)).unwrap();
            memory.remember(at(0), who(number), key(0), "done");
        }
        assert_eq!(memory.recall(at(0), who(0), &key(0)), Recall::New);
        assert_eq!(memory.recall(at(0), who(1), &key(0)), Recall::Done("done"));
    }

    #[test]
    fn a_key_that_is_empty_or_too_long_is_none() {
        assert_eq!(IdempotencyKey::new("", 0), None);
        assert_eq!(IdempotencyKey::new(&"x".repeat(IdempotencyKey::LEN_MAX + 1), 0), None);
        assert!(IdempotencyKey::new(&"x".repeat(IdempotencyKey::LEN_MAX), 0).is_some());
    }
}
