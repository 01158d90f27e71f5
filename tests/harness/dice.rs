//! Chance that can be had again: set the variable to the number that a test printed.

use std::env;
use std::time::Duration;

use uuid::Uuid;

/// A small generator; each test has one.
#[derive(Debug)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    /// Starts with a seed from this environment variable, else with any, and prints it.
    pub(crate) fn told(variable: &str) -> Self {
        let given = env::var(variable).ok().map(|seed| seed.parse().unwrap());
        let state = given.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
        eprintln!("{variable}={state}");
        Self { state }
    }

    /// Starts with a seed.
    pub(crate) fn seeded(state: u64) -> Self {
        Self { state }
    }

    /// The seed that goes on from here.
    pub(crate) fn seed(&self) -> u64 {
        self.state
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A moment before `end`.
    pub(crate) fn moment(&mut self, end: Duration) -> Duration {
        let end = u64::try_from(end.as_micros()).unwrap();
        Duration::from_micros(self.below(end))
    }
}
