//! The output of a command as text: all that is in history, in pieces that fit one answer.
//!
//! While the command runs, a reader can follow it line by line. Pieces start at terminal rows, because trimmed history
//! shifts line numbers.

use crate::core::frame::command_output::Output;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::core::shell::commands::record::{CommandRecord, Position, Span};
use crate::surface::answer::budget::{cut, escaped_bytes};
use crate::surface::answer::command::LINE_END_BYTES;
use crate::wire::command::OutputFacts;
use crate::wire::session::GapWire;

/// A piece of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputPiece {
    /// Its lines, each with a line end.
    pub(super) text: String,
    /// The first row of the next piece.
    pub(super) next_row: RowNumber,
    /// The number of existing lines that do not fit in this piece.
    pub(super) lines_left_out: usize,
    /// The number of its rows that history no longer contains.
    pub(super) rows_trimmed: u64,
}

impl OutputPiece {
    /// The output from its beginning.
    pub(super) fn beginning(record: &CommandRecord, frame: &Frame, room: usize) -> Self {
        Self::between(record, frame, (first_row(record), end_row(record, frame)), room)
    }

    /// The output from a row on that cannot change any more. Excludes the unfinished line at the cursor while the
    /// command runs.
    pub(super) fn following(
        record: &CommandRecord,
        frame: &Frame,
        from: RowNumber,
        room: usize,
    ) -> Self {
        let from = from.max(first_row(record));
        let end = match record.finish {
            Some(_) => end_row(record, frame),
            // The alternate screen is not part of the lasting output.
            None if frame.mode.value == ScreenMode::Alternate => from,
            None => line_start(frame, frame.cursor.value.row, from),
        };
        Self::between(record, frame, (from, end), room)
    }

    /// The lines of rows `from..end`, within `room` bytes of JSON.
    fn between(
        record: &CommandRecord,
        frame: &Frame,
        (from, end): (RowNumber, RowNumber),
        room: usize,
    ) -> Self {
        let output = lines_of(record, frame, from, end);
        let Some(lines) = output.lines else {
            return Self {
                text: String::new(),
                next_row: from,
                lines_left_out: 0,
                rows_trimmed: 0,
            };
        };
        let Some(cut) = room_ends(frame, from, end, room) else {
            let (text, rows_trimmed) = (text_of(&lines, room), output.rows_trimmed);
            return Self { text, next_row: from.max(end), lines_left_out: 0, rows_trimmed };
        };
        let told = lines_of(record, frame, from, cut).lines.unwrap_or_default();
        let lines_left_out = lines.len().saturating_sub(told.len());
        let (text, rows_trimmed) = (text_of(&told, room), output.rows_trimmed);
        Self { text, next_row: cut, lines_left_out, rows_trimmed }
    }

    /// The metadata of the piece.
    pub(super) fn facts(&self, record: &CommandRecord, lost_output: Vec<GapWire>) -> OutputFacts {
        OutputFacts {
            status: record.into(),
            exit_code: record.finish.and_then(|finish| finish.code),
            next_row: self.next_row.0,
            lines_left_out: self.lines_left_out,
            rows_trimmed: self.rows_trimmed,
            lost_output,
        }
    }
}

/// The lines of some rows of output.
struct Lines {
    /// `None` while the command line is still being echoed.
    lines: Option<Vec<String>>,
    rows_trimmed: u64,
}

fn lines_of(record: &CommandRecord, frame: &Frame, from: RowNumber, end: RowNumber) -> Lines {
    let whole = from <= first_row(record);
    let echo = if whole { usize::from(record.echo_lines) } else { 0 };
    let cursor = frame.cursor.value.row;
    let spans = record.spans.iter().filter_map(|span| narrowed(span, from, end, cursor)).collect();
    let part = CommandRecord { spans, echo_lines: 0, ..record.clone() };
    let Output { mut lines, rows_trimmed } = Output::of(&part, frame);
    if rows_trimmed == 0 && echo > 0 {
        if lines.len() < echo && record.finish.is_none() {
            return Lines { lines: None, rows_trimmed };
        }
        lines.drain(..echo.min(lines.len()));
    }
    Lines { lines: Some(lines), rows_trimmed }
}

/// The part of a span on these rows; an open one ends at the cursor.
fn narrowed(span: &Span, from: RowNumber, end: RowNumber, cursor: RowNumber) -> Option<Span> {
    let start = span.from.max(Position { row: from, col: 0 });
    let edge = Position { row: end, col: 0 };
    let to = match span.to {
        None if cursor < end => None,
        Some(to) if to < edge => Some(to),
        Some(_) | None => Some(edge),
    };
    (start.row < end).then_some(Span { from: start, to })
}

/// The first row of the output.
pub(super) fn first_row(record: &CommandRecord) -> RowNumber {
    record.spans.first().map_or(RowNumber::default(), |span| span.from.row)
}

/// The row after the last one.
fn end_row(record: &CommandRecord, frame: &Frame) -> RowNumber {
    let end = record.spans.last().and_then(|span| span.to);
    end.map_or(frame.cursor.value.row, |end| end.row).plus(1)
}

/// The first row of the wrapped line that contains this row.
fn line_start(frame: &Frame, row: RowNumber, lowest: RowNumber) -> RowNumber {
    let mut start = row;
    while start > lowest {
        let above = RowNumber(start.0 - 1);
        if !frame.any_line(above).is_some_and(|(line, _)| line.wrapped) {
            break;
        }
        start = above;
    }
    start
}

/// The row at which an answer must stop. `None` when everything fits.
fn room_ends(frame: &Frame, from: RowNumber, end: RowNumber, room: usize) -> Option<RowNumber> {
    let (mut bytes, mut start) = (0, from);
    for number in from.max(frame.history.first().min(end)).0..end.0 {
        let Some((line, _)) = frame.any_line(RowNumber(number)) else { continue };
        bytes += escaped_bytes(&line.text) + LINE_END_BYTES;
        if bytes > room && start > from {
            return Some(start);
        }
        if !line.wrapped {
            start = RowNumber(number + 1);
        }
    }
    None
}

/// The lines with their ends. A line that is too long is cut.
fn text_of(lines: &[String], room: usize) -> String {
    lines.iter().map(|line| cut(line, room) + "\n").collect()
}

#[cfg(test)]
mod tests;
