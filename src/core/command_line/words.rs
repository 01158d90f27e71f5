//! Words: what is left of them after their quotes are removed, and the commands inside of them.

use brush_parser::ast::Word;

use crate::core::command_line::quoting::{Surroundings, WordPiece, pieces};
use crate::core::command_line::{KnownWord, ShellLineReader, UnknownPart};

/// Whether a shell at a prompt may read something else than this line: a part of its history. It takes no `!` from there
/// in single quotes, before a blank or `=`, and at the end of a text.
pub(super) fn depends_on_history(text: &str, has_comment: bool) -> bool {
    // A substitution in the last command.
    if text.lines().any(|line| line.trim_start().starts_with('^')) {
        return true;
    }
    let mut letters = text.chars().peekable();
    let mut quotes = Quotes::default();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !quotes.single => _ = letters.next(),
            // A quote in a comment may be none.
            '!' if !quotes.single || has_comment || text.contains("$'") => {
                let is_plain = |next: &char| next.is_whitespace() || *next == '=';
                let is_plain = |next: &char| is_plain(next) || (*next == '"' && quotes.double);
                if letters.peek().is_some_and(|next| !is_plain(next)) {
                    return true;
                }
            }
            _ => quotes.take(letter),
        }
    }
    false
}

/// A line as a shell reads it that takes `#` for a letter; none if the line has no comment.
pub(super) fn without_comments(text: &str) -> Option<String> {
    let mut other = String::with_capacity(text.len() + 1);
    let mut letters = text.chars();
    let mut quotes = Quotes::default();
    while let Some(letter) = letters.next() {
        let begins = other.ends_with(|it: char| it.is_whitespace() || ";&|()".contains(it));
        if letter == '#' && !quotes.single && !quotes.double && (begins || other.is_empty()) {
            other.push('\\');
        }
        other.push(letter);
        match letter {
            '\\' if !quotes.single => other.extend(letters.next()),
            _ => quotes.take(letter),
        }
    }
    (other.len() > text.len()).then_some(other)
}

/// In which quotes a text is.
#[derive(Default)]
struct Quotes {
    single: bool,
    double: bool,
}

impl Quotes {
    fn take(&mut self, letter: char) {
        match letter {
            '\'' if !self.double => self.single = !self.single,
            '"' if !self.single => self.double = !self.double,
            _ => {}
        }
    }
}

/// Whether a line has `${ command; }`, which runs a command in some shells. The parser does not know it.
pub(super) fn has_inner_command(text: &str) -> bool {
    let is_inner = |rest: &str| rest.starts_with([' ', '\n', '|']);
    text.match_indices("${").any(|(at, begin)| is_inner(&text[at + begin.len()..]))
}

impl ShellLineReader {
    /// Reads a word: takes the commands inside of it, and returns what it is.
    pub(super) fn word(&mut self, word: &Word) -> KnownWord {
        let raw = word.value.as_str();
        if raw == "[" {
            return Some(raw.to_owned());
        }
        let mut text = String::new();
        let is_known = self.pieces(raw, Surroundings::Nothing, &mut text);
        is_known.then_some(text)
    }

    /// Appends the text of a word. Returns whether all of it is known.
    fn pieces(&mut self, raw: &str, around: Surroundings, text: &mut String) -> bool {
        let Some(pieces) = pieces(raw, around) else {
            self.note(UnknownPart::Syntax);
            return false;
        };
        let plain = |signs: &[&str]| {
            let has = |text: &str| signs.iter().any(|sign| text.contains(sign));
            pieces.iter().any(|it| matches!(it, WordPiece::Plain(text) if has(text)))
        };
        // A parenthesis belongs to a pattern, which runs commands in zsh.
        if plain(&["("]) {
            self.note(UnknownPart::Expansion);
        }
        let is_one = !(plain(&["{"]) && plain(&[",", ".."]));
        // Each piece is read, also behind one that is not known: it may have commands.
        pieces.into_iter().fold(is_one, |known, piece| self.piece(piece, text) & known)
    }

    fn piece(&mut self, piece: WordPiece<'_>, text: &mut String) -> bool {
        match piece {
            WordPiece::Plain(plain) => {
                text.push_str(plain);
                // A pattern stands for names of files, and these may be those of flags.
                !plain.contains(['*', '?', '['])
            }
            WordPiece::Quoted(quoted) => {
                text.push_str(quoted);
                true
            }
            WordPiece::Computed => false,
            WordPiece::Parameter { is_plain } => {
                if !is_plain {
                    self.note(UnknownPart::Expansion);
                }
                false
            }
            WordPiece::Command(inner) => {
                self.script(&inner);
                false
            }
            WordPiece::Arithmetic(expression) => {
                self.arithmetic(expression);
                false
            }
        }
    }

    /// A here-document in which a shell expands parameters and commands.
    pub(super) fn here_document(&mut self, text: &str) {
        self.pieces(text, Surroundings::HereDocument, &mut String::new());
    }
}
