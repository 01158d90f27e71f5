//! Words: what is left of them after their quotes are removed, and the commands inside of them.

use brush_parser::ast::Word;

use crate::core::command_line::quoting::{Surroundings, WordPiece, is_name, pieces};
use crate::core::command_line::{LineWord, ShapePiece, ShellLineReader, UnknownPart};

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
pub(super) struct Quotes {
    pub(super) single: bool,
    double: bool,
}

impl Quotes {
    pub(super) fn take(&mut self, letter: char) {
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
    pub(super) fn word(&mut self, word: &Word) -> LineWord {
        let raw = word.value.as_str();
        if raw == "[" {
            return LineWord::from(raw);
        }
        LineWord::of_pieces(self.pieces(raw, Surroundings::Nothing))
    }

    /// What a word consists of.
    fn pieces(&mut self, raw: &str, around: Surroundings) -> Vec<ShapePiece> {
        let Some(pieces) = pieces(raw, around) else {
            self.note(UnknownPart::Syntax);
            return vec![ShapePiece::Words];
        };
        let plain = |sign: &str| {
            pieces.iter().any(|it| matches!(it, WordPiece::Plain(text) if text.contains(sign)))
        };
        // A parenthesis belongs to a pattern, which runs commands in zsh.
        if plain("(") {
            self.note(UnknownPart::Expansion);
        }
        let mut shape = Vec::new();
        let mut pieces = pieces.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let is_first = shape.is_empty();
            // zsh takes what follows for an index or a modifier, and braces make several names of one.
            let goes_on = match pieces.peek() {
                Some(WordPiece::Plain(next) | WordPiece::Quoted(next)) => {
                    next.starts_with(['[', ':', '{'])
                }
                Some(_) | None => false,
            };
            match matches!(piece, WordPiece::Parameter { is_plain: true, .. }) && goes_on {
                true => shape.push(ShapePiece::Words),
                false => self.piece(piece, is_first, &mut shape),
            }
        }
        shape
    }

    fn piece(&mut self, piece: WordPiece<'_>, is_first: bool, shape: &mut Vec<ShapePiece>) {
        match piece {
            WordPiece::Plain(plain) => expanded(plain, shape),
            WordPiece::Quoted(quoted) => shape.push(ShapePiece::Text(quoted.to_owned())),
            WordPiece::Computed => shape.push(ShapePiece::Words),
            WordPiece::Parameter { name: "HOME", .. } if is_first => {
                shape.push(ShapePiece::Text("~".to_owned()));
            }
            WordPiece::Parameter { name, is_plain, is_quoted } => {
                if !is_plain {
                    self.note(UnknownPart::Expansion);
                }
                shape.extend(self.parameter(name, is_quoted));
            }
            WordPiece::Command { line, is_quoted } => {
                let before = self.found.calls.len();
                self.script(&line);
                shape.extend(self.output(&line, before, is_quoted));
            }
            WordPiece::Arithmetic(expression) => {
                self.arithmetic(expression);
                shape.push(ShapePiece::Name);
            }
        }
    }

    /// What stands for a parameter.
    fn parameter(&mut self, name: &str, is_quoted: bool) -> Vec<ShapePiece> {
        const NUMBERS: [&str; 4] = ["$", "!", "?", "#"];
        let is_length = name.strip_prefix('#').is_some_and(|it| !it.is_empty() && is_name(it));
        if NUMBERS.contains(&name) || is_length {
            return vec![ShapePiece::Digits];
        }
        if name == "PWD"
            && is_quoted
            && let Some(directory) = self.directory()
        {
            return vec![directory];
        }
        let (variable, suffix) = match name.split_once('%') {
            Some((variable, suffix)) => (variable, Some(suffix.trim_start_matches('%'))),
            None => (name, None),
        };
        // Another shell inside of the line has variables of its own.
        let is_outermost = self.depth == 1;
        let value = self.variables.value(variable).filter(|_| is_outermost);
        let value = value.filter(|value| is_quoted || is_one_word(value));
        match (value, suffix) {
            (Some(value), None) => value.pieces(),
            (Some(value), Some(suffix)) => without_suffix(value, suffix),
            // In quotes, only this is several words.
            (None, _) if is_quoted && !name.contains('@') => vec![ShapePiece::Any],
            (None, _) => vec![ShapePiece::Words],
        }
    }

    /// A here-document in which a shell expands parameters and commands.
    pub(super) fn here_document(&mut self, text: &str) {
        self.pieces(text, Surroundings::HereDocument);
    }
}

/// A value without what it ends with, if that is the same text each time.
fn without_suffix(value: &LineWord, suffix: &str) -> Vec<ShapePiece> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    let mut pieces = value.pieces();
    match pieces.last_mut() {
        Some(ShapePiece::Text(text)) if text.ends_with(suffix) && suffix.chars().all(is_plain) => {
            text.truncate(text.len() - suffix.len());
            pieces
        }
        Some(_) | None => vec![ShapePiece::Words],
    }
}

/// Whether a shell takes a value for one word, and for no pattern, where it is not quoted.
fn is_one_word(value: &LineWord) -> bool {
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+=:,@%~".contains(it);
    let is_plain = |text: &String| text.chars().all(is_plain);
    value.pieces().iter().all(|piece| match piece {
        ShapePiece::Text(text) => is_plain(text),
        ShapePiece::OneOf(texts) => texts.iter().all(is_plain),
        ShapePiece::Digits | ShapePiece::Letters | ShapePiece::Branch => true,
        ShapePiece::Numbers
        | ShapePiece::Name
        | ShapePiece::Path
        | ShapePiece::Any
        | ShapePiece::Words => false,
    })
}

/// Whether these characters between brackets stand for one character, and the bracket behind them is the last one.
fn is_plain_class(inner: &str) -> bool {
    !inner.trim_start_matches(['!', '^']).is_empty() && !inner.contains(['/', '['])
}

/// Appends what a shell makes of a text outside of quotes: patterns stand for names of files, braces for several words.
fn expanded(text: &str, shape: &mut Vec<ShapePiece>) {
    let mut rest = text;
    while let Some(at) = rest.find(['*', '?', '[', '{']) {
        let (before, found) = rest.split_at(at);
        if !before.is_empty() {
            shape.push(ShapePiece::Text(before.to_owned()));
        }
        let end_at = |close: char| found.find(close).map(|end| (&found[1..end], &found[end + 1..]));
        rest = match &found[..1] {
            "{" => match end_at('}') {
                Some((inner, behind)) if !inner.contains(['{', '*', '?', '[', '/']) => {
                    shape.push(of_braces(inner));
                    behind
                }
                // What is between them may be elsewhere, too.
                Some(_) | None => {
                    shape.push(ShapePiece::Words);
                    ""
                }
            },
            "[" => match end_at(']') {
                Some((inner, behind)) if is_plain_class(inner) => {
                    shape.push(ShapePiece::Name);
                    behind
                }
                Some(_) | None => {
                    shape.push(ShapePiece::Words);
                    ""
                }
            },
            _ if found.starts_with("**") => {
                shape.push(ShapePiece::Words);
                found.trim_start_matches('*')
            }
            _ => {
                shape.push(ShapePiece::Name);
                &found[1..]
            }
        };
    }
    if !rest.is_empty() {
        shape.push(ShapePiece::Text(rest.to_owned()));
    }
}

/// What stands for braces with this between them. Some shells leave them as they are.
fn of_braces(inner: &str) -> ShapePiece {
    let whole = format!("{{{inner}}}");
    if inner.contains(',') {
        let words = inner.split(',').map(str::to_owned);
        return ShapePiece::OneOf(words.chain([whole]).collect());
    }
    // In some shells, other signs are the ends of ranges too, with `/` between them.
    let is_end = |end: &str| {
        let is_letter = end.len() == 1 && end.chars().all(|it| it.is_ascii_alphanumeric());
        is_letter || end.parse::<i64>().is_ok()
    };
    match inner.split_once("..") {
        Some(_) if inner.split("..").all(is_end) => ShapePiece::Name,
        Some(_) => ShapePiece::Words,
        None => ShapePiece::Text(whole),
    }
}
