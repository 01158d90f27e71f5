//! Patterns for one text, of which one must match.

use std::fmt;
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::core::command_line::ShapePiece;
use crate::core::policy::rules::shapes::ShapeMatcher;

/// The most patterns of one condition, and the longest one in bytes.
const PATTERNS_MAX: usize = 256;
const PATTERN_BYTES_MAX: usize = 256;

/// How many `**` of one pattern may stand beside other characters than `/`.
const STARS_MAX: usize = 4;

/// Patterns: `*` is any text without `/`, `**` any text, `?` one character, `[ab]` and `{a,b}` a choice.
/// `/srv/**` is `/srv` and all below it.
#[derive(Clone)]
pub struct Patterns {
    texts: Vec<String>,
    set: GlobSet,
    regexes: Vec<String>,
    /// Made when they are first used: few conditions are about words that are known in part.
    shapes: OnceLock<Vec<ShapeMatcher>>,
}

/// Why patterns cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternProblem {
    #[error("no pattern is given")]
    Empty,
    #[error("more than {PATTERNS_MAX} patterns, or one of more than {PATTERN_BYTES_MAX} bytes")]
    Size,
    #[error("a pattern has more than {STARS_MAX} `**` beside other characters")]
    Stars,
    #[error("`{0}` is not a pattern: {1}")]
    Syntax(String, String),
}

impl Patterns {
    /// Compiles patterns.
    ///
    /// # Errors
    /// There is none, there are more than 256, one has more than 256 bytes, or one is not a pattern.
    pub fn new(texts: Vec<String>) -> Result<Self, PatternProblem> {
        if texts.is_empty() {
            return Err(PatternProblem::Empty);
        }
        let is_long = |text: &String| text.len() > PATTERN_BYTES_MAX;
        if texts.len() > PATTERNS_MAX || texts.iter().any(is_long) {
            return Err(PatternProblem::Size);
        }
        let (mut set, mut regexes) = (GlobSetBuilder::new(), Vec::new());
        for text in &texts {
            let top = text.strip_suffix("/**").filter(|top| !top.is_empty()).map(str::to_owned);
            let globs = with_whole_stars(text).ok_or(PatternProblem::Stars)?;
            for glob in globs.iter().chain(&top) {
                let glob = GlobBuilder::new(glob).literal_separator(true).build();
                let glob = glob.map_err(|error| {
                    PatternProblem::Syntax(text.clone(), error.kind().to_string())
                })?;
                regexes.push(glob.regex().to_owned());
                set.add(glob);
            }
        }
        let set = set.build();
        let set =
            set.map_err(|error| PatternProblem::Syntax(texts.join(", "), error.to_string()))?;
        Ok(Self { texts, set, regexes, shapes: OnceLock::new() })
    }

    /// No patterns: they match nothing.
    pub fn none() -> Self {
        Self {
            texts: Vec::new(),
            set: GlobSet::empty(),
            regexes: Vec::new(),
            shapes: OnceLock::new(),
        }
    }

    /// Whether one of them matches this whole text.
    pub fn matches(&self, text: &str) -> bool {
        self.set.is_match(text)
    }

    /// Whether one of them may match a whole text that consists of these pieces.
    pub fn may_match(&self, pieces: &[ShapePiece]) -> bool {
        let made = || self.regexes.iter().map(|regex| ShapeMatcher::new(regex)).collect();
        self.shapes.get_or_init(made).iter().any(|it| it.may_match(pieces))
    }

    /// The patterns as they were given.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// The globs that together match what a pattern does. In globs, `**` matches text with `/` only where it stands alone
/// between two; elsewhere it means what `*` does. So `a**b` is `a*b` or `a*/**/*b`. `None` if there were too many.
fn with_whole_stars(pattern: &str) -> Option<Vec<String>> {
    let is_edge = |it: Option<char>| it.is_none_or(|it| matches!(it, '/' | '{' | '}' | ','));
    let (mut globs, mut stars) = (vec![String::new()], 0);
    let (mut rest, mut before, mut in_class) = (pattern, None, false);
    while let Some(next) = rest.chars().next() {
        let behind = rest.strip_prefix("**").filter(|_| !in_class);
        let is_beside = |behind: &&str| !(is_edge(before) && is_edge(behind.chars().next()));
        if let Some(behind) = behind.filter(is_beside) {
            stars += 1;
            let crossing: Vec<String> = globs.iter().map(|glob| format!("{glob}*/**/*")).collect();
            globs.iter_mut().for_each(|glob| glob.push('*'));
            globs.extend(crossing);
            (rest, before) = (behind, Some('*'));
        } else {
            let taken = match next {
                '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
                '*' if behind.is_some() => 2,
                _ => next.len_utf8(),
            };
            in_class = if in_class { next != ']' } else { next == '[' };
            globs.iter_mut().for_each(|glob| glob.push_str(&rest[..taken]));
            (rest, before) = (&rest[taken..], Some(next));
        }
        if stars > STARS_MAX {
            return None;
        }
    }
    Some(globs)
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Patterns {}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Patterns::new(vec![pattern.to_owned()]).unwrap().matches(text)
    }

    #[test]
    fn a_star_stays_between_slashes_and_two_do_not() {
        assert!(matches("/srv/*/log", "/srv/www/log"));
        assert!(!matches("/srv/*/log", "/srv/www/old/log"));
        assert!(matches("/srv/**", "/srv/www/old/log"));
        assert!(matches("/srv/**", "/srv"));
        assert!(!matches("/srv/**", "/srvother"));
        assert!(matches("**", "/"));
        assert!(matches("send_*", "send_text"));
        assert!(!matches("send", "send_text"), "the whole text must match");
    }

    #[test]
    fn two_stars_are_any_text_wherever_they_stand() {
        for (pattern, text) in [
            ("**secret**", "cat /srv/secret/x"),
            ("**secret**", "secret"),
            ("**secret**", "a/secret"),
            ("aa__**", "aa__resources/read"),
            ("aa__**", "aa__read"),
            ("/srv**", "/srv/www/old/log"),
            ("/srv**/x", "/srvs/a/b/x"),
            ("{a**,b}/x", "ac/d/x"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("aa__**", "ab__read"),
            ("**secret**", "cat /srv/secre/t"),
            (r"a\**", "ab/c"),
            ("a[**]b", "a/b"),
            ("a/**/b", "a/cb"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let problem = |text: &str| Patterns::new(vec![text.to_owned()]).unwrap_err();
        assert!(matches!(problem("[a"), PatternProblem::Syntax(text, _) if text == "[a"));
        assert_eq!(problem(&"a".repeat(257)), PatternProblem::Size);
        assert_eq!(Patterns::new(Vec::new()).unwrap_err(), PatternProblem::Empty);
        assert_eq!(problem("a**b**c**d**e**"), PatternProblem::Stars);
    }
}
