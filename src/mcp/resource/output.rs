//! The output of a command as a text: all that history holds, in pieces where one answer has no
//! room for it, or line by line while the command runs.
//!
//! It reads one frame and knows no session. Pieces begin with a row of the terminal, since lines
//! have no number once the first of them were trimmed.

use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::{CommandRecord, Position, Span};
use crate::surface::answer::budget::{cut, escaped_bytes};
use crate::surface::answer::command::LINE_END_BYTES;
use crate::wire::command::OutputFacts;
use crate::wire::session::GapWire;

/// A piece of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its lines, each with its end.
    pub(super) text: String,
    /// The row with which the next piece begins.
    pub(super) next_row: RowNumber,
    /// How many lines are there already that this piece has no room for.
    pub(super) lines_left_out: usize,
    /// How many rows of it history does not hold any more.
    pub(super) rows_trimmed: u64,
}

impl Piece {
    /// The output as it stands, from its beginning.
    pub(super) fn beginning(record: &CommandRecord, frame: &Frame, room: usize) -> Self {
        Self::between(record, frame, (first_row(record), end_row(record, frame)), room)
    }

    /// What lies from a row on and does not change any more as the command goes on printing: the
    /// line that it is about to write is told when it is whole.
    pub(super) fn following(
        record: &CommandRecord,
        frame: &Frame,
        from: RowNumber,
        room: usize,
    ) -> Self {
        let from = from.max(first_row(record));
        let end = match record.finish {
            Some(_) => end_row(record, frame),
            // What is shown meanwhile is not what stays.
            None if frame.mode.value == ScreenMode::Alternate => from,
            None => line_start(frame, frame.cursor.value.row, from),
        };
        Self::between(record, frame, (from, end), room)
    }

    /// The lines of some rows, the last of them exclusive, in so many bytes of JSON.
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

    /// What the text does not say, for programs.
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

/// What some rows of the output hold.
struct Lines {
    /// None while what was typed is still being echoed.
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

/// The part of a span that lies on these rows; one that grows ends at the cursor.
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

/// The row on which the output begins.
pub(super) fn first_row(record: &CommandRecord) -> RowNumber {
    record.spans.first().map_or(RowNumber::default(), |span| span.from.row)
}

/// The row after its last one.
fn end_row(record: &CommandRecord, frame: &Frame) -> RowNumber {
    let end = record.spans.last().and_then(|span| span.to);
    end.map_or(frame.cursor.value.row, |end| end.row).plus(1)
}

/// The first row of the line that this row belongs to.
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

/// The row with which an answer has to stop for want of room; none when there is room for all.
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

/// The lines with their ends; one that has no room is cut.
fn text_of(lines: &[String], room: usize) -> String {
    lines.iter().map(|line| cut(line, room) + "\n").collect()
}

#[cfg(test)]
mod tests;
