//! Words: what is left of them after their quotes are removed, and the commands inside of them.

use brush_parser::ast::Word;

use crate::core::command_line::quoting::{Surroundings, WordPiece, pieces};
use crate::core::command_line::{KnownWord, ShellLineReader, UnknownPart};

/// Whether a shell at a prompt may read something else than this line: a part of its history, or a comment as a command.
/// It takes no `!` from its history in single quotes, before a blank or `=`, and at the end of a text.
pub(super) fn depends_on_history(text: &str) -> bool {
    let is_comment =
        |at: usize| text[..at].ends_with(|it: char| it.is_whitespace() || ";&|()".contains(it));
    if text.match_indices('#').any(|(at, _)| at == 0 || is_comment(at)) {
        return true;
    }
    // A substitution in the last command.
    if text.lines().any(|line| line.trim_start().starts_with('^')) {
        return true;
    }
    let (mut in_quotes, mut in_double) = (false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if !in_double => in_quotes = !in_quotes,
            '"' if !in_quotes => in_double = !in_double,
            '\\' if !in_quotes => _ = letters.next(),
            '!' if !in_quotes || text.contains("$'") => {
                let is_plain = |next: &char| next.is_whitespace() || *next == '=';
                let is_plain = |next: &char| is_plain(next) || (*next == '"' && in_double);
                if letters.peek().is_some_and(|next| !is_plain(next)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
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
        if plain(&["{"]) && plain(&[",", ".."]) || plain(&["("]) {
            self.note(UnknownPart::Expansion);
        }
        // Each piece is read, also behind one that is not known: it may have commands.
        pieces.into_iter().fold(true, |known, piece| self.piece(piece, text) & known)
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
            WordPiece::Parameter { is_name } => {
                if !is_name {
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

    /// Arithmetic evaluates the values of variables, which may run commands.
    pub(super) fn arithmetic(&mut self, expression: &str) {
        if expression.contains(|it: char| !it.is_ascii_digit() && !" +-*/%()<>=&|^~,".contains(it))
        {
            self.note(UnknownPart::Expansion);
        }
    }

    /// A here-document in which a shell expands parameters and commands.
    pub(super) fn here_document(&mut self, text: &str) {
        self.pieces(text, Surroundings::HereDocument, &mut String::new());
    }
}
