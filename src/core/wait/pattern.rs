//! The pattern of a wait: a literal text or a regular expression.
//!
//! Callers are untrusted, so an expression is bounded before it is compiled, and a search can be
//! interrupted.

use std::ops::Range;
use std::sync::Arc;

use crate::core::wait::PatternError;
use crate::core::wait::automaton::{Automaton, Finder, Steps};

/// A compiled pattern; clones share it.
#[derive(Clone, Debug)]
pub struct Pattern(Matcher);

#[derive(Clone, Debug)]
enum Matcher {
    Literal(Arc<str>),
    Regex(Arc<Automaton>),
}

impl Pattern {
    pub const BYTES_MAX: usize = 4_096;

    /// A literal text, case-sensitive.
    ///
    /// Errors: it is empty, too long or contains a line end.
    pub fn literal(text: &str) -> Result<Self, PatternError> {
        check_length(text)?;
        if text.contains(['\n', '\r']) {
            return Err(PatternError::ManyLines);
        }
        Ok(Self(Matcher::Literal(text.into())))
    }

    /// A regular expression in the syntax of the `regex` crate. Compiling takes milliseconds.
    ///
    /// Errors: it is empty or too long, does not compile, or costs too much time or memory.
    pub fn regex(expression: &str) -> Result<Self, PatternError> {
        check_length(expression)?;
        Ok(Self(Matcher::Regex(Arc::new(Automaton::compile(expression)?))))
    }

    /// The memory of the pattern with this many searches, in bytes.
    pub fn bytes(&self, searches: usize) -> usize {
        match &self.0 {
            Matcher::Literal(text) => text.len(),
            Matcher::Regex(automaton) => automaton.bytes() + searches * automaton.search_bytes(),
        }
    }

    pub(super) fn search(&self) -> PatternSearch {
        match &self.0 {
            Matcher::Literal(text) => PatternSearch::Literal(Arc::clone(text)),
            Matcher::Regex(automaton) => PatternSearch::Regex(Finder::new(Arc::clone(automaton))),
        }
    }
}

/// Searches one text after the other for a pattern.
#[derive(Debug)]
pub(super) enum PatternSearch {
    Literal(Arc<str>),
    Regex(Finder),
}

impl PatternSearch {
    /// Continues the search of this text, or starts it. Returns the first match in bytes of the text,
    /// or its absence, once that is known.
    pub(super) fn find(&mut self, text: &str, steps: &mut Steps) -> Option<Option<Range<usize>>> {
        match self {
            Self::Literal(literal) => {
                steps.spend(1 + text.len() / 8);
                Some(text.find(&**literal).map(|start| start..start + literal.len()))
            }
            Self::Regex(finder) => finder.find(text, steps),
        }
    }
}

fn check_length(pattern: &str) -> Result<(), PatternError> {
    if pattern.is_empty() {
        return Err(PatternError::Empty);
    }
    if pattern.len() > Pattern::BYTES_MAX {
        return Err(PatternError::TooLong { bytes: pattern.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pattern: Result<Pattern, PatternError>) -> PatternError {
        pattern.expect_err("the pattern should be refused")
    }

    fn find(pattern: &Pattern, text: &str) -> Option<Range<usize>> {
        pattern.search().find(text, &mut Steps::new(10_000)).expect("few steps are needed")
    }

    #[test]
    fn a_literal_is_found_as_it_stands() {
        let pattern = Pattern::literal("a.c$").unwrap();
        assert_eq!(find(&pattern, "abc a.c$"), Some(4..8));
        assert_eq!(find(&pattern, "abc A.C$"), None);
    }

    #[test]
    fn an_expression_matches_within_one_line() {
        let pattern = Pattern::regex(r"^exit (\d+)$").unwrap();
        assert_eq!(find(&pattern, "exit 12"), Some(0..7));
        assert_eq!(find(&pattern, "an exit 12"), None);
    }

    #[test]
    fn an_expression_that_does_not_compile_says_why() {
        let error = refused(Pattern::regex("(unclosed"));
        let PatternError::Invalid { message } = error else { panic!("{error:?}") };
        assert!(message.contains("unclosed group"), "{message}");
    }

    #[test]
    fn an_expression_that_would_take_too_much_memory_is_refused() {
        assert_eq!(refused(Pattern::regex(r"(\pL{1000}){1000}")), PatternError::TooCostly);
        assert_eq!(refused(Pattern::regex(r"(?:a?){32000}")), PatternError::TooCostly);
    }

    #[test]
    fn an_expression_that_would_take_long_is_refused_before_it_is_compiled() {
        let longest = |start: &str, repeated: &str, end: &str| {
            let times = (Pattern::BYTES_MAX - start.len() - end.len()) / repeated.len();
            format!("{start}{}{end}", repeated.repeat(times))
        };
        let distinct: String = ('一'..'龠').step_by(3).take(1_000).collect();
        let costly = [
            format!("[{distinct}]{{100}}"),
            longest("(?i)", r"[\s\S]", ""),
            longest("(?i)", r"[!-\u{10FFFE}]", ""),
            longest("(?i)[", r"[\x00-\u{10FFFF}]", "]"),
            longest("(?i)", r"\p{Any}", ""),
            longest("", r"\W", ""),
            format!(r"[\w{}]", "--a".repeat(200)),
            longest("[", r"[\w]", "]"),
            longest(r"(?i)[\w", r"[[:^alpha:]]", "]"),
            r"(?:(?:\d{100}){100}){100}".to_owned(),
            r"(?:(?:a{4294967295}){4294967295}){4294967295,}".to_owned(),
        ];
        for expression in costly {
            let read = Pattern::regex(&expression);
            assert_eq!(read.expect_err(&expression), PatternError::TooCostly);
        }
    }

    #[test]
    fn common_expressions_are_cheap_enough() {
        let common = [
            r"(?i)error[\s\S]*done",
            r"(?i)\b(?:error|warning|failed)\b.{0,200}$",
            r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z?\s+\[\w+\]\s+[\w.-]+:",
            r"(?i)[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
            r"(?i)^[^\s@]+@[^\s@]+\s*$",
            r"\w{32}",
            r"\p{Lu}\p{Ll}+ \P{L}",
        ];
        for expression in common {
            Pattern::regex(expression).expect(expression);
        }
    }

    #[test]
    fn the_length_of_a_pattern_is_bounded() {
        let most = "x".repeat(Pattern::BYTES_MAX);
        assert!(Pattern::literal(&most).is_ok());
        assert!(Pattern::regex(&most).is_ok());
        let over = format!("{most}x");
        let too_long = PatternError::TooLong { bytes: Pattern::BYTES_MAX + 1 };
        assert_eq!(refused(Pattern::literal(&over)), too_long);
        assert_eq!(refused(Pattern::regex(&over)), too_long);
    }

    #[test]
    fn an_empty_pattern_is_refused() {
        assert_eq!(refused(Pattern::literal("")), PatternError::Empty);
        assert_eq!(refused(Pattern::regex("")), PatternError::Empty);
    }

    #[test]
    fn a_text_of_several_lines_is_refused_since_it_could_never_match() {
        assert_eq!(refused(Pattern::literal("a\nb")), PatternError::ManyLines);
    }
}
