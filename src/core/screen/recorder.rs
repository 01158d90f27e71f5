//! Turns what one command prints into lines, on a screen of its own.
//!
//! It does what the terminal does, without styles, and begins blank with the settings of a new terminal:
//! what other programs left on the real screen cannot spoil the output, and no change of the real screen can lose it.
//! Rows that leave its screen become lines.

mod erasing;
mod operations;
mod row;
mod stored;

use std::collections::VecDeque;
use std::iter::repeat;
use std::ops::Range;

use alacritty_terminal::vte::ansi::StandardCharset;
use serde::{Deserialize, Serialize};

use crate::core::frame::Size;
use crate::core::screen::recorder::row::Row;
use crate::core::shell::commands::output::Output;

pub(super) use crate::core::screen::recorder::stored::StoredRecorder;

/// A place on the screen, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CursorPlace {
    pub(crate) row: u16,
    pub(crate) col: u16,
    /// The column is full, and the next character wraps.
    pub(crate) wraps: bool,
}

impl CursorPlace {
    fn within(self, size: Size) -> Self {
        let (row, col) = (self.row.min(size.rows - 1), self.col.min(size.cols - 1));
        Self { row, col, ..self }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pen {
    place: CursorPlace,
    charsets: [StandardCharset; 4],
    /// What is written is concealed, and so blank.
    conceals: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Modes {
    insert: bool,
    wrap: bool,
    origin: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self { insert: false, wrap: true, origin: false }
    }
}

/// A screen on which one command prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorder {
    size: Size,
    /// The rows from the top; those below were never written.
    rows: VecDeque<Row>,
    cursor: Pen,
    saved: Pen,
    charset: usize,
    modes: Modes,
    region: Range<u16>,
    /// The normal screen, while a program shows the alternate one.
    normal: Option<(VecDeque<Row>, Pen)>,
    lines: Output,
    /// How many lines that show what was typed are still to come before the output.
    echo_lines: u16,
    /// How what was typed ends, until a restart: a line editor may end a row by itself where that is full.
    echo_end: Option<Box<str>>,
    /// How many columns of the first row belong to the prompt, where nothing that is typed is shown.
    indent: u16,
    /// Rows at the top that nothing was written to are no output.
    at_beginning: bool,
    /// How often the cursor was sent to the top of the screen; below it counts for many.
    jumps: u8,
    /// The output has ended, and what is written is of somebody else.
    ended: bool,
    changed: bool,
    bytes_max: usize,
}

impl Recorder {
    /// From how many jumps on a command paints the screen.
    const JUMPS: u8 = 3;

    /// Begins to record at this place, behind so many lines that show what was typed. It keeps about so many bytes.
    pub(crate) fn begin(size: Size, place: CursorPlace, echo_lines: u16, bytes_max: usize) -> Self {
        let cursor = Pen { place, ..Pen::default() };
        let mut recorder = Self {
            size,
            rows: VecDeque::new(),
            cursor,
            saved: Pen::default(),
            charset: 0,
            modes: Modes::default(),
            region: 0..size.rows,
            normal: None,
            lines: Output::default(),
            echo_lines: echo_lines.saturating_sub(1),
            echo_end: None,
            indent: if echo_lines == 0 { place.col } else { 0 },
            at_beginning: true,
            jumps: 0,
            ended: false,
            changed: true,
            bytes_max,
        };
        let row = recorder.row();
        (row.touched, row.is_echo) = (true, echo_lines > 0);
        recorder
    }

    /// Knows this line as the last one that shows what was typed.
    pub(crate) fn with_last_line_typed(mut self, line: &str) -> Self {
        let skipped = line.chars().count().saturating_sub(self.size.cols.into());
        self.echo_end = Some(line.chars().skip(skipped).collect::<String>().into());
        self
    }

    /// Whether it changed since this was asked last.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Runs an operation of the parser, unless the output has ended.
    #[inline]
    pub(crate) fn on(&mut self, operation: impl Fn(&mut Self)) {
        if !self.ended {
            operation(self);
            self.changed = true;
        }
    }

    /// Ends the output before the last so many columns, which are the shell's prompt.
    pub(crate) fn end(&mut self, prompt_columns: u16) {
        if !self.ended && prompt_columns > 0 {
            let place = self.cursor.place;
            let behind = place.col + u16::from(place.wraps);
            self.row().truncate(behind.saturating_sub(prompt_columns));
            self.rows.truncate(usize::from(place.row) + 1);
        }
        self.ended = true;
    }

    /// Whether the command paints the screen. Many clear it once.
    pub(crate) fn painted(&self) -> bool {
        self.jumps >= Self::JUMPS && !self.ended
    }

    /// The lines that left its screen.
    pub(crate) fn lines(&self) -> &Output {
        &self.lines
    }

    /// Puts lines before all others.
    pub(crate) fn put_before(&mut self, output: Output) {
        self.lines = output;
        self.end_line();
    }

    /// What was printed so far on the normal screen.
    pub(crate) fn output(&self) -> Output {
        let (rows, cursor) = match &self.normal {
            Some((rows, cursor)) => (rows, cursor),
            None => (&self.rows, &self.cursor),
        };
        let output = self.lines.clone();
        let mut lines = LineWriter { output, indent: self.indent };
        lines.take_screen(rows, (cursor.place.row, self.region.end), self.at_beginning);
        lines.output.trim(self.bytes_max);
        lines.output
    }

    /// All that was printed, at the end. A program that never left the alternate screen has written its last words there.
    pub(crate) fn whole_output(&self) -> Output {
        let mut lines = LineWriter { output: self.output(), indent: 0 };
        if self.normal.is_some() {
            end_line(&mut lines.output);
            lines.take_screen(&self.rows, (self.cursor.place.row, self.region.end), true);
            lines.output.trim(self.bytes_max);
        }
        lines.output
    }

    /// Follows a change of the terminal's size, after which its cursor is here.
    pub(crate) fn resize(&mut self, size: Size, place: CursorPlace) {
        let rewraps = size.cols != self.size.cols;
        self.size = size;
        self.region = 0..size.rows;
        self.saved.place = self.saved.place.within(size);
        if let Some((rows, cursor)) = &mut self.normal {
            rows.truncate(usize::from(size.rows));
            cursor.place = cursor.place.within(size);
            self.rows.truncate(usize::from(size.rows));
            self.cursor.place = place;
        } else if rewraps {
            self.settle(self.cursor.place.row);
            let mut row = self.rows.pop_front().unwrap_or_default();
            self.rows.clear();
            if row.columns() > size.cols {
                let before = row.columns() / size.cols * size.cols;
                let front = row.split_off_front(before);
                self.lines.append(&front);
            }
            self.rows.resize(usize::from(place.row), Row::default());
            self.at_beginning = true;
            self.rows.push_back(row);
            self.cursor.place = place;
        } else {
            let surplus = (self.cursor.place.row + 1).saturating_sub(size.rows);
            self.settle(surplus);
            self.rows.truncate(usize::from(size.rows));
            self.cursor.place.row -= surplus;
        }
        self.changed = true;
    }

    /// The row of the cursor.
    fn row(&mut self) -> &mut Row {
        self.row_at(self.cursor.place.row)
    }

    fn row_at(&mut self, row: u16) -> &mut Row {
        let index = usize::from(row);
        if index >= self.rows.len() {
            self.rows.resize(index + 1, Row::default());
        }
        &mut self.rows[index]
    }

    /// Turns so many rows from the top of the screen into lines.
    fn settle(&mut self, count: u16) {
        let output = std::mem::take(&mut self.lines);
        let mut lines = LineWriter { output, indent: self.indent };
        for _ in 0..count {
            let row = self.rows.pop_front().unwrap_or_default();
            self.at_beginning &= !row.touched;
            if !self.at_beginning {
                lines.take(&row);
                lines.end_line_of(&row);
            }
        }
        (self.lines, self.indent) = (lines.output, lines.indent);
        self.lines.trim(self.bytes_max);
    }

    /// Ends a line whose first rows left the screen.
    fn end_line(&mut self) {
        end_line(&mut self.lines);
    }

    /// Scrolls part of the screen up. Rows that leave the top of the normal screen become lines.
    fn scroll_up_in(&mut self, region: Range<u16>, count: u16) {
        let count = count.min(region.end - region.start);
        if region.start == 0 && self.normal.is_none() {
            self.settle(count);
        } else {
            let end = usize::from(region.start + count).min(self.rows.len());
            self.rows.drain(usize::from(region.start).min(end)..end);
        }
        self.insert_rows(region.end - count, count);
    }

    fn scroll_down_in(&mut self, region: Range<u16>, count: u16) {
        let count = count.min(region.end - region.start);
        let (start, end) = (usize::from(region.end - count), usize::from(region.end));
        let end = end.min(self.rows.len());
        self.rows.drain(start.min(end)..end);
        self.insert_rows(region.start, count);
    }

    /// Inserts blank rows where rows were taken away.
    fn insert_rows(&mut self, at: u16, count: u16) {
        if usize::from(at) < self.rows.len() {
            for _ in 0..count {
                self.rows.insert(at.into(), Row::default());
            }
        }
    }
}

/// A count as rows and columns are counted.
fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Writes rows of a screen as lines.
struct LineWriter {
    output: Output,
    /// How many blanks the next row begins with that nobody wrote.
    indent: u16,
}

impl LineWriter {
    /// Takes the rows down to the cursor, or to the last one with text below it.
    ///
    /// What stands below the rows that scroll is progress, which is painted again and again.
    fn take_screen(
        &mut self,
        rows: &VecDeque<Row>,
        (cursor, scrolled): (u16, u16),
        mut at_beginning: bool,
    ) {
        let cursor = usize::from(cursor);
        let mut scrolled = rows.iter().take(scrolled.into());
        let text = scrolled.rposition(|row| !row.is_blank()).map_or(0, |last| last + 1);
        let count = text.max(cursor);
        let never_written = Row::default();
        for (index, row) in rows.iter().chain(repeat(&never_written)).take(count).enumerate() {
            at_beginning &= !row.touched;
            if at_beginning {
                continue;
            }
            self.take(row);
            // The line of the cursor may go on.
            if index != cursor || index + 1 != count {
                self.end_line_of(row);
            }
        }
    }

    fn take(&mut self, row: &Row) {
        if !row.is_echo {
            let text = row.text();
            let blanks = text.bytes().take(self.indent.into()).take_while(|byte| *byte == b' ');
            let text = &text[blanks.count()..];
            self.indent = 0;
            self.output.append(if row.wrapped { text } else { text.trim_end_matches(' ') });
        }
    }

    fn end_line_of(&mut self, row: &Row) {
        if !row.wrapped && !row.is_echo {
            self.output.append("\n");
        }
    }
}

/// Ends a line that has begun.
fn end_line(output: &mut Output) {
    if output.lines_total() > output.lines_ended() {
        output.append("\n");
    }
}

#[cfg(test)]
mod tests;
