//! Whether a word that is known in part may be one that a pattern is about.

use std::collections::BTreeSet;

use regex_automata::dfa::dense::DFA;
use regex_automata::dfa::{Automaton, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input};

use crate::core::command_line::ShapePiece;

/// The largest automaton of one pattern, in bytes. Of a larger one, any word may be meant.
const AUTOMATON_BYTES_MAX: usize = 256 * 1024;

/// The automaton of one pattern.
#[derive(Clone, Debug)]
pub(super) struct ShapeMatcher(Option<DFA<Vec<u32>>>);

impl ShapeMatcher {
    /// Of a regular expression that matches the whole text.
    pub(super) fn new(regex: &str) -> Self {
        let config = DFA::config()
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .determinize_size_limit(Some(AUTOMATON_BYTES_MAX));
        let syntax = regex_automata::util::syntax::Config::new().utf8(false);
        Self(DFA::builder().configure(config).syntax(syntax).build(regex).ok())
    }

    /// Whether a word of these pieces may match.
    pub(super) fn may_match(&self, pieces: &[ShapePiece]) -> bool {
        let Some(automaton) = &self.0 else { return true };
        let begin = Input::new("").anchored(Anchored::Yes);
        let Ok(begin) = automaton.start_state_forward(&begin) else { return true };
        let mut states = BTreeSet::from([begin]);
        for piece in pieces {
            states = match piece {
                ShapePiece::Text(text) => after_text(automaton, &states, text),
                ShapePiece::OneOf(texts) => {
                    texts.iter().flat_map(|text| after_text(automaton, &states, text)).collect()
                }
                ShapePiece::Digits => after_any(automaton, states, |it| it.is_ascii_digit()),
                ShapePiece::Numbers => after_any(automaton, states, |it| {
                    it.is_ascii_digit() || matches!(it, b' ' | b'\n')
                }),
                ShapePiece::Letters => {
                    after_any(automaton, states, |it| it.is_ascii_alphanumeric())
                }
                ShapePiece::Name => after_any(automaton, states, |it| it != b'/'),
                ShapePiece::Branch => {
                    let is_first = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
                    let first = (0..=u8::MAX).filter(is_first);
                    let after = |byte| states.iter().map(move |it| automaton.next_state(*it, byte));
                    let begun = first.flat_map(after).collect();
                    let mut all = after_any(automaton, begun, |_| true);
                    all.extend(&states);
                    all
                }
                ShapePiece::Path | ShapePiece::Any | ShapePiece::Words => {
                    after_any(automaton, states, |_| true)
                }
            };
        }
        states.into_iter().any(|it| automaton.is_match_state(automaton.next_eoi_state(it)))
    }
}

fn after_text(
    automaton: &DFA<Vec<u32>>,
    states: &BTreeSet<StateID>,
    text: &str,
) -> BTreeSet<StateID> {
    let after = |state: &StateID| {
        text.bytes().fold(*state, |state, byte| automaton.next_state(state, byte))
    };
    states.iter().map(after).collect()
}

/// The states after any number of such bytes.
fn after_any(
    automaton: &DFA<Vec<u32>>,
    mut states: BTreeSet<StateID>,
    is_such: impl Fn(u8) -> bool,
) -> BTreeSet<StateID> {
    let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| is_such(*byte)).collect();
    let mut open: Vec<StateID> = states.iter().copied().collect();
    while let Some(state) = open.pop() {
        for byte in &bytes {
            let next = automaton.next_state(state, *byte);
            if states.insert(next) {
                open.push(next);
            }
        }
    }
    states
}
