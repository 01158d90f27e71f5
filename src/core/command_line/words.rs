//! Words: what is left of them after their quotes are removed, and the commands inside of them.

use brush_parser::ast::Word;
use brush_parser::word::{Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource};

use crate::core::command_line::parser;
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
        self.text(&word.value)
    }

    fn text(&mut self, raw: &str) -> KnownWord {
        if raw == "[" {
            return Some(raw.to_owned());
        }
        let Some(pieces) = parser::word(raw) else {
            self.note(UnknownPart::Syntax);
            return None;
        };
        let plain = |signs: &[&str]| {
            let has = |text: &str| signs.iter().any(|sign| text.contains(sign));
            pieces.iter().any(|it| matches!(&it.piece, WordPiece::Text(text) if has(text)))
        };
        // A parenthesis belongs to a pattern, which runs commands in zsh.
        if plain(&["{"]) && plain(&[",", ".."]) || plain(&["("]) {
            self.note(UnknownPart::Expansion);
        }
        let mut text = String::new();
        self.pieces(&pieces, &mut text).then_some(text)
    }

    /// Appends the text of pieces. Returns whether all of it is known.
    fn pieces(&mut self, pieces: &[WordPieceWithSource], text: &mut String) -> bool {
        // Each piece is read, also behind one that is not known: it may have commands.
        pieces.iter().fold(true, |known, piece| self.piece(&piece.piece, text) & known)
    }

    fn piece(&mut self, piece: &WordPiece, text: &mut String) -> bool {
        match piece {
            WordPiece::Text(plain) => {
                text.push_str(plain);
                // A pattern stands for names of files, and these may be those of flags.
                !plain.contains(['*', '?', '['])
            }
            WordPiece::SingleQuotedText(plain) => {
                text.push_str(plain);
                true
            }
            WordPiece::EscapeSequence(escaped) => {
                let letter = escaped.strip_prefix('\\').unwrap_or(escaped);
                // A backslash at the end of a line joins it with the next one.
                text.push_str(if letter == "\n" { "" } else { letter });
                true
            }
            WordPiece::AnsiCQuotedText(quoted) => {
                text.push_str(quoted);
                !quoted.contains('\\')
            }
            WordPiece::DoubleQuotedSequence(pieces) => self.quoted(pieces, text),
            // A translation may be any text.
            WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.quoted(pieces, text);
                false
            }
            WordPiece::TildeExpansion(tilde) => {
                match tilde {
                    TildeExpr::Home => text.push('~'),
                    TildeExpr::UserHome(name) => text.extend(["~", name]),
                    TildeExpr::WorkingDir => text.push_str("~+"),
                    TildeExpr::OldWorkingDir => text.push_str("~-"),
                    TildeExpr::NthDirFromTopOfDirStack { .. }
                    | TildeExpr::NthDirFromBottomOfDirStack { .. } => return false,
                }
                true
            }
            WordPiece::ParameterExpansion(ParameterExpr::Parameter { parameter, .. }) => {
                // The index of an array is computed.
                if matches!(parameter, Parameter::NamedWithIndex { .. }) {
                    self.note(UnknownPart::Expansion);
                }
                false
            }
            WordPiece::ParameterExpansion(_) => {
                self.note(UnknownPart::Expansion);
                false
            }
            WordPiece::CommandSubstitution(inner)
            | WordPiece::BackquotedCommandSubstitution(inner) => {
                self.script(inner);
                false
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value);
                false
            }
        }
    }

    /// Patterns in quotes are plain text.
    fn quoted(&mut self, pieces: &[WordPieceWithSource], text: &mut String) -> bool {
        pieces.iter().fold(true, |known, piece| {
            let is_known = if let WordPiece::Text(plain) = &piece.piece {
                text.push_str(plain);
                true
            } else {
                self.piece(&piece.piece, text)
            };
            is_known & known
        })
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
        match parser::here_document(text) {
            Some(pieces) => _ = self.pieces(&pieces, &mut String::new()),
            None => self.note(UnknownPart::Syntax),
        }
    }
}
