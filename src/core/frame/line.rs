//! One row of text with its colours: the compact form that history stores and deltas compare.

use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

/// A colour as the program set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 256 palette colours; 0 to 15 are the named ones.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// Attributes of text, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub u16);

impl Attributes {
    pub const BOLD: Self = Self(1);
    pub const DIM: Self = Self(1 << 1);
    pub const ITALIC: Self = Self(1 << 2);
    pub const UNDERLINE: Self = Self(1 << 3);
    pub const DOUBLE_UNDERLINE: Self = Self(1 << 4);
    pub const CURLY_UNDERLINE: Self = Self(1 << 5);
    pub const INVERSE: Self = Self(1 << 6);
    pub const CONCEALED: Self = Self(1 << 7);
    pub const STRIKE: Self = Self(1 << 8);
    pub const BLINK: Self = Self(1 << 9);

    /// Every attribute with its name in the protocol.
    pub const NAMES: [(Self, &'static str); 10] = [
        (Self::BOLD, "bold"),
        (Self::DIM, "dim"),
        (Self::ITALIC, "italic"),
        (Self::UNDERLINE, "underline"),
        (Self::DOUBLE_UNDERLINE, "double_underline"),
        (Self::CURLY_UNDERLINE, "curly_underline"),
        (Self::INVERSE, "inverse"),
        (Self::CONCEALED, "concealed"),
        (Self::STRIKE, "strike"),
        (Self::BLINK, "blink"),
    ];

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    pub foreground: Color,
    pub background: Color,
    pub attributes: Attributes,
}

/// A stretch of columns in one style. Columns outside every run are plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The first column, from 0.
    pub column: u16,
    /// How many columns it covers, at least 1.
    pub columns: u16,
    pub style: Style,
}

/// A stretch of columns that the program linked to a target (OSC 8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The first column, from 0.
    pub column: u16,
    /// How many columns it covers, at least 1.
    pub columns: u16,
    pub target: Arc<str>,
}

impl Link {
    /// The most bytes of a target, as in other terminals.
    pub const BYTES_MAX: usize = 2_083;

    /// Whether a terminal may show this target: other schemes can run a program, or name nothing outside.
    pub fn is_allowed(target: &str) -> bool {
        const SCHEMES: [&str; 4] = ["http", "https", "mailto", "file"];
        let scheme = target.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it)))
            && target.len() <= Self::BYTES_MAX
            && target.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

/// One row: its text without trailing plain blanks, and its styled runs. Answers share the text.
///
/// Text that the program conceals (SGR 8) is not stored. Blanks under a concealed run replace it, so
/// that no client reads what a person cannot see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    pub text: Arc<str>,
    /// In order of columns, without overlap or plain runs.
    pub runs: Box<[Run]>,
    /// In order of columns, without overlap.
    pub links: Box<[Link]>,
    /// Whether the text continues in the next row because it reached the edge, not because the
    /// program ended the line.
    pub wrapped: bool,
}

/// One character of a line with the columns it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glyph<'a> {
    pub column: u16,
    /// 1, or 2 for a wide character.
    pub columns: u16,
    /// The character with the zero-width marks that follow it.
    pub text: &'a str,
}

/// How many columns the text of a line covers.
pub fn columns_of(text: &str) -> u16 {
    glyphs_of(text).last().map_or(0, |glyph| glyph.column + glyph.columns)
}

/// The characters of the text of a line.
pub fn glyphs_of(text: &str) -> impl Iterator<Item = Glyph<'_>> {
    let (mut column, mut rest) = (0, text);
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?.width().unwrap_or(0) as u16;
            let mark = |character: char| character.width().unwrap_or(0) == 0;
            let end = rest.char_indices().skip(1).find(|(_, character)| !mark(*character));
            let (text, behind) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
            rest = behind;
            // A mark at the very beginning has no character to join.
            if first > 0 {
                let glyph = Glyph { column, columns: first, text };
                column += first;
                return Some(glyph);
            }
        }
    })
}

impl Line {
    /// How many columns the text covers.
    pub fn columns(&self) -> u16 {
        columns_of(&self.text)
    }

    /// The text from one column on, up to another.
    pub(crate) fn text_between(&self, first: u16, end: u16) -> &str {
        let (mut start, mut stop, mut at) = (self.text.len(), self.text.len(), 0);
        for glyph in self.glyphs() {
            if glyph.column >= first {
                start = start.min(at);
            }
            if glyph.column >= end {
                stop = at;
                break;
            }
            at += glyph.text.len();
        }
        &self.text[start.min(stop)..stop]
    }

    pub fn glyphs(&self) -> impl Iterator<Item = Glyph<'_>> {
        glyphs_of(&self.text)
    }

    /// The line with blanks in place of concealed text.
    #[must_use]
    pub fn concealed(mut self) -> Self {
        let concealed = |style: Style| style.attributes.contains(Attributes::CONCEALED);
        if !self.runs.iter().any(|run| concealed(run.style)) {
            return self;
        }
        let mut text = String::with_capacity(self.text.len());
        for glyph in self.glyphs() {
            if concealed(self.style_at(glyph.column)) {
                text.extend(std::iter::repeat_n(' ', usize::from(glyph.columns)));
            } else {
                text.push_str(glyph.text);
            }
        }
        self.text = text.trim_end().into();
        self
    }

    pub fn style_at(&self, column: u16) -> Style {
        let covers = |run: &&Run| run.column <= column && column - run.column < run.columns;
        self.runs.iter().find(covers).map_or_else(Style::default, |run| run.style)
    }

    /// The target that a column links to.
    pub fn link_at(&self, column: u16) -> Option<&Arc<str>> {
        let covers = |link: &&Link| link.column <= column && column - link.column < link.columns;
        self.links.iter().find(covers).map(|link| &link.target)
    }

    /// How many columns its text and its runs cover.
    pub fn painted_columns(&self) -> u16 {
        self.runs.last().map_or(0, |run| run.column + run.columns).max(self.columns())
    }

    /// The part of the line from column `from` on that has so many columns at most. A wide character that is
    /// cut in half becomes a blank.
    #[must_use]
    pub fn cut(&self, from: u16, columns: u16) -> Self {
        let end = from.saturating_add(columns);
        if from == 0 && self.painted_columns() <= end {
            return self.clone();
        }
        let mut text = String::new();
        for glyph in self.glyphs() {
            let (start, after) = (glyph.column, glyph.column + glyph.columns);
            if after <= from || start >= end {
                continue;
            }
            text.push_str(if start >= from && after <= end { glyph.text } else { " " });
        }
        let part = |column: u16, columns: u16| {
            let start = column.max(from);
            let columns = column.saturating_add(columns).min(end).saturating_sub(start);
            (columns > 0).then(|| (start - from, columns))
        };
        let run = |run: &Run| {
            let (column, columns) = part(run.column, run.columns)?;
            Some(Run { column, columns, ..*run })
        };
        let link = |link: &Link| {
            let (column, columns) = part(link.column, link.columns)?;
            Some(Link { column, columns, target: Arc::clone(&link.target) })
        };
        Self {
            text: text.into(),
            runs: self.runs.iter().filter_map(run).collect(),
            links: self.links.iter().filter_map(link).collect(),
            wrapped: self.wrapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line { text: text.into(), ..Line::default() }
    }

    #[test]
    fn wide_characters_cover_two_columns_and_marks_join_their_character() {
        let line = line("a漢e\u{301}z");
        let glyphs: Vec<_> = line.glyphs().map(|g| (g.column, g.columns, g.text)).collect();
        assert_eq!(glyphs, [(0, 1, "a"), (1, 2, "漢"), (3, 1, "e\u{301}"), (4, 1, "z")]);
    }

    #[test]
    fn concealed_text_becomes_as_many_blanks() {
        let style = Style { attributes: Attributes::CONCEALED, ..Style::default() };
        let mut line = line("user 漢secret end");
        line.runs = Box::new([Run { column: 5, columns: 8, style }]);
        assert_eq!(&*line.clone().concealed().text, "user          end");
        line.runs = Box::new([Run { column: 4, columns: 40, style }]);
        assert_eq!(&*line.concealed().text, "user");
    }

    #[test]
    fn a_part_of_a_line_keeps_its_runs_and_links_and_half_a_wide_character_is_a_blank() {
        let style = Style { attributes: Attributes::BOLD, ..Style::default() };
        let link = |column, columns| Link { column, columns, target: "http://a".into() };
        let line = Line {
            text: "a漢字b".into(),
            runs: Box::new([Run { column: 1, columns: 4, style }]),
            links: Box::new([link(0, 1), link(3, 3)]),
            wrapped: false,
        };
        let part = line.cut(2, 2);
        assert_eq!(&*part.text, "  ");
        assert_eq!(*part.runs, [Run { column: 0, columns: 2, style }]);
        assert_eq!(*part.links, [link(1, 1)]);
        assert_eq!(&*line.cut(1, 4).text, "漢字");
        assert_eq!(line.cut(0, 6), line);
    }

    #[test]
    fn a_column_outside_every_run_is_plain() {
        let bold = Style { attributes: Attributes::BOLD, ..Style::default() };
        let mut line = line("abcd");
        line.runs = Box::new([Run { column: 1, columns: 2, style: bold }]);
        assert_eq!(line.style_at(0), Style::default());
        assert_eq!(line.style_at(2), bold);
        assert_eq!(line.style_at(3), Style::default());
    }
}
