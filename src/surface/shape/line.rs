//! Lines on the wire: plain text, text with runs of style, cells, or escape sequences again.
//!
//! It turns one line into one of these forms and knows nothing of screens or history.

use std::borrow::Cow;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::frame::line::{Attributes, Color, Line, Style};
use crate::core::ids::RowNumber;

/// How lines are told.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunWire {
    pub col: u16,
    pub len: u16,
    #[serde(flatten)]
    pub style: StyleWire,
}

/// One character with the columns it covers, when more than one, and its style, when not plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CellWire {
    pub ch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<StyleWire>,
}

/// A style: colours as `#rrggbb` or a palette index, and the words of its attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StyleWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attrs: Vec<&'static str>,
}

impl From<Style> for StyleWire {
    fn from(style: Style) -> Self {
        let set = |(bit, name): (Attributes, &'static str)| {
            style.attributes.contains(bit).then_some(name)
        };
        Self {
            fg: color_word(style.foreground),
            bg: color_word(style.background),
            attrs: Attributes::NAMES.into_iter().filter_map(set).collect(),
        }
    }
}

fn color_word(color: Color) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Indexed(index) => Some(index.to_string()),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineWire {
    pub row: u64,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<RunWire>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<CellWire>>,
    /// How many columns at its end are not told, for their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_left_out: Option<u16>,
}

impl LineWire {
    /// The row in the wanted form; escape sequences stand in the text.
    pub fn of(row: RowNumber, line: &Line, format: Format) -> Self {
        let text = match format {
            Format::Ansi => ansi(line),
            Format::Plain | Format::Styled | Format::Cells => line.text.to_string(),
        };
        Self {
            row: row.0,
            text,
            runs: (format == Format::Styled && !line.runs.is_empty()).then(|| runs(line)),
            cells: (format == Format::Cells).then(|| cells(line)),
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

fn runs(line: &Line) -> Vec<RunWire> {
    let wire = |run: &crate::core::frame::line::Run| RunWire {
        col: run.column,
        len: run.columns,
        style: run.style.into(),
    };
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

/// The line as bytes that paint it again, ending in the plain style.
pub fn ansi(line: &Line) -> String {
    let mut out = String::with_capacity(line.text.len() + line.runs.len() * 16);
    let mut style = Style::default();
    let mut column = 0;
    for glyph in line.glyphs() {
        change_style(&mut out, &mut style, line.style_at(glyph.column));
        out.push_str(glyph.text);
        column = glyph.column + glyph.columns;
    }
    let painted = line.runs.last().map_or(0, |run| run.column + run.columns);
    for column in column..painted {
        change_style(&mut out, &mut style, line.style_at(column));
        out.push(' ');
    }
    change_style(&mut out, &mut style, Style::default());
    out
}

fn change_style(out: &mut String, from: &mut Style, to: Style) {
    if *from == to {
        return;
    }
    *from = to;
    out.push_str("\x1b[0");
    // The select-graphic-rendition parameter of each attribute, ECMA-48 8.3.117 and its extensions.
    const PARAMETERS: [(Attributes, &str); 9] = [
        (Attributes::BOLD, "1"),
        (Attributes::DIM, "2"),
        (Attributes::ITALIC, "3"),
        (Attributes::UNDERLINE, "4"),
        (Attributes::DOUBLE_UNDERLINE, "4:2"),
        (Attributes::CURLY_UNDERLINE, "4:3"),
        (Attributes::INVERSE, "7"),
        (Attributes::CONCEALED, "8"),
        (Attributes::STRIKE, "9"),
    ];
    for (bit, parameter) in PARAMETERS {
        if to.attributes.contains(bit) {
            out.push(';');
            out.push_str(parameter);
        }
    }
    push_color(out, to.foreground, "38");
    push_color(out, to.background, "48");
    out.push('m');
}

fn push_color(out: &mut String, color: Color, kind: &str) {
    // Writing into a string cannot fail.
    let _ = match color {
        Color::Default => Ok(()),
        Color::Indexed(index) => write!(out, ";{kind};5;{index}"),
        Color::Rgb(red, green, blue) => write!(out, ";{kind};2;{red};{green};{blue}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::line::Run;

    fn styled(text: &str, column: u16, columns: u16, attributes: Attributes) -> Line {
        let style = Style { foreground: Color::Indexed(1), attributes, ..Style::default() };
        let runs = Box::new([Run { column, columns, style }]);
        Line { text: text.into(), runs, wrapped: false }
    }

    #[test]
    fn escape_sequences_paint_the_run_and_return_to_plain() {
        let line = styled("abc", 1, 1, Attributes::BOLD);
        assert_eq!(ansi(&line), "a\x1b[0;1;38;5;1mb\x1b[0mc");
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
        assert_eq!((style.fg.as_deref(), style.attrs.as_slice()), (Some("1"), &["bold"][..]));
    }
}
