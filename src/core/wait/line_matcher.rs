//! Finds lines for a search: those that have all words, or match a pattern, within one budget for all lines.

use std::ops::Range;

use crate::core::wait::PatternError;
use crate::core::wait::automaton::Steps;
use crate::core::wait::look::Look;
use crate::core::wait::pattern::{Pattern, PatternSearch};

/// A search spent its budget before the last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSpent;

/// What a line must have.
#[derive(Debug)]
pub struct LineMatcher {
    wanted: Wanted,
    steps: Steps,
}

#[derive(Debug)]
enum Wanted {
    /// In lower case.
    Words(Vec<String>),
    Pattern(PatternSearch),
}

impl LineMatcher {
    /// How many words are searched for at most.
    pub const WORDS_MAX: usize = 32;

    /// Finds lines that have all these words, in any order and case. A word is found from its beginning, so `warn`
    /// finds `warning`.
    ///
    /// # Errors
    /// There is no word, the words are too long, or there are more than [`Self::WORDS_MAX`].
    pub fn words(query: &str) -> Result<Self, PatternError> {
        if query.len() > Pattern::BYTES_MAX {
            return Err(PatternError::TooLong { bytes: query.len() });
        }
        // No line has a NUL, and the index could not look for one.
        let is_between = |character: char| character.is_whitespace() || character == '\0';
        let words = query.split(is_between).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_lowercase).collect();
        match words.len() {
            0 => Err(PatternError::Empty),
            count if count > Self::WORDS_MAX => Err(PatternError::ManyWords),
            _ => Ok(Self::of(Wanted::Words(words))),
        }
    }

    /// Finds lines that match.
    pub fn pattern(pattern: &Pattern) -> Self {
        Self::of(Wanted::Pattern(pattern.search()))
    }

    fn of(wanted: Wanted) -> Self {
        Self { wanted, steps: Steps::new(Look::STEPS_MAX) }
    }

    /// The words in lower case; none of a pattern.
    pub fn wanted_words(&self) -> Option<&[String]> {
        match &self.wanted {
            Wanted::Words(words) => Some(words),
            Wanted::Pattern(_) => None,
        }
    }

    /// Where the line matches, in its bytes: for words the first of them.
    ///
    /// # Errors
    /// [`BudgetSpent`] when this and earlier lines took too long. Whether the line matches is unknown then.
    pub fn find(&mut self, line: &str) -> Result<Option<Range<usize>>, BudgetSpent> {
        if self.steps.are_spent() {
            return Err(BudgetSpent);
        }
        match &mut self.wanted {
            Wanted::Words(words) => {
                self.steps.spend(1 + line.len());
                Ok(find_words(words, line))
            }
            Wanted::Pattern(search) => search.find(line, &mut self.steps).ok_or(BudgetSpent),
        }
    }
}

fn find_words(words: &[String], line: &str) -> Option<Range<usize>> {
    let lower = line.to_lowercase();
    let mut first = None;
    for word in words {
        let start = word_start(&lower, word)?;
        first.get_or_insert(start..start + word.len());
    }
    // The few letters whose cases differ in length move what follows.
    let start = line.floor_char_boundary(first.as_ref()?.start);
    let end = line.ceil_char_boundary(first?.end.min(line.len()));
    Some(start..end.max(start))
}

/// Where a word begins in a text. What begins like a word does not begin within another one.
fn word_start(text: &str, word: &str) -> Option<usize> {
    let is_word = word.starts_with(char::is_alphanumeric);
    let begins = |start: &usize| {
        !is_word || !text[..*start].chars().next_back().is_some_and(char::is_alphanumeric)
    };
    text.match_indices(word).map(|(start, _)| start).find(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(query: &str, line: &str) -> bool {
        let mut matcher = LineMatcher::words(query).unwrap();
        matcher.find(line).expect("one line costs little").is_some()
    }

    #[test]
    fn a_line_needs_all_words_in_any_order_and_case() {
        assert!(words("Error disk", "write failed: Disk full (ERROR 28)"));
        assert!(!words("error disk", "write failed: disk full"));
    }

    #[test]
    fn a_word_is_found_from_its_beginning_only() {
        assert!(words("warn", "2 warnings"));
        assert!(!words("arning", "2 warnings"));
        assert!(words("arning", "warning: arning"));
        assert!(words("store.rs:12", "src/store.rs:12:4"));
        assert!(words("--quiet", "make --quiet"));
    }

    #[test]
    fn signs_of_pattern_and_query_languages_mean_themselves() {
        assert!(words("\"a\" OR* (x", "he said \"a\" or* (x)"));
        assert!(!words("a.c", "abc"));
    }

    #[test]
    fn the_place_of_a_match_is_that_of_the_first_word() {
        let mut matcher = LineMatcher::words("two one").unwrap();
        assert_eq!(matcher.find("One and Two"), Ok(Some(8..11)));
        // In lower case it is a byte longer.
        let place = LineMatcher::words("b").unwrap().find("İ b").unwrap().unwrap();
        assert!("İ b".get(place).is_some());
    }

    #[test]
    fn no_words_and_too_many_are_refused() {
        assert_eq!(LineMatcher::words(" \n").unwrap_err(), PatternError::Empty);
        let many = "a ".repeat(LineMatcher::WORDS_MAX + 1);
        assert_eq!(LineMatcher::words(&many).unwrap_err(), PatternError::ManyWords);
        let long = "a".repeat(Pattern::BYTES_MAX + 1);
        assert!(matches!(LineMatcher::words(&long), Err(PatternError::TooLong { .. })));
    }

    #[test]
    fn all_lines_share_one_budget() {
        let pattern = Pattern::regex("a+b").unwrap();
        let mut matcher = LineMatcher::pattern(&pattern);
        matcher.steps = Steps::new(10_000);
        assert_eq!(matcher.find("xaab"), Ok(Some(1..4)));
        let mut lines = std::iter::repeat_with(|| matcher.find("aaaaaaaaaa")).take(10_000);
        assert!(lines.any(|found| found == Err(BudgetSpent)));
    }
}
