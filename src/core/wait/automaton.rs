//! A regular expression as an automaton, and a search with a counted number of steps.
//!
//! The search follows all paths in parallel. So its time is at most text times automaton, its memory
//! is known in advance, and it can pause and resume at any byte.

mod cost;

use std::ops::Range;
use std::sync::Arc;

use regex_automata::nfa::thompson::{BuildError, Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::ast::parse::Parser;
use regex_syntax::hir::translate::Translator;

use crate::core::wait::PatternError;
use crate::core::wait::automaton::cost::cost;

#[derive(Debug)]
pub(super) struct Automaton {
    nfa: NFA,
    /// The bytes that can start a match; none when a match may be empty.
    first: Option<Box<[bool; 256]>>,
}

impl Automaton {
    /// The highest cost of compiling. The worst expression below it takes about ten milliseconds and
    /// five megabytes.
    const COST_MAX: usize = 1 << 15;
    const BYTES_MAX: usize = 1 << 20;

    /// Compiles an expression unless it costs too much, which is counted before.
    pub(super) fn compile(expression: &str) -> Result<Self, PatternError> {
        let ast = Parser::new().parse(expression);
        let ast = ast.map_err(|error| PatternError::Invalid { message: error.to_string() })?;
        if cost(&ast) > Self::COST_MAX {
            return Err(PatternError::TooCostly);
        }
        let hir = Translator::new().translate(expression, &ast);
        let hir = hir.map_err(|error| PatternError::Invalid { message: error.to_string() })?;
        let config =
            Config::new().nfa_size_limit(Some(Self::BYTES_MAX)).which_captures(WhichCaptures::None);
        let refusal = |error: BuildError| match error.size_limit() {
            Some(_) => PatternError::TooCostly,
            None => PatternError::Invalid { message: error.to_string() },
        };
        let nfa = Compiler::new().configure(config).build_from_hir(&hir).map_err(refusal)?;
        let first = first_bytes(&nfa);
        Ok(Self { nfa, first })
    }

    pub(super) fn bytes(&self) -> usize {
        self.nfa.memory_usage() + size_of::<[bool; 256]>()
    }

    pub(super) fn search_bytes(&self) -> usize {
        // Two sets of three numbers for each state, and a stack of states.
        self.nfa.states().len() * 7 * size_of::<u32>()
    }

    fn may_begin_with(&self, byte: Option<&u8>) -> bool {
        let Some(first) = &self.first else { return true };
        byte.is_some_and(|byte| first[usize::from(*byte)])
    }
}

/// The bytes that can start a match, unless it may be empty. Assertions count as true.
fn first_bytes(nfa: &NFA) -> Option<Box<[bool; 256]>> {
    let mut first = Box::new([false; 256]);
    let mut seen = vec![false; nfa.states().len()];
    let mut open = vec![nfa.start_anchored()];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.as_usize()], true) {
            continue;
        }
        let mut mark = |bytes: Range<u16>| bytes.for_each(|byte| first[usize::from(byte)] = true);
        match nfa.state(id) {
            State::ByteRange { trans } => mark(u16::from(trans.start)..u16::from(trans.end) + 1),
            State::Sparse(sparse) => sparse
                .transitions
                .iter()
                .for_each(|trans| mark(u16::from(trans.start)..u16::from(trans.end) + 1)),
            State::Dense(_) => mark(0..256),
            State::Look { next, .. } | State::Capture { next, .. } => open.push(*next),
            State::Union { alternates } => open.extend(alternates.iter()),
            State::BinaryUnion { alt1, alt2 } => open.extend([*alt1, *alt2]),
            State::Fail => {}
            State::Match { .. } => return None,
        }
    }
    Some(first)
}

/// Paths through an automaton, the preferred ones first, each with its start in the text.
#[derive(Debug)]
struct Ways {
    states: Vec<u32>,
    starts: Vec<u32>,
    /// The index of each state in `states`, valid only if it is there.
    places: Box<[u32]>,
}

impl Ways {
    fn of(automaton: &Automaton) -> Self {
        let states = automaton.nfa.states().len();
        Self {
            states: Vec::with_capacity(states),
            starts: Vec::with_capacity(states),
            places: vec![0; states].into_boxed_slice(),
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.starts.clear();
    }

    /// Adds a state. Returns whether it was new.
    fn add(&mut self, state: StateID, start: u32) -> bool {
        let place = &mut self.places[state.as_usize()];
        if self.states.get(*place as usize) == Some(&state.as_u32()) {
            return false;
        }
        *place = self.states.len() as u32;
        self.states.push(state.as_u32());
        self.starts.push(start);
        true
    }
}

/// Searches one text after the other for the first match.
#[derive(Debug)]
pub(super) struct Finder {
    automaton: Arc<Automaton>,
    ways: Ways,
    next: Ways,
    stack: Vec<StateID>,
    /// The next byte of the text.
    at: usize,
    found: Option<Range<usize>>,
}

impl Finder {
    pub(super) fn new(automaton: Arc<Automaton>) -> Self {
        let (ways, next) = (Ways::of(&automaton), Ways::of(&automaton));
        Self { automaton, ways, next, stack: Vec::new(), at: 0, found: None }
    }

    /// Continues the search of this text, or starts it. Returns the first match or its absence once
    /// that is known, and is then ready for the next text.
    ///
    /// It pauses when the steps are spent, at most a few times the automaton's size later.
    pub(super) fn find(&mut self, text: &str, steps: &mut Steps) -> Option<Option<Range<usize>>> {
        let anchored = self.automaton.nfa.is_always_start_anchored();
        loop {
            if self.ways.states.is_empty() && self.found.is_none() && !anchored {
                self.skip(text, steps);
            }
            // No later start can give another match.
            let over = self.found.is_some() || anchored && self.at > 0;
            if self.at > text.len() || self.ways.states.is_empty() && over {
                let found = self.found.take();
                self.ways.clear();
                self.at = 0;
                return Some(found);
            }
            if steps.are_spent() {
                return None;
            }
            if !over && text.is_char_boundary(self.at) {
                self.begin(text, steps);
            }
            self.advance(text, steps);
        }
    }

    /// Skips bytes that cannot start a match.
    fn skip(&mut self, text: &str, steps: &mut Steps) {
        let rest = &text.as_bytes()[self.at.min(text.len())..];
        let automaton = &self.automaton;
        if automaton.first.is_some() {
            let skipped = rest.iter().position(|byte| automaton.may_begin_with(Some(byte)));
            let skipped = skipped.unwrap_or(rest.len() + 1);
            self.at += skipped;
            steps.spend(skipped / 8);
        }
    }

    fn begin(&mut self, text: &str, steps: &mut Steps) {
        if self.automaton.may_begin_with(text.as_bytes().get(self.at)) {
            let start = self.automaton.nfa.start_anchored();
            // Every text is much shorter than 2^32 bytes.
            let from = (start, self.at as u32);
            follow(
                &self.automaton.nfa,
                from,
                &mut self.ways,
                &mut self.stack,
                text,
                self.at,
                steps,
            );
        }
    }

    fn advance(&mut self, text: &str, steps: &mut Steps) {
        let nfa = &self.automaton.nfa;
        let byte = text.as_bytes().get(self.at);
        steps.spend(1 + self.ways.states.len());
        for (state, start) in self.ways.states.iter().zip(&self.ways.starts) {
            let state = &nfa.states()[*state as usize];
            let next = match (state, byte) {
                (State::Match { .. }, _) => {
                    self.found = Some(*start as usize..self.at);
                    // The remaining paths are of matches that start later or are less preferred.
                    break;
                }
                (State::ByteRange { trans }, Some(byte)) => {
                    trans.matches_byte(*byte).then_some(trans.next)
                }
                (State::Sparse(sparse), Some(byte)) => {
                    steps.spend(sparse.transitions.len() / 8);
                    sparse.matches_byte(*byte)
                }
                (State::Dense(dense), Some(byte)) => dense.matches_byte(*byte),
                (
                    State::ByteRange { .. }
                    | State::Sparse(_)
                    | State::Dense(_)
                    | State::Look { .. }
                    | State::Union { .. }
                    | State::BinaryUnion { .. }
                    | State::Capture { .. }
                    | State::Fail,
                    _,
                ) => None,
            };
            if let Some(next) = next {
                let from = (next, *start);
                follow(nfa, from, &mut self.next, &mut self.stack, text, self.at + 1, steps);
            }
        }
        std::mem::swap(&mut self.ways, &mut self.next);
        self.next.clear();
        self.at += 1;
    }
}

/// Adds a state and all states that it reaches without a byte, the preferred ones first.
fn follow(
    nfa: &NFA,
    (from, start): (StateID, u32),
    ways: &mut Ways,
    stack: &mut Vec<StateID>,
    text: &str,
    at: usize,
    steps: &mut Steps,
) {
    stack.push(from);
    while let Some(mut id) = stack.pop() {
        while ways.add(id, start) {
            steps.spend(1);
            match nfa.state(id) {
                State::Look { look, next } => {
                    if !nfa.look_matcher().matches(*look, text.as_bytes(), at) {
                        break;
                    }
                    id = *next;
                }
                State::Capture { next, .. } => id = *next,
                State::BinaryUnion { alt1, alt2 } => {
                    stack.push(*alt2);
                    id = *alt1;
                }
                State::Union { alternates } => {
                    let Some((preferred, others)) = alternates.split_first() else { break };
                    steps.spend(others.len());
                    stack.extend(others.iter().rev());
                    id = *preferred;
                }
                State::ByteRange { .. }
                | State::Sparse(_)
                | State::Dense(_)
                | State::Fail
                | State::Match { .. } => break,
            }
        }
    }
}

/// The remaining steps of one slice of work.
#[derive(Debug)]
pub(super) struct Steps {
    given: usize,
    left: usize,
}

impl Steps {
    pub(super) fn new(given: usize) -> Self {
        Self { given, left: given }
    }

    /// Spends this many steps, even if fewer are left.
    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }

    pub(super) fn taken(&self) -> usize {
        self.given - self.left
    }
}

#[cfg(test)]
mod tests;
