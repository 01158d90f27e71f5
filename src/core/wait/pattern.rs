//! What a line is compared with: a text as it stands, or a regular expression.
//!
//! It knows nothing of rows. Callers are strangers, so an expression is bounded when it is
//! compiled; the matcher itself takes time linear in the line.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

/// A compiled pattern; cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Pattern(Matcher);

#[derive(Clone, Debug)]
enum Matcher {
    Literal(Box<str>),
    Regex(Regex),
}

/// Says why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty")]
    Empty,
    #[error("the pattern has {bytes} bytes, more than {}", Pattern::BYTES_MAX)]
    TooLong { bytes: usize },
    #[error("the pattern spans lines; patterns are compared with one line at a time")]
    ManyLines,
    #[error("the pattern does not compile: {message}")]
    Invalid {
        /// What the compiler says and where, over several lines.
        message: String,
    },
}

impl Pattern {
    /// How many bytes a pattern may have.
    pub const BYTES_MAX: usize = 4_096;
    /// How many bytes a compiled pattern may take, and again its cache.
    const COMPILED_MAX: usize = 1 << 20;

    /// A text to be found as it stands, case included.
    ///
    /// Errors: it is empty, too long or has a line end in it.
    pub fn literal(text: &str) -> Result<Self, PatternError> {
        check_length(text)?;
        if text.contains(['\n', '\r']) {
            return Err(PatternError::ManyLines);
        }
        Ok(Self(Matcher::Literal(text.into())))
    }

    /// A regular expression in the syntax of the `regex` crate.
    ///
    /// Errors: it is empty or too long, does not compile, or would take more than a megabyte.
    pub fn regex(expression: &str) -> Result<Self, PatternError> {
        check_length(expression)?;
        let compiled = RegexBuilder::new(expression)
            .size_limit(Self::COMPILED_MAX)
            .dfa_size_limit(Self::COMPILED_MAX)
            .build();
        match compiled {
            Ok(regex) => Ok(Self(Matcher::Regex(regex))),
            Err(error) => Err(PatternError::Invalid { message: error.to_string() }),
        }
    }

    /// Where the pattern first matches, in bytes of the text.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        match &self.0 {
            Matcher::Literal(literal) => {
                text.find(&**literal).map(|start| start..start + literal.len())
            }
            Matcher::Regex(regex) => regex.find(text).map(|found| found.range()),
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

    #[test]
    fn a_literal_is_found_as_it_stands() {
        let pattern = Pattern::literal("a.c$").unwrap();
        assert_eq!(pattern.find("abc a.c$"), Some(4..8));
        assert_eq!(pattern.find("abc A.C$"), None);
    }

    #[test]
    fn an_expression_matches_within_one_line() {
        let pattern = Pattern::regex(r"^exit (\d+)$").unwrap();
        assert_eq!(pattern.find("exit 12"), Some(0..7));
        assert_eq!(pattern.find("an exit 12"), None);
    }

    #[test]
    fn an_expression_that_does_not_compile_says_why() {
        let error = refused(Pattern::regex("(unclosed"));
        let PatternError::Invalid { message } = error else { panic!("{error:?}") };
        assert!(message.contains("unclosed group"), "{message}");
    }

    #[test]
    fn an_expression_that_would_take_too_much_memory_is_refused() {
        let error = refused(Pattern::regex(r"(\pL{1000}){1000}"));
        assert!(matches!(error, PatternError::Invalid { .. }), "{error:?}");
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
