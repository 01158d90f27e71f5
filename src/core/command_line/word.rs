//! A word of a command line, as far as it is known before the line runs.

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
    /// Any text without `/`.
    Name,
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
    pub(super) fn of_pieces(pieces: Vec<ShapePiece>) -> Self {
        if pieces.contains(&ShapePiece::Words) {
            return Self::unknown();
        }
        let mut whole: Vec<ShapePiece> = Vec::new();
        for piece in pieces {
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
        match shape.first() {
            Some(ShapePiece::Text(text)) => text.starts_with('-'),
            Some(ShapePiece::OneOf(texts)) => {
                texts.iter().any(|it| it.is_empty() || it.starts_with('-'))
            }
            Some(ShapePiece::Digits) => false,
            Some(ShapePiece::Name | ShapePiece::Any | ShapePiece::Words) | None => true,
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

    /// Whether a path of this shape surely is in the directory that its text begins with, or below: no part of it may turn
    /// out to be `..`.
    pub fn stays_below(&self) -> bool {
        !may_lead_up(&self.0)
    }

    /// The directory that its text begins with, up to the last `/` of it, and the pieces behind that.
    pub fn in_directory(&self) -> (&str, Vec<ShapePiece>) {
        let (first, rest) = match self.0.split_first() {
            Some((ShapePiece::Text(text), rest)) => (text.as_str(), rest),
            Some(_) | None => ("", self.0.as_slice()),
        };
        let (directory, name) = first.split_at(first.rfind('/').map_or(0, |at| at + 1));
        let name = Some(name).filter(|it| !it.is_empty());
        let name = name.map(|it| ShapePiece::Text(it.to_owned()));
        (directory, name.into_iter().chain(rest.iter().cloned()).collect())
    }
}

/// Whether a part of a path may turn out to be `..`, or if something of it may be anything.
fn may_lead_up(pieces: &[ShapePiece]) -> bool {
    let is_dots = |text: &str| !text.is_empty() && text.bytes().all(|it| it == b'.');
    // What is known of the part of the path that is read.
    let (mut known, mut is_first) = (String::new(), true);
    for piece in pieces {
        match piece {
            ShapePiece::Any | ShapePiece::Words => return true,
            ShapePiece::OneOf(texts) if texts.iter().any(|it| it.contains("..") || is_dots(it)) => {
                return true;
            }
            ShapePiece::Text(text) => {
                let mut parts = text.split('/');
                known.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    // In front of all that is computed, it is a part of the directory, which is resolved.
                    if is_dots(&known) && !is_first {
                        return true;
                    }
                    part.clone_into(&mut known);
                }
            }
            ShapePiece::OneOf(_) | ShapePiece::Digits | ShapePiece::Name => {
                if is_dots(&known) {
                    return true;
                }
            }
        }
        is_first = false;
    }
    is_dots(&known) && !is_first && pieces.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> LineWord {
        let pieces = text.chars().map(|it| match it {
            '*' => ShapePiece::Name,
            '#' => ShapePiece::Digits,
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
        for (text, may_be) in
            [("-r", true), ("r", false), ("*", true), ("x/*", false), ("-*", true), ("#", false)]
        {
            assert_eq!(word(text).may_be_flag(), may_be, "{text}");
        }
        assert!(LineWord::unknown().may_be_flag());
    }

    #[test]
    fn a_path_stays_below_its_directory_unless_a_part_may_be_dots() {
        let stays = |text: &str| match word(text) {
            LineWord::Computed(shape) => shape.stays_below(),
            LineWord::Known(_) => panic!("{text}"),
        };
        for up in [".*", "a/.*", "a/..*", "x*/../y", "x*/..", ".#/x", "*./x"] {
            assert!(!stays(up), "{up}");
        }
        for below in ["../*", "a.*", "./*.c", "*/x", "a/*/b*.c"] {
            assert!(stays(below), "{below}");
        }
        let LineWord::Computed(unknown) = LineWord::unknown() else { panic!() };
        assert!(!unknown.stays_below());
    }

    #[test]
    fn a_shape_is_in_the_directory_that_its_text_begins_with() {
        let LineWord::Computed(shape) = word("../src/a*.c") else { panic!() };
        let (directory, rest) = shape.in_directory();
        assert_eq!(directory, "../src/");
        assert_eq!(LineWord::of_pieces(rest), word("a*.c"));
    }
}
