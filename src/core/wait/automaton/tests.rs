//! Searches in slices, compared with those of the crate `regex`.

use proptest::prelude::*;
use regex::Regex;

use super::*;

fn finder(expression: &str) -> Finder {
    Finder::new(Arc::new(Automaton::compile(expression).unwrap()))
}

/// The first match, found in slices of so many steps, and how many slices it took.
fn find(finder: &mut Finder, text: &str, slice: usize) -> (Option<Range<usize>>, usize) {
    for slices in 1.. {
        if let Some(found) = finder.find(text, &mut Steps::new(slice)) {
            return (found, slices);
        }
    }
    unreachable!("a search comes to an end")
}

fn check(expression: &str, texts: &[String], slice: usize) {
    let Ok(reference) = Regex::new(expression) else { return };
    let mut finder = finder(expression);
    for text in texts {
        let expected = reference.find(text).map(|found| found.range());
        let (found, _) = find(&mut finder, text, slice);
        assert_eq!(found, expected, "{expression:?} in {text:?}, {slice} steps at once");
    }
}

#[test]
fn the_first_match_is_the_one_that_the_crate_regex_finds() {
    let expressions = [
        "a|ab",
        "ab|a",
        "a*",
        "a*?",
        "(a|b)*?c",
        "x*",
        "^a",
        "a$",
        "^$",
        "",
        r"\bä\b",
        r"\Bb",
        r"\b",
        r"(?-u:\b)a",
        r"(?i)ÄB",
        r"\w+ \d",
        r"\s+$",
        ".*c",
        ".+?c",
        "[^a]b",
        r"\p{Greek}+",
        "a{2,4}",
        r"\$ $",
        "(?m)^b",
        r"\<a",
        r"a\>",
        "b(?s:.)c",
        "(?R)a$",
        "[[:digit:]]{3}",
    ];
    let texts = [
        "",
        "a",
        "ab",
        "ba",
        "aab c",
        "xaäb äb",
        "a ä b",
        "ÄB äb",
        "αβγ 12 123",
        "naïve c",
        "  ",
        "$ ",
        "b\nb",
        "aaaaa",
        "…ab…",
        "日本 ab 1",
    ];
    for expression in expressions {
        check(expression, &texts.map(str::to_owned), 1);
    }
}

/// Expressions of all that the syntax has, small enough to match now and then.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "ä",
        "1",
        " ",
        ".",
        "[ab]",
        "[^a]",
        r"\w",
        r"\d",
        r"\s",
        r"\b",
        r"\B",
        "^",
        "$",
        r"(?-u:\b)",
        r"\pL",
        "漢",
        "",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (
                inner.clone(),
                prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}"])
            )
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            inner.prop_map(|part| format!("((?i){part})")),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["a", "b", "ä", "A", "1", " ", "漢", "_", "é", "\t"]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_the_expression_and_the_slices_the_match_is_that_of_the_crate_regex(
        expression in expressions(),
        texts in prop::collection::vec(texts(), 1..6),
        slice in 1..200usize,
    ) {
        prop_assume!(Automaton::compile(&expression).err() != Some(PatternError::TooCostly));
        check(&expression, &texts, slice);
    }
}

#[test]
fn a_hostile_expression_is_searched_for_in_bounded_slices_that_make_headway() {
    const SLICE: usize = 50_000;
    let mut finder = finder("1[01]{12000}[^01]");
    let states = finder.automaton.nfa.states().len();
    let text = "1".repeat(16_000);
    let (mut taken, mut at) = (0, 0);
    // As far as the first hundred bytes, each of which has one way more than the one before.
    while finder.at < 500 {
        let mut steps = Steps::new(SLICE);
        assert_eq!(finder.find(&text, &mut steps), None);
        assert!(finder.at > at, "no headway at {at}");
        assert!((finder.at - at) * 12 < SLICE, "{} bytes in one slice", finder.at - at);
        (taken, at) = (taken + steps.taken(), finder.at);
    }
    assert!(taken > 500 * 500 / 2, "{taken} steps were counted");
    assert!(finder.ways.states.capacity() <= states && finder.stack.capacity() <= states);
}

#[test]
fn what_a_search_takes_in_memory_is_known_in_advance() {
    for expression in ["a", r"\w+@\w+", "1[01]{12000}[^01]", "(a|b|c|d|e|f)*g"] {
        let mut finder = finder(expression);
        let promised = finder.automaton.search_bytes();
        find(&mut finder, &"1ab@c".repeat(100), usize::MAX);
        let numbers = finder.stack.capacity()
            + [&finder.ways, &finder.next]
                .map(|ways| ways.states.capacity() + ways.starts.capacity() + ways.places.len())
                .iter()
                .sum::<usize>();
        assert!(numbers * size_of::<u32>() <= promised.max(256), "{expression}: {numbers}");
    }
}

#[test]
fn an_expression_that_is_wrong_says_where() {
    for (expression, problem) in [("a(", "unclosed group"), (r"\p{Nowhere}", "property not found")]
    {
        let compiled = Automaton::compile(expression);
        let Err(PatternError::Invalid { message }) = compiled else {
            panic!("{expression} is wrong")
        };
        assert!(message.contains(problem), "{message}");
    }
}
