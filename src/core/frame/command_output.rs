//! The output of a command, read from the rows it lies on: as logical lines, in the final state of
//! what was painted over.
//!
//! It reads one frame and its history, and holds no text of its own: what was trimmed from history
//! is gone, and is counted.

use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::core::shell::commands::record::{CommandRecord, Position, Span};

/// The output of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its lines, however wide the terminal is, without those that were trimmed.
    pub lines: Vec<String>,
    pub rows_trimmed: u64,
}

impl Output {
    /// About how many cells are gone through to read it.
    pub fn cells(record: &CommandRecord, frame: &Frame) -> usize {
        let rows = record.spans.iter().map(|span| {
            let end = span.to.map_or(frame.cursor.value.row, |to| to.row);
            end.0.saturating_sub(span.from.row.max(frame.history.first()).0) + 1
        });
        rows.sum::<u64>() as usize * usize::from(frame.size.value.cols)
    }

    pub fn of(record: &CommandRecord, frame: &Frame) -> Self {
        let mut reader =
            OutputReader { frame, output: Self::default(), line: String::new(), open: false };
        for span in &record.spans {
            reader.read(span);
        }
        if reader.open {
            reader.end_line();
        }
        let mut output = reader.output;
        // Of what was typed, too, the first is trimmed first.
        let trimmed = output.rows_trimmed.min(record.echo_lines.into());
        output.rows_trimmed -= trimmed;
        let echo = usize::from(record.echo_lines) - trimmed as usize;
        output.lines.drain(..echo.min(output.lines.len()));
        output
    }
}

struct OutputReader<'a> {
    frame: &'a Frame,
    output: Output,
    /// The logical line so far, if one is open.
    line: String,
    open: bool,
}

impl OutputReader<'_> {
    fn read(&mut self, span: &Span) {
        let cursor = self.frame.cursor.value;
        let end = span.to.unwrap_or(Position { row: cursor.row, col: cursor.col });
        let end = match self.frame.mode.value {
            ScreenMode::Normal => end,
            // What stands on the other screen is no output, and hides the rest while it is shown.
            ScreenMode::Alternate => end.min(Position { row: self.frame.base_row, col: 0 }),
        };
        let oldest = self.frame.history.first();
        let from = span.from.row.max(oldest.min(end.row));
        self.output.rows_trimmed += from.0 - span.from.row.0.min(from.0);
        for number in from.0..=end.row.0 {
            let row = RowNumber(number);
            let first = if row == span.from.row { span.from.col } else { 0 };
            let last = (row == end.row).then_some(end.col);
            self.read_row(row, first, last);
        }
    }

    fn read_row(&mut self, row: RowNumber, first: u16, last: Option<u16>) {
        if last.is_some_and(|last| last <= first) {
            return;
        }
        let Some((line, changed)) = self.frame.any_line(row) else { return };
        self.open = true;
        self.line.push_str(line.text_between(first, last.unwrap_or(u16::MAX)));
        if last.is_some() {
            // It may go on in the next span; otherwise it is ended there.
            return;
        }
        match self.frame.any_line(row.plus(1)).filter(|_| line.wrapped) {
            Some((next, _)) => {
                let blanks = self.frame.omitted_blanks(&line, changed, &next);
                self.line.extend(std::iter::repeat_n(' ', blanks));
            }
            None => self.end_line(),
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.output.lines.push(line.trim_end().to_owned());
        self.open = false;
    }
}
