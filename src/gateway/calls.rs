//! Counts the calls of each tool by outcome.
//!
//! Callers are not recorded. Only operators can read the counts.

use std::collections::HashMap;

use crate::core::code::Code;
use crate::session::stats::EventCounter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The caller cancelled the call or hung up.
    GivenUp,
    Failed(Code),
}

impl Outcome {
    const COUNT: usize = 2 + Code::ALL.len();

    /// Every outcome, in index order.
    fn all() -> impl Iterator<Item = Self> {
        [Self::Done, Self::GivenUp].into_iter().chain(Code::ALL.into_iter().map(Self::Failed))
    }

    fn place(self) -> usize {
        match self {
            Self::Done => 0,
            Self::GivenUp => 1,
            // The order of declaration is the order of `Code::ALL`.
            Self::Failed(code) => 2 + code as usize,
        }
    }

    /// The outcome as text: `ok`, `given_up` or the error code.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::GivenUp => "given_up",
            Self::Failed(code) => code.as_str(),
        }
    }
}

#[derive(Debug)]
pub struct Calls(HashMap<&'static str, [EventCounter; Outcome::COUNT]>);

impl Calls {
    /// Starts all counts of these tools at zero.
    pub fn of(tools: impl Iterator<Item = &'static str>) -> Self {
        Self(tools.map(|tool| (tool, std::array::from_fn(|_| EventCounter::default()))).collect())
    }

    /// Counts one call; ignores unknown tools.
    pub fn count(&self, tool: &str, outcome: Outcome) {
        if let Some(counters) = self.0.get(tool) {
            counters[outcome.place()].add(1);
        }
    }

    /// Each tool and outcome that occurred, with its count, sorted by tool name.
    pub fn told(&self) -> Vec<(&'static str, Outcome, u64)> {
        let mut told: Vec<_> =
            self.0.iter().flat_map(|(tool, counters)| of_tool(tool, counters)).collect();
        told.sort_by_key(|(tool, outcome, _)| (*tool, outcome.place()));
        told
    }
}

fn of_tool<'a>(
    tool: &'static str,
    counters: &'a [EventCounter; Outcome::COUNT],
) -> impl Iterator<Item = (&'static str, Outcome, u64)> + 'a {
    let all =
        Outcome::all().zip(counters).map(move |(outcome, times)| (tool, outcome, times.get()));
    all.filter(|(_, _, times)| *times > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_place_of_its_own_in_order() {
        for (place, outcome) in Outcome::all().enumerate() {
            assert_eq!(outcome.place(), place, "{outcome:?}");
        }
        assert_eq!(Outcome::all().count(), Outcome::COUNT);
    }

    #[test]
    fn a_call_counts_for_its_tool_and_its_outcome_alone() {
        let calls = Calls::of(["why", "resize"].into_iter());
        calls.count("resize", Outcome::Failed(Code::LeaseHeld));
        calls.count("resize", Outcome::Failed(Code::LeaseHeld));
        calls.count("why", Outcome::Done);
        calls.count("no_tool", Outcome::Done);
        let expected = [("resize", Outcome::Failed(Code::LeaseHeld), 2), ("why", Outcome::Done, 1)];
        assert_eq!(calls.told(), expected);
    }
}
