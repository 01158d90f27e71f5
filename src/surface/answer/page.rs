//! The rows of one answer: as many whole ones as there is room for, and how many were left out.

use std::borrow::Borrow;
use std::fmt;

use serde_json::{Value, json};

use crate::core::frame::delta::{Delta, Update};
use crate::core::frame::line::Line;
use crate::core::ids::RowNumber;
use crate::surface::answer::budget::{escaped_bytes, json_bytes};
use crate::wire::delta::{DeltaWire, UpdateWire};
use crate::wire::line::{Format, LineWire};

/// As many rows as most screens have.
const SCREEN_ROWS: usize = 64;

/// How a row stands in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its text, for programs alone.
    Text,
    /// Its text, for programs and for models.
    TextTwice,
    /// An object, for programs alone.
    Object,
    /// Its text, and an object, for programs alone, in a text that is JSON itself.
    NestedText,
    NestedObject,
    /// An object for programs, and its number and text for models.
    ObjectAndText,
}

/// What is told of a row that is larger than all the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Larger {
    /// All of it.
    Whole,
    /// The beginning, and how many columns are left out.
    Beginning,
}

/// The room that the rows of an answer have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRoom {
    /// How many bytes of JSON they take together.
    pub bytes: usize,
    pub form: Form,
    pub larger: Larger,
}

/// The rows of an answer, at least one where there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub lines: Vec<LineWire>,
    /// The first row that is left out.
    pub next: Option<RowNumber>,
    /// How many are left out.
    pub left_out: usize,
}

impl Page {
    /// The first of these rows, as many as fit.
    pub fn of<'a>(
        rows: impl Iterator<Item = (RowNumber, &'a Line)> + Clone,
        format: Format,
        room: PageRoom,
    ) -> Self {
        let mut lines = Vec::with_capacity(rows.size_hint().0.min(SCREEN_ROWS));
        let mut bytes = 0;
        for (row, line) in rows.clone() {
            let wire = LineWire::of(row, line, format);
            bytes += room.form.bytes(&wire);
            if bytes <= room.bytes {
                lines.push(wire);
                continue;
            }
            if lines.is_empty() {
                lines.push(match room.larger {
                    Larger::Whole => wire,
                    Larger::Beginning => beginning(row, line, format, room),
                });
            }
            break;
        }
        let mut left_out = rows.skip(lines.len());
        let next = left_out.next().map(|(row, _)| row);
        let left_out = left_out.count() + usize::from(next.is_some());
        Self { lines, next, left_out }
    }
}

impl Form {
    /// How many bytes a row takes.
    fn bytes(self, line: &LineWire) -> usize {
        /// The end of a line, and a number before it.
        const END: usize = 2;
        const NUMBER: usize = 24;
        let text = || escaped_bytes(&line.told()) + END;
        // One comma stands between two of them.
        let object = || json_bytes(line) + 1;
        let nested = |json: &Value| escaped_bytes(&json.to_string());
        match self {
            Self::Text => text(),
            Self::TextTwice => 2 * text(),
            Self::Object => object(),
            Self::ObjectAndText => object() + NUMBER + text(),
            // The escape of the end of a line has one itself there.
            Self::NestedText => nested(&json!(line.told())) + END / 2,
            Self::NestedObject => nested(&json!(line)) + 1,
        }
    }
}

/// As many columns of a row as there is room for.
fn beginning(row: RowNumber, line: &Line, format: Format, room: PageRoom) -> LineWire {
    let width = line.painted_columns();
    let told = |columns: u16| {
        let first = line.cut(0, columns);
        let left_out = Some(width - columns);
        LineWire { columns_left_out: left_out, ..LineWire::of(row, &first, format) }
    };
    let (mut fits, mut beyond) = (0, width);
    while beyond - fits > 1 {
        let columns = fits + (beyond - fits) / 2;
        if room.form.bytes(&told(columns)) <= room.bytes {
            fits = columns;
        } else {
            beyond = columns;
        }
    }
    let half = |glyph: &(u16, u16)| glyph.0 < fits && fits < glyph.0 + glyph.1;
    let mut glyphs = line.glyphs().map(|glyph| (glyph.column, glyph.columns));
    told(glyphs.find(half).map_or(fits, |(column, _)| column))
}

/// Whether two rows are told as one line: neighbours without text.
pub fn are_empty_neighbours(one: &LineWire, next: &LineWire) -> bool {
    one.text.is_empty() && next.text.is_empty() && next.row == one.row + 1
}

/// A row with its number, or the numbers of empty neighbours.
pub fn numbered<L: Borrow<LineWire>>(lines: &[L]) -> impl fmt::Display {
    fmt::from_fn(move |f| match lines {
        [first, .., last] => write!(f, "{}-{}: empty", first.borrow().row, last.borrow().row),
        [line] => write!(f, "{}: {}", line.borrow().row, line.borrow().told()),
        [] => Ok(()),
    })
}

impl DeltaWire {
    /// The delta of a screen as part of an answer: of its rows no more than fit into `bytes_max`,
    /// as they stand in this form, next to the other updates.
    pub fn within(delta: &Delta, bytes_max: usize, form: Form) -> Self {
        let others = Self::others(delta);
        let room = PageRoom {
            bytes: bytes_max.saturating_sub(json_bytes(&others)),
            form,
            larger: Larger::Beginning,
        };
        let page = Page::of(delta.rows(), Format::Styled, room);
        let told = page.lines.into_iter().map(UpdateWire::Row);
        Self {
            updates: told.chain(others).collect(),
            rows_left_out: (page.left_out > 0).then_some(page.left_out),
            next_top: page.next.map(|row| row.0.saturating_sub(delta.base_row.0)),
            from: delta.from.0,
            watermark: delta.watermark.0,
            base_row: delta.base_row.0,
            reset: delta.reset,
        }
    }

    /// The updates that are no rows.
    pub fn others(delta: &Delta) -> Vec<UpdateWire> {
        let other = |update: &&Update| !matches!(update, Update::Row { .. });
        delta.updates.iter().filter(other).map(UpdateWire::from).collect()
    }

    /// The rows for a model, each on a line, and how to get those that are left out.
    pub fn rows_told(&self) -> String {
        let mut text = String::new();
        let lines: Vec<&LineWire> = self.updates.iter().filter_map(UpdateWire::row).collect();
        for lines in lines.chunk_by(|one, next| are_empty_neighbours(one, next)) {
            text.push('\n');
            text.push_str(&numbered(lines).to_string());
            if let [line] = lines
                && line.columns_left_out.is_some()
            {
                let top = line.row - self.base_row;
                text.push_str(&format!("\n[read_screen top={top} count=1 tells it whole]"));
            }
        }
        if let (Some(left), Some(top)) = (self.rows_left_out, self.next_top) {
            let from = self.from;
            text.push_str(&format!(
                "\n[{left} changed rows are left out; continue with read_screen since={from} top={top}]"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::line::{Attributes, Color, Run, Style};

    const FORMS: [Form; 6] = [
        Form::Text,
        Form::TextTwice,
        Form::Object,
        Form::ObjectAndText,
        Form::NestedText,
        Form::NestedObject,
    ];
    const FORMATS: [Format; 4] = [Format::Plain, Format::Styled, Format::Ansi, Format::Cells];

    fn plain(text: String) -> Line {
        Line { text: text.into(), ..Line::default() }
    }

    /// A line of which each column has a style of its own.
    fn colourful(text: String) -> Line {
        let style = |column| Style {
            foreground: Color::Rgb(255, 200, column as u8),
            attributes: Attributes::BOLD,
            ..Style::default()
        };
        let runs = (0..1_000).map(|column| Run { column, columns: 1, style: style(column) });
        Line { runs: runs.collect(), ..plain(text) }
    }

    fn numbered(lines: &[Line]) -> impl Iterator<Item = (RowNumber, &Line)> + Clone {
        lines.iter().enumerate().map(|(row, line)| (RowNumber(row as u64), line))
    }

    fn room(bytes: usize, form: Form) -> PageRoom {
        PageRoom { bytes, form, larger: Larger::Beginning }
    }

    #[test]
    fn whole_rows_are_told_as_far_as_there_is_room_and_the_others_are_counted() {
        let lines = vec![plain("\"\\".repeat(50)); 100];
        for format in FORMATS {
            for form in FORMS {
                let page = Page::of(numbered(&lines), format, room(9_000, form));
                let told = page.lines.len();
                assert!((2..100).contains(&told), "{format:?} {form:?}: {told}");
                assert!(page.lines.iter().all(|line| line.columns_left_out.is_none()));
                assert_eq!(page.next, Some(RowNumber(told as u64)));
                assert_eq!(page.left_out, 100 - told);
                let bytes: usize = page.lines.iter().map(|line| form.bytes(line)).sum();
                assert!((8_000..=9_000).contains(&bytes) || format == Format::Cells, "{bytes}");
            }
        }
    }

    #[test]
    fn of_what_fits_nothing_is_left_out() {
        let lines = vec![plain("a".to_owned()); 3];
        let page = Page::of(numbered(&lines), Format::Plain, room(1_000, Form::TextTwice));
        assert_eq!((page.lines.len(), page.next, page.left_out), (3, None, 0));
        let nothing = std::iter::empty();
        assert_eq!(Page::of(nothing, Format::Plain, room(0, Form::Text)), Page::default());
    }

    #[test]
    fn of_a_row_that_is_larger_than_the_room_as_many_columns_are_told_as_fit() {
        for text in ["x".repeat(1_000), "漢".repeat(500), "e\u{301}\"".repeat(500)] {
            let lines = [colourful(text), plain("next".to_owned())];
            for format in FORMATS {
                for form in FORMS {
                    let page = Page::of(numbered(&lines), format, room(900, form));
                    let [line] = page.lines.as_slice() else { panic!("{}", page.lines.len()) };
                    let left_out = line.columns_left_out.expect("a row that is cut says so");
                    assert!(form.bytes(line) <= 900, "{format:?} {form:?}");
                    assert!((1..1_000).contains(&left_out), "{format:?} {form:?}: {left_out}");
                    assert!(line.told().ends_with("more columns of this row]"), "{}", line.told());
                    assert_eq!((page.next, page.left_out), (Some(RowNumber(1)), 1));
                }
            }
        }
    }

    #[test]
    fn what_is_told_of_a_row_and_what_is_left_out_are_all_of_its_columns() {
        let lines = [plain("漢".repeat(500))];
        let page = Page::of(numbered(&lines), Format::Plain, room(100, Form::Text));
        let line = &page.lines[0];
        let told = 2 * line.text.chars().count();
        assert_eq!(told + usize::from(line.columns_left_out.unwrap()), 1_000);
        assert_eq!(
            line.told(),
            format!("{}[… {} more columns of this row]", line.text, 1_000 - told)
        );
    }

    #[test]
    fn a_row_that_is_to_be_whole_is_told_whatever_its_size() {
        let lines = [plain("x".repeat(1_000)), plain("next".to_owned())];
        let whole = PageRoom { larger: Larger::Whole, ..room(100, Form::TextTwice) };
        let page = Page::of(numbered(&lines), Format::Plain, whole);
        assert_eq!((page.lines.len(), page.lines[0].text.len()), (1, 1_000));
        assert_eq!((page.lines[0].columns_left_out, page.left_out), (None, 1));
    }

    #[test]
    fn neighbours_without_text_take_one_line() {
        let line = |row: u64, text: &str| LineWire {
            row,
            text: text.into(),
            ..LineWire::of(RowNumber(row), &Line::default(), Format::Plain)
        };
        let lines = [line(3, ""), line(4, "a"), line(5, ""), line(6, ""), line(7, ""), line(9, "")];
        let rows: Vec<String> = {
            let rows = lines.chunk_by(are_empty_neighbours).map(super::numbered);
            rows.map(|row| row.to_string()).collect()
        };
        assert_eq!(rows, ["3: ", "4: a", "5-7: empty", "9: "]);
    }
}
