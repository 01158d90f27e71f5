//! A word of a command line, as far as it is known before the line runs.

use std::slice;

/// How much a word may be whose pieces may be nothing, or one of several texts.
const ALTERNATIVES_MAX: usize = 512;

/// A word after all quotes are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineWord {
    Known(String),
    /// Known only when the line runs. It may be several words, each of this shape, or none.
    Computed(WordShape),
}

/// What a word that is computed surely consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordShape(Vec<ShapePiece>);

/// A part of a word that is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapePiece {
    Text(String),
    /// One of these texts.
    OneOf(Vec<String>),
    /// A number without a sign, or nothing.
    Digits,
    /// Such numbers, each a word of its own. Of what stands beside them nothing is known then.
    Numbers,
    /// Letters and digits of ASCII, or nothing.
    Letters,
    /// Any text without `/`. It is not nothing where it is a whole part of a path.
    Name,
    /// Any text of which no part between `/` is `.` or `..`.
    Path,
    /// Such a text that begins with a letter, a digit or `_`, and has no blanks and patterns; or nothing.
    Branch,
    Any,
    /// Any words, or none. Of what stands beside it nothing is known then.
    Words,
}

impl LineWord {
    /// A word of which nothing is known.
    pub fn unknown() -> Self {
        Self::Computed(WordShape(vec![ShapePiece::Words]))
    }

    /// The word that consists of these pieces.
    pub fn of_pieces(pieces: Vec<ShapePiece>) -> Self {
        let is_apart = pieces.len() > 1 && pieces.contains(&ShapePiece::Numbers);
        if is_apart || pieces.contains(&ShapePiece::Words) {
            return Self::unknown();
        }
        let mut whole: Vec<ShapePiece> = Vec::new();
        let is_nothing = |it: &ShapePiece| matches!(it, ShapePiece::Text(text) if text.is_empty());
        for piece in pieces.into_iter().filter(|it| !is_nothing(it)) {
            match (whole.last_mut(), piece) {
                (Some(ShapePiece::Text(text)), ShapePiece::Text(more)) => text.push_str(&more),
                (_, piece) => whole.push(piece),
            }
        }
        match whole.pop() {
            None => Self::Known(String::new()),
            Some(ShapePiece::Text(text)) if whole.is_empty() => Self::Known(text),
            Some(last) => {
                whole.push(last);
                Self::Computed(WordShape(whole))
            }
        }
    }

    /// The word, if it is known.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Computed(_) => None,
        }
    }

    /// The text that it begins with, as far as it is known.
    pub(super) fn beginning(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::Computed(WordShape(pieces)) => match pieces.first() {
                Some(ShapePiece::Text(text)) => text,
                Some(_) | None => "",
            },
        }
    }

    pub fn is_known(&self) -> bool {
        self.text().is_some()
    }

    /// Whether it is an option, or may be one.
    pub fn may_be_flag(&self) -> bool {
        let shape = match self {
            Self::Known(text) => return text.starts_with('-'),
            Self::Computed(WordShape(shape)) => shape,
        };
        let Some(all) = alternatives(shape) else { return true };
        all.iter().any(|pieces| match pieces.first() {
            Some(ShapePiece::Text(text)) => text.starts_with('-'),
            Some(
                ShapePiece::Digits | ShapePiece::Numbers | ShapePiece::Letters | ShapePiece::Branch,
            )
            | None => false,
            Some(
                ShapePiece::OneOf(_)
                | ShapePiece::Name
                | ShapePiece::Path
                | ShapePiece::Any
                | ShapePiece::Words,
            ) => true,
        })
    }

    /// The word without so many bytes at its beginning, which are known.
    pub(super) fn behind(&self, bytes: usize) -> Self {
        let mut pieces = self.pieces();
        if let Some(ShapePiece::Text(text)) = pieces.first_mut() {
            text.drain(..bytes);
        }
        Self::of_pieces(pieces)
    }

    /// Whether it is a number without a sign, or several.
    pub(super) fn is_number(&self) -> bool {
        match self.pieces().as_slice() {
            [ShapePiece::Text(text)] => {
                !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
            }
            [piece] => matches!(piece, ShapePiece::Digits | ShapePiece::Numbers),
            _ => false,
        }
    }

    pub(super) fn pieces(&self) -> Vec<ShapePiece> {
        match self {
            Self::Known(text) => vec![ShapePiece::Text(text.clone())],
            Self::Computed(WordShape(pieces)) => pieces.clone(),
        }
    }
}

impl From<&str> for LineWord {
    fn from(text: &str) -> Self {
        Self::Known(text.to_owned())
    }
}

impl WordShape {
    pub fn pieces(&self) -> &[ShapePiece] {
        &self.0
    }

    /// The paths that it may be, with the directory that each begins with as `resolve` has it; `None` if one is not known, they
    /// are too many, or a part of one may turn out to be `..`.
    pub fn resolved(
        &self,
        resolve: impl Fn(&str) -> Option<Vec<String>>,
    ) -> Option<Vec<Vec<ShapePiece>>> {
        let mut all = Vec::new();
        for pieces in alternatives(&self.0)? {
            if may_lead_up(&pieces) {
                return None;
            }
            let (first, rest) = match pieces.split_first() {
                Some((ShapePiece::Text(text), rest)) => (text.as_str(), rest),
                // It may be a path from the root.
                Some((ShapePiece::Path, _)) => return None,
                Some(_) | None => ("", pieces.as_slice()),
            };
            // A part of the path ends there, or may.
            let is_whole = matches!(rest.first(), None | Some(ShapePiece::Path));
            let end = if is_whole { Some(first.len()) } else { first.rfind('/').map(|at| at + 1) };
            let (directory, name) = first.split_at(end.unwrap_or_default());
            for mut begin in resolve(directory)? {
                // What follows the directory in which it is may look like a path from the root.
                if is_whole && begin.is_empty() && !directory.is_empty() {
                    begin.push('.');
                } else if !(is_whole || begin.is_empty() || begin.ends_with('/')) {
                    begin.push('/');
                }
                begin.push_str(name);
                let mut whole = vec![ShapePiece::Text(begin)];
                whole.extend(rest.iter().cloned());
                all.push(with_single_slashes(whole));
            }
        }
        Some(all)
    }
}

/// What a word of these pieces may be, each with one of several texts, and without what may be nothing; none if that is too
/// much.
fn alternatives(pieces: &[ShapePiece]) -> Option<Vec<Vec<ShapePiece>>> {
    let mut all = vec![Vec::new()];
    for piece in pieces {
        let ways: Vec<ShapePiece> = match piece {
            ShapePiece::OneOf(texts) => texts.iter().cloned().map(ShapePiece::Text).collect(),
            ShapePiece::Digits
            | ShapePiece::Numbers
            | ShapePiece::Letters
            | ShapePiece::Path
            | ShapePiece::Branch => vec![piece.clone(), ShapePiece::Text(String::new())],
            ShapePiece::Text(_) | ShapePiece::Name | ShapePiece::Any | ShapePiece::Words => {
                vec![piece.clone()]
            }
        };
        if all.len() * ways.len() > ALTERNATIVES_MAX {
            return None;
        }
        let with = |way: &ShapePiece| {
            let way = way.clone();
            all.iter().map(move |before| [before.as_slice(), slice::from_ref(&way)].concat())
        };
        all = ways.iter().flat_map(with).collect();
    }
    Some(all.into_iter().map(|pieces| LineWord::of_pieces(pieces).pieces()).collect())
}

/// A path of these pieces without slashes that mean nothing.
fn with_single_slashes(mut pieces: Vec<ShapePiece>) -> Vec<ShapePiece> {
    let last = pieces.len() - 1;
    for (at, piece) in pieces.iter_mut().enumerate() {
        let ShapePiece::Text(text) = piece else { continue };
        while text.contains("//") {
            *text = text.replace("//", "/");
        }
        if at == last && text.ends_with('/') && (at > 0 || text.len() > 1) {
            text.pop();
        }
    }
    pieces
}

/// Whether a part of a path may turn out to be `..`, or if something of it may be anything.
fn may_lead_up(pieces: &[ShapePiece]) -> bool {
    let is_dots = |text: &str| !text.is_empty() && text.bytes().all(|it| it == b'.');
    // What is known of the part of the path that is read.
    let mut known = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            ShapePiece::Any | ShapePiece::Words => return true,
            ShapePiece::Text(text) => {
                let mut parts = text.split('/');
                known.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    // In front of all that is computed, it is a part of the directory, which is resolved.
                    if is_dots(&known) && at > 0 {
                        return true;
                    }
                    part.clone_into(&mut known);
                }
            }
            ShapePiece::Path if at < 2 || !is_dots(&known) => known.clear(),
            ShapePiece::OneOf(_)
            | ShapePiece::Digits
            | ShapePiece::Numbers
            | ShapePiece::Letters
            | ShapePiece::Name
            | ShapePiece::Path
            | ShapePiece::Branch => {
                if is_dots(&known) {
                    return true;
                }
            }
        }
    }
    is_dots(&known) && pieces.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> LineWord {
        let pieces = text.chars().map(|it| match it {
            '*' => ShapePiece::Name,
            '#' => ShapePiece::Digits,
            '%' => ShapePiece::Path,
            it => ShapePiece::Text(it.to_string()),
        });
        LineWord::of_pieces(pieces.collect())
    }

    #[test]
    fn a_word_is_known_if_all_its_pieces_are_text() {
        assert_eq!(word("a/b"), LineWord::from("a/b"));
        assert_eq!(word(""), LineWord::from(""));
        assert_eq!(word("a*").text(), None);
    }

    #[test]
    fn a_word_may_be_a_flag_if_it_may_begin_with_a_dash() {
        for may_be in ["-r", "*", "-*", "#-r", "##-r"] {
            assert!(word(may_be).may_be_flag(), "{may_be}");
        }
        for other in ["r", "x/*", "#", "x%", "#r-"] {
            assert!(!word(other).may_be_flag(), "{other}");
        }
        assert!(LineWord::unknown().may_be_flag());
    }

    #[test]
    fn a_path_stays_below_its_directory_unless_a_part_may_be_dots() {
        let stays = |text: &str| match word(text) {
            LineWord::Computed(shape) => shape.resolved(|it| Some(vec![it.to_owned()])).is_some(),
            LineWord::Known(_) => panic!("{text}"),
        };
        for up in [".*", "a/.*", "a/..*", "x*/../y", "x*/..", ".#/x", "*./x", "a%/..", "a%.."] {
            assert!(!stays(up), "{up}");
        }
        for below in ["../*", "a.*", "./*.c", "*/x", "a/*/b*.c", "src%", ".%.c", "..%/x"] {
            assert!(stays(below), "{below}");
        }
        let LineWord::Computed(unknown) = LineWord::unknown() else { panic!() };
        assert_eq!(unknown.resolved(|_| Some(Vec::new())), None);
    }

    #[test]
    fn a_shape_is_resolved_in_each_directory_that_it_may_begin_with() {
        let resolved = |word: LineWord| {
            let LineWord::Computed(shape) = word else { panic!("{word:?}") };
            let all = shape.resolved(|directory| Some(vec![format!("<{directory}>")]));
            all.unwrap().into_iter().map(LineWord::of_pieces).collect::<Vec<_>>()
        };
        assert_eq!(resolved(word("../src/a*.c")), [word("<../src/>/a*.c")]);
        assert_eq!(resolved(word("src%/x")), [word("<src>%/x"), word("<src/x>")]);
        assert_eq!(resolved(word("#/x")), [word("<>/#/x"), word("</x>")]);
        assert_eq!(resolved(word("a*//b#/c/")), [word("<>/a*/b#/c"), word("<>/a*/b/c")]);
        let one = ShapePiece::OneOf(["a", "/etc/", ""].map(str::to_owned).to_vec());
        let several = LineWord::of_pieces(vec![one, ShapePiece::Text("/hosts".into())]);
        assert_eq!(resolved(several), ["<a/hosts>", "</etc/hosts>", "</hosts>"].map(word));
    }
}
