//! Regular expressions of JavaScript in the Unicode mode, in which schemas are compiled.

use std::iter::Peekable;
use std::str::Chars;

/// What may stand behind a backslash for itself.
const SYNTAX: &str = r"^$\.*+?()[]{}|/";

/// Whether a text is a regular expression, with nothing that refers to groups or to what not all clients know.
pub(super) fn is_pattern(text: &str) -> bool {
    PatternReader { rest: text.chars().peekable(), open: Vec::new() }.read().is_some()
}

struct PatternReader<'a> {
    rest: Peekable<Chars<'a>>,
    /// Of each open group, whether it may be repeated.
    open: Vec<bool>,
}

/// What an escape stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escaped {
    Character(u32),
    Class,
    /// A place, which cannot be repeated.
    Place,
}

impl PatternReader<'_> {
    fn read(mut self) -> Option<()> {
        // Whether what is before may be repeated.
        let mut is_atom = false;
        while let Some(sign) = self.rest.next() {
            is_atom = match sign {
                '\\' => self.escape(false)? != Escaped::Place,
                '[' => {
                    self.class()?;
                    true
                }
                '(' => {
                    let repeats = self.group()?;
                    self.open.push(repeats);
                    false
                }
                ')' => self.open.pop()?,
                '*' | '+' | '?' if is_atom => self.repeated(),
                '{' if is_atom => {
                    self.count()?;
                    self.repeated()
                }
                '*' | '+' | '?' | '{' | '}' | ']' => return None,
                '|' | '^' | '$' => false,
                _ => true,
            };
        }
        self.open.is_empty().then_some(())
    }

    fn takes(&mut self, sign: char) -> bool {
        self.rest.next_if_eq(&sign).is_some()
    }

    /// Behind what repeats. It cannot be repeated again.
    fn repeated(&mut self) -> bool {
        self.takes('?');
        false
    }

    /// The beginning of a group, and whether it may be repeated.
    fn group(&mut self) -> Option<bool> {
        if !self.takes('?') {
            return Some(true);
        }
        match self.rest.next()? {
            ':' => Some(true),
            '=' | '!' => Some(false),
            '<' if self.takes('=') || self.takes('!') => Some(false),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
    }

    /// How often something is repeated, behind `{`.
    fn count(&mut self) -> Option<()> {
        let least = self.number()?;
        let most = if self.takes(',') { self.number().unwrap_or(u64::MAX) } else { least };
        (least <= most && self.takes('}')).then_some(())
    }

    /// A class of characters, behind `[`.
    fn class(&mut self) -> Option<()> {
        self.takes('^');
        while !self.takes(']') {
            let from = self.member()?;
            if !self.takes('-') {
                continue;
            }
            if self.takes(']') {
                return Some(());
            }
            match (from, self.member()?) {
                (Escaped::Character(from), Escaped::Character(to)) if from <= to => {}
                (_, _) => return None,
            }
        }
        Some(())
    }

    fn member(&mut self) -> Option<Escaped> {
        match self.rest.next()? {
            '\\' => self.escape(true),
            sign => Some(Escaped::Character(u32::from(sign))),
        }
    }

    /// What is behind a backslash.
    fn escape(&mut self, is_in_class: bool) -> Option<Escaped> {
        let character = |it: char| Some(Escaped::Character(u32::from(it)));
        match self.rest.next()? {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => Some(Escaped::Class),
            'b' if is_in_class => character('\u{8}'),
            'b' | 'B' if !is_in_class => Some(Escaped::Place),
            't' => character('\t'),
            'n' => character('\n'),
            'v' => character('\u{b}'),
            'f' => character('\u{c}'),
            'r' => character('\r'),
            'c' => self.rest.next_if(char::is_ascii_alphabetic).and_then(character),
            'x' => self.digits(2),
            'u' if self.takes('{') => {
                let code = self.digits_until_brace()?;
                (code <= 0x10_FFFF).then_some(Escaped::Character(code))
            }
            'u' => self.digits(4),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => character('\0'),
            '-' if is_in_class => character('-'),
            sign if SYNTAX.contains(sign) => character(sign),
            _ => None,
        }
    }

    /// A character by this many hexadecimal digits.
    fn digits(&mut self, count: usize) -> Option<Escaped> {
        let mut code = 0;
        for _ in 0..count {
            code = code * 16 + self.rest.next()?.to_digit(16)?;
        }
        Some(Escaped::Character(code))
    }

    fn digits_until_brace(&mut self) -> Option<u32> {
        let mut code = self.rest.next()?.to_digit(16)?;
        while let Some(digit) = self.rest.next_if(|it| *it != '}') {
            code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?;
        }
        self.takes('}').then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As `new RegExp(pattern, "u")` takes them.
    #[test]
    fn patterns_are_told_from_what_is_none() {
        for pattern in [
            "",
            "^a|b$",
            r"^\d{4}-\d{2,}(?:[a-z_.\-]+|\w*?)?$",
            r"(?=a)(?!b)(?<=c)(?<!d)\bx",
            r"\u{1F600}\u00e9\x41\cA",
            "[^]",
            r"[\]\[-\\^]",
            "[a-]",
            r"\/\.\{\}\0",
        ] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for other in [
            "(",
            ")",
            "[",
            "[a",
            "*a",
            "a**",
            "a{2",
            "a{3,2}",
            "{",
            "}",
            "]",
            r"\-",
            r"\_",
            r"\",
            r"\Z",
            r"\A",
            "(?P<x>a)",
            "(?i)a",
            "(?#c)",
            r"\1",
            r"(?<year>\d+)",
            r"[(]\1",
            r"\p{L}",
            r"\u12",
            r"\u{110000}",
            r"[z-a]",
            r"[\d-z]",
            "^*",
            "(?=a)*",
            r"\ ",
            r"\k<x",
            "(?<1a>x)",
            "a{,2}",
        ] {
            assert!(!is_pattern(other), "{other}");
        }
    }
}
