//! Takes a word apart into its plain, quoted and computed pieces, in time that grows with its length alone.
//!
//! The rules are those of POSIX (Shell Command Language, 2.2 and 2.6), with `$'…'`, `$"…"` and `$[…]` as bash has them.

use std::borrow::Cow;

/// A piece of a word.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WordPiece<'a> {
    /// Outside of quotes.
    Plain(&'a str),
    /// Inside of quotes, or behind a backslash.
    Quoted(&'a str),
    /// What depends on the shell or the language.
    Computed,
    /// A parameter as it is named, in braces with all that is in them. If it is plain, its expansion evaluates nothing.
    Parameter {
        name: &'a str,
        is_plain: bool,
        is_quoted: bool,
    },
    /// A command whose output stands here.
    Command {
        line: Cow<'a, str>,
        is_quoted: bool,
    },
    Arithmetic(&'a str),
}

/// What surrounds a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surroundings {
    Nothing,
    DoubleQuotes,
    /// Where quotes are plain text.
    HereDocument,
}

/// The pieces of a text. `None` if something in it does not end.
pub(super) fn pieces(text: &str, around: Surroundings) -> Option<Vec<WordPiece<'_>>> {
    let mut reader = PieceReader { text, around, begin: 0, pieces: Vec::new() };
    if around == Surroundings::Nothing && is_of_directory_stack(text) {
        reader.pieces.push(WordPiece::Computed);
    }
    reader.read()?;
    Some(reader.pieces)
}

struct PieceReader<'a> {
    text: &'a str,
    around: Surroundings,
    /// Where the text begins that belongs to no piece yet.
    begin: usize,
    pieces: Vec<WordPiece<'a>>,
}

impl<'a> PieceReader<'a> {
    fn read(&mut self) -> Option<()> {
        let (text, bare) = (self.text, self.around == Surroundings::Nothing);
        let mut at = 0;
        while let Some(sign) = text.as_bytes().get(at) {
            let found = match sign {
                b'\\' => self.escaped(at)?,
                b'\'' if bare => {
                    let end = end_of(text, at)?;
                    Some((end, WordPiece::Quoted(inner(text, at, end)?)))
                }
                b'"' if bare => {
                    let end = end_of(text, at)?;
                    self.take(at, end);
                    self.pieces.extend(pieces(inner(text, at, end)?, Surroundings::DoubleQuotes)?);
                    at = end;
                    continue;
                }
                b'`' => {
                    let end = end_of(text, at)?;
                    let line = unescaped(inner(text, at, end)?);
                    Some((end, WordPiece::Command { line, is_quoted: !bare }))
                }
                b'$' => self.dollar(at)?,
                _ => None,
            };
            at = match found {
                Some((end, piece)) => {
                    self.take(at, end);
                    self.pieces.push(piece);
                    end
                }
                None => at + 1,
            };
        }
        self.take(text.len(), text.len());
        Some(())
    }

    /// Makes a piece of the text before `at`; the next one begins at `end`.
    fn take(&mut self, at: usize, end: usize) {
        let before = self.text.get(self.begin..at).unwrap_or_default();
        if !before.is_empty() {
            self.pieces.push(match self.around {
                Surroundings::Nothing => WordPiece::Plain(before),
                Surroundings::DoubleQuotes | Surroundings::HereDocument => {
                    WordPiece::Quoted(before)
                }
            });
        }
        self.begin = end;
    }

    /// What a backslash escapes, if it does here.
    fn escaped(&self, at: usize) -> Option<Option<(usize, WordPiece<'a>)>> {
        let next = self.text.get(at + 1..)?.chars().next()?;
        let is_escaped = match self.around {
            Surroundings::Nothing => true,
            Surroundings::DoubleQuotes => "$`\"\\\n".contains(next),
            Surroundings::HereDocument => "$`\\\n".contains(next),
        };
        let end = at + 1 + next.len_utf8();
        // A backslash at the end of a line joins it with the next one.
        let escaped = if next == '\n' { "" } else { self.text.get(at + 1..end)? };
        Some(is_escaped.then_some((end, WordPiece::Quoted(escaped))))
    }

    /// What a dollar sign begins, if it begins something.
    fn dollar(&mut self, at: usize) -> Option<Option<(usize, WordPiece<'a>)>> {
        const LITERAL_BEFORE: &str = " \t\n/.,|)]}%;\\\"";
        let bare = self.around == Surroundings::Nothing;
        let rest = self.text.get(at + 1..)?;
        let Some(next) = rest.chars().next() else { return Some(None) };
        let whole = |end: usize| inner(self.text, at + 1, end);
        let parameter = |name, is_plain| WordPiece::Parameter { name, is_plain, is_quoted: !bare };
        Some(Some(match next {
            '(' => {
                let end = end_of(self.text, at)?;
                let inside = whole(end)?;
                let is_arithmetic =
                    inside.starts_with('(') && end_of(inside, 0) == Some(inside.len());
                match is_arithmetic {
                    true => (end, WordPiece::Arithmetic(inner(inside, 0, inside.len())?)),
                    false => {
                        let line = Cow::Borrowed(inside);
                        (end, WordPiece::Command { line, is_quoted: !bare })
                    }
                }
            }
            '[' => {
                let end = end_of(self.text, at)?;
                (end, WordPiece::Arithmetic(whole(end)?))
            }
            '{' => {
                let end = end_of(self.text, at)?;
                let name = whole(end)?;
                (end, parameter(name, is_plain_expansion(name)))
            }
            '\'' if bare => {
                let end = end_of(self.text, at)?;
                let quoted = whole(end)?;
                let piece = match (quoted.contains('\\'), quoted.contains("\\'")) {
                    (false, _) => WordPiece::Quoted(quoted),
                    (true, false) => WordPiece::Computed,
                    // Where a shell does not know these quotes, they end here.
                    (true, true) => parameter(self.text.get(at + 1..end)?, false),
                };
                (end, piece)
            }
            '"' if bare => {
                let end = end_of(self.text, at)?;
                self.take(at, at);
                self.pieces.extend(pieces(whole(end)?, Surroundings::DoubleQuotes)?);
                (end, WordPiece::Computed)
            }
            _ if next.is_ascii_alphabetic() || next == '_' => {
                let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
                let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                (at + 1 + length, parameter(&rest[..length], true))
            }
            _ if is_name(&rest[..next.len_utf8()]) => (at + 2, parameter(&rest[..1], true)),
            _ if LITERAL_BEFORE.contains(next) => return Some(None),
            // Some shells expand more, such as `$=name`.
            _ => (at + 1 + next.len_utf8(), WordPiece::Computed),
        }))
    }
}

/// Whether a text names a parameter and nothing else.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_special = text.len() == 1 && "@*#?-$!".contains(text);
    let is_position = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_variable = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    is_special || is_position || (is_variable && text.chars().all(is_part))
}

/// Whether an expansion in braces evaluates nothing: it is a name, or has a default or takes a part away besides.
fn is_plain_expansion(text: &str) -> bool {
    const OPERATORS: [&str; 9] = [":-", ":+", ":?", "-", "+", "#", "%", "/", "^"];
    if is_name(text) || text.strip_prefix('#').is_some_and(is_name) {
        return true;
    }
    let length = text.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    let (name, rest) = text.split_at(length.unwrap_or_default());
    let is_plain = |it: char| it.is_alphanumeric() || " ._-+*?/:,@%^#~=\\".contains(it);
    is_name(name)
        && (OPERATORS.iter().any(|it| rest.starts_with(it)) || matches!(rest, "," | ",,"))
        && rest.chars().all(is_plain)
}

/// Whether a word begins with `~` and a number or sign, which stands for a directory visited before.
fn is_of_directory_stack(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('~') else { return false };
    let first = rest.split('/').next().unwrap_or_default();
    !first.is_empty() && first.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'+' | b'-'))
}

/// What stands between the signs at which something begins and ends.
fn inner(text: &str, at: usize, end: usize) -> Option<&str> {
    text.get(at + 1..end - 1)
}

/// A command between backquotes, as the shell reads it.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_escape = letter == '\\' && letters.peek().is_some_and(|it| "`\\$".contains(*it));
        plain.extend(if is_escape { letters.next() } else { Some(letter) });
    }
    Cow::Owned(plain)
}

/// Where that ends which begins at `at` with a quote, a parenthesis or a dollar sign: behind its last sign.
fn end_of(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match (bytes.get(at)?, bytes.get(at + 1)) {
        (b'\'', _) => Some(at + 2 + bytes.get(at + 1..)?.iter().position(|it| *it == b'\'')?),
        (b'`', _) => closing(text, at + 1, b'`', false),
        (b'"', _) => closing(text, at + 1, b'"', true),
        (b'(', _) => closing(text, at + 1, b')', true),
        (b'$', Some(b'\'')) => closing(text, at + 2, b'\'', false),
        (b'$', Some(b'"')) => closing(text, at + 2, b'"', true),
        (b'$', Some(b'(')) => closing(text, at + 2, b')', true),
        (b'$', Some(b'{')) => closing(text, at + 2, b'}', true),
        (b'$', Some(b'[')) => closing(text, at + 2, b']', true),
        _ => Some(at + 1),
    }
}

/// Where a sign closes what begins before `at`. Something else may begin inside of it where it `nests`.
fn closing(text: &str, mut at: usize, close: u8, nests: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    loop {
        let (sign, next) = (*bytes.get(at)?, bytes.get(at + 1));
        at = match sign {
            _ if sign == close => return Some(at + 1),
            b'\\' => at + 2,
            b'\'' | b'$' if close == b'"' && (sign == b'\'' || next == Some(&b'\'')) => at + 1,
            b'$' if close == b'"' && next == Some(&b'"') => at + 1,
            b'(' if close != b')' => at + 1,
            b'[' if close == b']' => closing(text, at + 1, b']', nests)?,
            b'\'' | b'"' | b'`' | b'$' | b'(' if nests => end_of(text, at)?,
            _ => at + 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::WordPiece::{Arithmetic, Command, Computed, Parameter, Plain, Quoted};
    use super::*;

    fn bare(text: &str) -> Option<Vec<WordPiece<'_>>> {
        pieces(text, Surroundings::Nothing)
    }

    #[test]
    fn quotes_are_taken_away_as_a_shell_does() {
        assert_eq!(bare("a'b c'd"), Some(vec![Plain("a"), Quoted("b c"), Plain("d")]));
        assert_eq!(bare("r\\m"), Some(vec![Plain("r"), Quoted("m")]));
        assert_eq!(bare("\"a\\\"\\b$\""), Some(vec![Quoted("a"), Quoted("\""), Quoted("\\b$")]));
        assert_eq!(bare("a\\\nb"), Some(vec![Plain("a"), Quoted(""), Plain("b")]));
        assert_eq!(bare("$'a'$'\\x41'"), Some(vec![Quoted("a"), Computed]));
        assert_eq!(bare("x$"), Some(vec![Plain("x$")]));
        assert_eq!(bare("größe\\ß"), Some(vec![Plain("größe"), Quoted("ß")]));
        for open in ["'a", "\"a", "a\\", "`a", "$(a", "${a", "$[a", "$'a\\'", "\"$(a\""] {
            assert_eq!(bare(open), None, "{open}");
        }
    }

    #[test]
    fn what_is_computed_is_found_in_and_outside_of_quotes() {
        let name = |name, is_quoted| Parameter { name, is_plain: true, is_quoted };
        let found = [name("a", false), name("1", true), name("b", true), name("$", false)];
        assert_eq!(bare("$a\"$1${b}\"$$").as_deref(), Some(found.as_slice()));
        let evaluated = |name| Parameter { name, is_plain: false, is_quoted: false };
        assert_eq!(bare("${a:-$(x '}')}"), Some(vec![evaluated("a:-$(x '}')")]));
        assert_eq!(bare("${a[0]}"), Some(vec![evaluated("a[0]")]));
        let command = |line, is_quoted| Command { line: Cow::Borrowed(line), is_quoted };
        let nested = "$(rm \"$(echo ')')\" ')' \\))";
        let inner = "rm \"$(echo ')')\" ')' \\)";
        assert_eq!(bare(nested), Some(vec![command(inner, false)]));
        assert_eq!(bare("\"`a \\`b\\``\""), Some(vec![command("a `b`", true)]));
        assert_eq!(bare("$((1 + (2)))"), Some(vec![Arithmetic("1 + (2)")]));
        assert_eq!(bare("$((a);(b))"), Some(vec![command("(a);(b)", false)]));
        assert_eq!(bare("$[a[1]]x"), Some(vec![Arithmetic("a[1]"), Plain("x")]));
        assert_eq!(bare("$\"$(a)\""), Some(vec![command("a", true), Computed]));
        assert_eq!(bare("$=a"), Some(vec![Computed, Plain("a")]));
        assert_eq!(bare("~12/x"), Some(vec![Computed, Plain("~12/x")]));
        assert_eq!(bare("~-/x"), Some(vec![Computed, Plain("~-/x")]));
        assert_eq!(bare("~ada/x"), Some(vec![Plain("~ada/x")]));
        assert_eq!(
            bare("$'a\\'b'"),
            Some(vec![Parameter { name: "'a\\'b'", is_plain: false, is_quoted: false }])
        );
    }

    #[test]
    fn quotes_are_plain_text_in_a_here_document() {
        let found = pieces("it's \"$(a)\" \\$b", Surroundings::HereDocument);
        let expected = [
            Quoted("it's \""),
            Command { line: Cow::Borrowed("a"), is_quoted: true },
            Quoted("\" "),
            Quoted("$"),
            Quoted("b"),
        ];
        assert_eq!(found.as_deref(), Some(expected.as_slice()));
    }

    #[test]
    fn what_is_nested_deeply_takes_no_longer_than_its_length() {
        for (open, close) in [("${a[", "]}"), ("$(", ")"), ("$[", "]"), ("\"${a:-", "}\"")] {
            let text = format!("{}x{}", open.repeat(200), close.repeat(200));
            assert!(bare(&text).is_some(), "{open}");
            assert!(bare(&open.repeat(200)).is_none(), "{open}");
        }
    }
}
