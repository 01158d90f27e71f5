//! Lines: plain text, text with runs of style, cells, or text with escape sequences.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::frame::ansi::ansi;
use crate::core::frame::line::{Attributes, Color, Line, Link, Run, Style};
use crate::core::ids::RowNumber;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Plain,
    Styled,
    Ansi,
    Cells,
}

/// A stretch of columns in one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunWire {
    pub col: u16,
    pub len: u16,
    #[serde(flatten)]
    pub style: StyleWire,
}

/// A stretch of columns that links to a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkWire {
    pub col: u16,
    pub len: u16,
    pub target: String,
}

/// One character with the columns it covers, when more than one, and its style, when not plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellWire {
    pub ch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<StyleWire>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StyleWire {
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<ColorWire>,
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<ColorWire>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attrs: Vec<AttributeWord>,
}

/// A colour that is not the terminal's own: `#rrggbb`, or the index of a palette colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ColorWire {
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl ColorWire {
    fn of(color: Color) -> Option<Self> {
        match color {
            Color::Default => None,
            Color::Indexed(index) => Some(Self::Indexed(index)),
            Color::Rgb(red, green, blue) => Some(Self::Rgb(red, green, blue)),
        }
    }
}

impl From<ColorWire> for Color {
    fn from(color: ColorWire) -> Self {
        match color {
            ColorWire::Indexed(index) => Self::Indexed(index),
            ColorWire::Rgb(red, green, blue) => Self::Rgb(red, green, blue),
        }
    }
}

impl From<ColorWire> for String {
    fn from(color: ColorWire) -> Self {
        match color {
            ColorWire::Indexed(index) => index.to_string(),
            ColorWire::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

impl TryFrom<String> for ColorWire {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let part = |hex: &str, at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let color = match word.strip_prefix('#') {
            None => word.parse().ok().map(Self::Indexed),
            Some(hex) => part(hex, 0)
                .zip(part(hex, 2))
                .zip(part(hex, 4))
                .map(|((red, green), blue)| Self::Rgb(red, green, blue)),
        };
        color.ok_or_else(|| format!("not a colour: {word:?}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttributeWord {
    Bold,
    Dim,
    Italic,
    Underline,
    DoubleUnderline,
    CurlyUnderline,
    Inverse,
    Concealed,
    Strike,
    Blink,
}

const ATTRIBUTES: [(Attributes, AttributeWord); 10] = [
    (Attributes::BOLD, AttributeWord::Bold),
    (Attributes::DIM, AttributeWord::Dim),
    (Attributes::ITALIC, AttributeWord::Italic),
    (Attributes::UNDERLINE, AttributeWord::Underline),
    (Attributes::DOUBLE_UNDERLINE, AttributeWord::DoubleUnderline),
    (Attributes::CURLY_UNDERLINE, AttributeWord::CurlyUnderline),
    (Attributes::INVERSE, AttributeWord::Inverse),
    (Attributes::CONCEALED, AttributeWord::Concealed),
    (Attributes::STRIKE, AttributeWord::Strike),
    (Attributes::BLINK, AttributeWord::Blink),
];

impl From<Style> for StyleWire {
    fn from(style: Style) -> Self {
        let set = |(bit, word)| style.attributes.contains(bit).then_some(word);
        Self {
            fg: ColorWire::of(style.foreground),
            bg: ColorWire::of(style.background),
            attrs: ATTRIBUTES.into_iter().filter_map(set).collect(),
        }
    }
}

impl From<&StyleWire> for Style {
    fn from(style: &StyleWire) -> Self {
        let set = ATTRIBUTES.iter().filter(|(_, word)| style.attrs.contains(word));
        Self {
            foreground: style.fg.map_or(Color::Default, Color::from),
            background: style.bg.map_or(Color::Default, Color::from),
            attributes: set.fold(Attributes::default(), |all, (bit, _)| all.with(*bit)),
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineWire {
    pub row: u64,
    pub text: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<RunWire>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<CellWire>>,
    /// The links in styled rows and those of cells.
    // Rare, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkWire>,
    /// How many columns at its end are left out for their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_left_out: Option<u16>,
}

impl LinkWire {
    fn of(link: &Link) -> Self {
        Self { col: link.column, len: link.columns, target: link.target.to_string() }
    }

    fn link(&self) -> Link {
        Link { column: self.col, columns: self.len, target: self.target.as_str().into() }
    }
}

impl LineWire {
    /// The row in this form; escape sequences are part of the text.
    pub fn of(row: RowNumber, line: &Line, format: Format) -> Self {
        let text = match format {
            Format::Ansi => ansi(line).into(),
            Format::Plain | Format::Styled | Format::Cells => Arc::clone(&line.text),
        };
        Self {
            row: row.0,
            text,
            runs: (format == Format::Styled && !line.runs.is_empty()).then(|| runs(line)),
            cells: (format == Format::Cells).then(|| cells(line)),
            links: match format {
                Format::Styled | Format::Cells => line.links.iter().map(LinkWire::of).collect(),
                Format::Plain | Format::Ansi => Vec::new(),
            },
            columns_left_out: None,
        }
    }

    /// The text, and how much of the row is missing.
    pub fn told(&self) -> Cow<'_, str> {
        match self.columns_left_out {
            None => Cow::Borrowed(&self.text),
            Some(left_out) => {
                Cow::Owned(format!("{}[… {left_out} more columns of this row]", self.text))
            }
        }
    }
}

/// The line that a styled row, or one of cells, stands for.
impl From<&LineWire> for Line {
    fn from(row: &LineWire) -> Self {
        let links = row.links.iter().map(LinkWire::link).collect();
        let Some(cells) = &row.cells else {
            let run = |run: &RunWire| Run {
                column: run.col,
                columns: run.len,
                style: (&run.style).into(),
            };
            let runs = row.runs.iter().flatten().map(run).collect();
            return Self { text: Arc::clone(&row.text), runs, links, wrapped: false };
        };
        let (mut text, mut runs, mut column) = (String::new(), Vec::new(), 0);
        for cell in cells {
            let columns = cell.width.unwrap_or(1);
            if let Some(style) = &cell.style {
                runs.push(Run { column, columns, style: style.into() });
            }
            text.push_str(&cell.ch);
            column += columns;
        }
        Self { text: text.into(), runs: runs.into(), links, wrapped: false }
    }
}

fn runs(line: &Line) -> Vec<RunWire> {
    let wire = |run: &Run| RunWire { col: run.column, len: run.columns, style: run.style.into() };
    line.runs.iter().map(wire).collect()
}

fn cells(line: &Line) -> Vec<CellWire> {
    let mut cells = Vec::new();
    let mut column = 0;
    for glyph in line.glyphs() {
        let style = line.style_at(glyph.column);
        cells.push(CellWire {
            ch: glyph.text.to_owned(),
            width: (glyph.columns > 1).then_some(glyph.columns),
            style: (style != Style::default()).then(|| style.into()),
        });
        column = glyph.column + glyph.columns;
    }
    // Colour reaches further than text where a program paints blanks.
    let painted = line.runs.last().map_or(0, |run| run.column + run.columns);
    for column in column..painted {
        let style = line.style_at(column);
        let style = (style != Style::default()).then(|| style.into());
        cells.push(CellWire { ch: " ".to_owned(), width: None, style });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styled(text: &str, column: u16, columns: u16, attributes: Attributes) -> Line {
        let style = Style { foreground: Color::Indexed(1), attributes, ..Style::default() };
        let runs = Box::new([Run { column, columns, style }]);
        Line { text: text.into(), runs, ..Line::default() }
    }

    #[test]
    fn painted_blanks_beyond_the_text_are_cells_too() {
        let line = styled("a", 2, 2, Attributes::INVERSE);
        let cells = LineWire::of(RowNumber(0), &line, Format::Cells).cells.expect("cells");
        let styles: Vec<bool> = cells.iter().map(|cell| cell.style.is_some()).collect();
        assert_eq!(styles, [false, false, true, true]);
    }

    #[test]
    fn runs_are_told_only_where_they_are_asked_for() {
        let line = styled("abc", 0, 3, Attributes::BOLD);
        assert!(LineWire::of(RowNumber(7), &line, Format::Plain).runs.is_none());
        let styled = LineWire::of(RowNumber(7), &line, Format::Styled);
        let style = &styled.runs.expect("runs")[0].style;
        let expected = (Some(ColorWire::Indexed(1)), &[AttributeWord::Bold][..]);
        assert_eq!((style.fg, style.attrs.as_slice()), expected);
    }

    #[test]
    fn runs_and_cells_read_back_as_the_line_they_were_made_of() {
        let style = Style { background: Color::Rgb(10, 11, 12), ..Style::default() };
        let runs = Box::new([Run { column: 0, columns: 2, style }]);
        let links = Box::new([Link { column: 2, columns: 1, target: "http://a".into() }]);
        let line = Line { text: "漢a".into(), runs, links, wrapped: false };
        for format in [Format::Styled, Format::Cells] {
            let written =
                serde_json::to_string(&LineWire::of(RowNumber(1), &line, format)).unwrap();
            let read: LineWire = serde_json::from_str(&written).unwrap();
            assert_eq!(Line::from(&read), line, "{written}");
        }
        assert!(serde_json::from_str::<ColorWire>("\"#0a0b\"").is_err());
    }
}
