//! Logical lines: wrapped rows joined, so that a pattern does not depend on the terminal's width.

use std::ops::Range;

use crate::core::frame::history::HistoryRow;
use crate::core::frame::line::columns_of;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;

/// How many rows are joined on each side of a row; a longer line is searched in parts.
pub const JOINED_ROWS_MAX: u64 = 100;
/// The most bytes of text that are joined, not counting the last row.
const JOINED_BYTES_MAX: usize = 8 * 1_024;

/// The line that ended a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub row: RowNumber,
    /// The logical line, or the part of it around the change.
    pub text: String,
    pub found: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalLine {
    first: RowNumber,
    /// The offset of each row in the text.
    starts: Vec<usize>,
    /// The text, padded with blanks up to the cursor if the cursor is beyond it.
    text: String,
    /// The length of the text without that padding.
    shown: usize,
}

impl LogicalLine {
    /// The line that contains the row, on the screen or in history.
    pub fn around(frame: &Frame, row: RowNumber) -> Option<Self> {
        // Of most rows it is all, and they are read by the thousand.
        if let Some(HistoryRow { text, .. }) = whole_row(frame, row) {
            return Some(Self {
                first: row,
                starts: vec![0],
                text: text.to_owned(),
                shown: text.len(),
            });
        }
        let mut first = row;
        let mut line = frame.any_row(row)?;
        let mut before = 0;
        while row.0 - first.0 < JOINED_ROWS_MAX && before < JOINED_BYTES_MAX {
            let Some(above) = above(frame, first) else { break };
            first = RowNumber(first.0 - 1);
            line = above;
            before += line.text.len();
        }
        let mut joined =
            Self { first, starts: vec![0], text: line.text.to_string(), shown: line.text.len() };
        let bytes_max = before + JOINED_BYTES_MAX;
        while goes_on(frame, line, joined.end())
            && (joined.end().0 <= row.0
                || joined.end().0 <= row.0 + JOINED_ROWS_MAX && joined.text.len() < bytes_max)
        {
            let Some(next) = frame.any_row(joined.end()) else { break };
            joined.push(frame.omitted_blanks(line.text, line.changed, next.text), next.text);
            line = next;
        }
        if frame.cursor.value.row.plus(1) == joined.end() {
            let blanks = frame.cursor.value.col.saturating_sub(columns_of(line.text));
            joined.push_blanks(blanks.into());
        }
        Some(joined)
    }

    pub fn end(&self) -> RowNumber {
        self.first.plus(self.starts.len())
    }

    pub fn first(&self) -> RowNumber {
        self.first
    }

    pub fn has(&self, row: RowNumber) -> bool {
        (self.first..self.end()).contains(&row)
    }

    /// The text without trailing blanks.
    pub fn text(&self) -> &str {
        &self.text[..self.shown]
    }

    /// The text with the blanks before the cursor, if the cursor is at its end.
    pub(super) fn text_to_cursor(&self) -> &str {
        &self.text
    }

    pub(super) fn rows(&self) -> usize {
        self.starts.len()
    }

    fn push(&mut self, blanks: usize, text: &str) {
        self.push_blanks(blanks);
        self.starts.push(self.text.len());
        self.text.push_str(text);
        self.shown = self.text.len();
    }

    fn push_blanks(&mut self, blanks: usize) {
        self.text.extend(std::iter::repeat_n(' ', blanks));
    }

    /// The match at these bytes of [`Self::text_to_cursor`].
    pub(super) fn hit(&self, found: Range<usize>) -> Hit {
        let row = self.starts.partition_point(|start| *start <= found.start) - 1;
        let found = self.text[found].to_string();
        Hit { row: self.first.plus(row), text: self.text().to_string(), found }
    }
}

/// A row of history that is a line of its own.
fn whole_row(frame: &Frame, row: RowNumber) -> Option<HistoryRow<'_>> {
    let kept = frame.history.row(row).filter(|kept| !kept.wrapped)?;
    let above = row.0.checked_sub(1).and_then(|above| frame.history.row(RowNumber(above)));
    above.is_none_or(|above| !above.wrapped).then_some(kept)
}

/// The row above, if its text continues in this one.
fn above(frame: &Frame, row: RowNumber) -> Option<HistoryRow<'_>> {
    let above = frame.any_row(RowNumber(row.0.checked_sub(1)?));
    above.filter(|line| goes_on(frame, *line, row))
}

/// Whether a line continues in the row below it.
fn goes_on(frame: &Frame, line: HistoryRow<'_>, below: RowNumber) -> bool {
    // History belongs to the normal screen and never continues in the alternate one.
    let between = below == frame.base_row && frame.mode.value == ScreenMode::Alternate;
    line.wrapped && !between
}
