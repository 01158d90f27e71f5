//! Decides which input may pass, and remembers for the next daemon how much of each write was taken.

use crate::shim::bounded::Bounded;
use crate::shim::input::InputHeader;
use crate::shim::wire::RESULTS_MAX;
use crate::shim::wire::from_shim::WriteProgress;

/// How many writes of agents to remember, and how many of people. Two lists, so that neither displaces the
/// other.
const SHARE_MAX: usize = RESULTS_MAX / 2;

/// The bit in the first byte of a write's name that marks input of a person.
const PERSONS: u8 = 0x80;

/// The name of a write without a name.
const NAMELESS: [u8; 16] = [0; 16];

#[derive(Debug, Default)]
pub struct InputLog {
    epoch: u64,
    answered: u64,
    typed: u64,
    agents: Bounded<WriteProgress, SHARE_MAX>,
    people: Bounded<WriteProgress, SHARE_MAX>,
}

impl InputLog {
    /// Whether this input may pass. If so, it counts as taken. Afterwards, input with a lower epoch is refused.
    ///
    /// Input that needs no lease has epoch 0 and always passes.
    pub fn admits(&mut self, input: &InputHeader) -> bool {
        let passes = input.epoch == 0 || input.epoch >= self.epoch;
        self.epoch = self.epoch.max(input.epoch);
        if passes {
            self.on_taken(input);
        }
        passes
    }

    fn on_taken(&mut self, input: &InputHeader) {
        self.answered = self.answered.max(input.answered);
        if input.epoch != 0 {
            self.typed += u64::from(input.length);
        }
        if input.write == NAMELESS {
            return;
        }
        let bytes = u64::from(input.length);
        let of_person = input.write[0] & PERSONS != 0;
        let results = if of_person { &mut self.people } else { &mut self.agents };
        let known = results.as_mut_slice().iter_mut().find(|one| one.write == input.write);
        match known {
            Some(known) => known.bytes += bytes,
            None => results.push(WriteProgress { write: input.write, bytes }),
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// All queries in the output before this offset have been answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// How many bytes of input that needs a lease were taken in all.
    pub fn typed(&self) -> u64 {
        self.typed
    }

    /// The results of the last named writes: those of agents, then those of people, each oldest first.
    pub fn results(&self) -> Bounded<WriteProgress, RESULTS_MAX> {
        self.agents.as_slice().iter().chain(self.people.as_slice()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(epoch: u64, write: u8) -> InputHeader {
        InputHeader { length: 3, epoch, answered: 0, write: [write; 16] }
    }

    #[test]
    fn input_of_an_epoch_that_is_over_does_not_pass() {
        let mut ledger = InputLog::default();
        assert!(ledger.admits(&input(5, 0)));
        assert!(ledger.admits(&input(5, 0)));
        assert!(!ledger.admits(&input(4, 0)));
        assert!(ledger.admits(&input(6, 0)));
        assert!(!ledger.admits(&input(5, 0)));
        assert_eq!(ledger.epoch(), 6);
    }

    #[test]
    fn what_needs_no_lease_always_passes() {
        let mut ledger = InputLog::default();
        assert!(ledger.admits(&input(5, 0)));
        assert!(ledger.admits(&input(0, 0)));
        assert_eq!(ledger.epoch(), 5);
    }

    #[test]
    fn the_parts_of_one_write_are_counted_together() {
        let mut ledger = InputLog::default();
        ledger.admits(&input(1, 7));
        ledger.admits(&input(1, 0));
        ledger.admits(&InputHeader { length: 2, ..input(1, 7) });
        ledger.admits(&input(0, 8));
        let one = |write, bytes| WriteProgress { write: [write; 16], bytes };
        assert_eq!(ledger.results().as_slice(), [one(7, 5), one(8, 3)]);
    }

    #[test]
    fn only_what_needs_a_lease_and_passes_counts_as_typed() {
        let mut ledger = InputLog::default();
        for epoch in [5, 0, 4, 6] {
            ledger.admits(&input(epoch, 0));
        }
        assert_eq!(ledger.typed(), 6);
    }

    #[test]
    fn what_does_not_pass_is_not_counted() {
        let mut ledger = InputLog::default();
        ledger.admits(&input(5, 0));
        assert!(!ledger.admits(&InputHeader { answered: 9, ..input(4, 7) }));
        assert_eq!((ledger.results().as_slice().len(), ledger.answered()), (0, 0));
    }

    #[test]
    fn the_oldest_result_of_the_same_kind_goes_first() {
        let mut ledger = InputLog::default();
        ledger.admits(&input(1, 1));
        for write in PERSONS..=PERSONS + SHARE_MAX as u8 {
            ledger.admits(&input(1, write));
        }
        let results = ledger.results();
        let names: Vec<_> = results.as_slice().iter().map(|one| one.write[0]).collect();
        assert_eq!(names.len(), 1 + SHARE_MAX);
        assert_eq!((names[0], names[1]), (1, PERSONS + 1));
        for write in 2..=SHARE_MAX as u8 + 1 {
            ledger.admits(&input(1, write));
        }
        let results = ledger.results();
        assert_eq!(results.as_slice().len(), RESULTS_MAX);
        assert_eq!(results.as_slice()[0].write[0], 2);
    }

    #[test]
    fn as_many_writes_of_agents_are_known_as_a_daemon_knows_itself() {
        let mut ledger = InputLog::default();
        for write in 1..=64 {
            ledger.admits(&input(1, write));
        }
        for write in PERSONS..=PERSONS + 64 {
            ledger.admits(&input(1, write));
        }
        let results = ledger.results();
        let names: Vec<_> = results.as_slice().iter().map(|one| one.write[0]).collect();
        assert!(names.starts_with(&(1..=64).collect::<Vec<_>>()), "{names:?}");
    }

    #[test]
    fn the_farthest_answer_counts() {
        let mut ledger = InputLog::default();
        ledger.admits(&InputHeader { answered: 50, ..input(0, 0) });
        ledger.admits(&InputHeader { answered: 0, ..input(1, 0) });
        assert_eq!(ledger.answered(), 50);
    }
}
