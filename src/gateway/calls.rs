//! How often each tool was called, and how that ended.
//!
//! It knows tools by name and codes by value, and nothing of who called; so it is told to operators
//! alone.

use std::collections::HashMap;

use crate::core::code::Code;
use crate::session::counters::Counter;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Its caller cancelled it or hung up.
    GivenUp,
    Failed(Code),
}

impl Outcome {
    const COUNT: usize = 2 + Code::ALL.len();

    /// Every outcome, in the order of their places.
    fn all() -> impl Iterator<Item = Self> {
        [Self::Done, Self::GivenUp].into_iter().chain(Code::ALL.into_iter().map(Self::Failed))
    }

    fn place(self) -> usize {
        match self {
            Self::Done => 0,
            Self::GivenUp => 1,
            // In the order of their declaration, which is that of the list of all.
            Self::Failed(code) => 2 + code as usize,
        }
    }

    /// The word for it: `ok`, `given_up` or the error's code.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::GivenUp => "given_up",
            Self::Failed(code) => code.as_str(),
        }
    }
}

/// The calls of every tool there is.
#[derive(Debug)]
pub struct Calls(HashMap<&'static str, [Counter; Outcome::COUNT]>);

impl Calls {
    /// Nothing was called yet of these tools.
    pub fn of(tools: impl Iterator<Item = &'static str>) -> Self {
        Self(tools.map(|tool| (tool, std::array::from_fn(|_| Counter::default()))).collect())
    }

    /// Counts one call; a name that is no tool's is not counted.
    pub fn count(&self, tool: &str, outcome: Outcome) {
        if let Some(counters) = self.0.get(tool) {
            counters[outcome.place()].add(1);
        }
    }

    /// Each tool and outcome that occurred, and how often, in the order of the tools' names.
    pub fn told(&self) -> Vec<(&'static str, Outcome, u64)> {
        let mut told: Vec<_> =
            self.0.iter().flat_map(|(tool, counters)| of_tool(tool, counters)).collect();
        told.sort_by_key(|(tool, outcome, _)| (*tool, outcome.place()));
        told
    }
}

fn of_tool<'a>(
    tool: &'static str,
    counters: &'a [Counter; Outcome::COUNT],
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
