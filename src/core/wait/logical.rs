//! Logical lines: rows joined where the text only reached the edge, so that a pattern does not
//! depend on how wide the terminal is.
//!
//! It reads a frame and knows nothing of what is searched for.

use std::ops::Range;
use std::sync::Arc;

use crate::core::frame::line::Line;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::wait::look::Hit;

/// How many rows are joined to either side of a row; a longer line is looked at in parts.
pub const JOINED_ROWS_MAX: u64 = 100;
/// And how many bytes of text, but for the last row of them.
const JOINED_BYTES_MAX: usize = 8 * 1_024;

/// The rows of one line, joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalLine {
    first: RowNumber,
    /// Where in the text each row begins.
    starts: Vec<usize>,
    /// The text, with blanks up to the cursor where the cursor stands behind it.
    text: String,
    /// How much of the text there is without those blanks.
    shown: usize,
}

impl LogicalLine {
    /// The line that the row belongs to, on the screen or in history.
    pub fn around(frame: &Frame, row: RowNumber) -> Option<Self> {
        let mut first = row;
        let (mut line, mut changed) = frame.any_line(row)?;
        let mut before = 0;
        while row.0 - first.0 < JOINED_ROWS_MAX && before < JOINED_BYTES_MAX {
            let Some(above) = above(frame, first) else { break };
            first = RowNumber(first.0 - 1);
            (line, changed) = above;
            before += line.text.len();
        }
        let mut joined =
            Self { first, starts: vec![0], text: line.text.to_string(), shown: line.text.len() };
        let bytes_max = before + JOINED_BYTES_MAX;
        while goes_on(frame, &line, joined.end())
            && (joined.end().0 <= row.0
                || joined.end().0 <= row.0 + JOINED_ROWS_MAX && joined.text.len() < bytes_max)
        {
            let Some(next) = frame.any_line(joined.end()) else { break };
            let blanks = blanks_before(&next.0, &line, changed, frame);
            joined.push(blanks, &next.0.text);
            (line, changed) = next;
        }
        if frame.cursor.value.row.plus(1) == joined.end() {
            let column = usize::from(frame.cursor.value.col);
            joined.push_blanks(column.saturating_sub(columns(&line)));
        }
        Some(joined)
    }

    /// The row after its last one.
    pub fn end(&self) -> RowNumber {
        self.first.plus(self.starts.len())
    }

    /// Its first row.
    pub fn first(&self) -> RowNumber {
        self.first
    }

    /// Whether the row is one of its rows.
    pub fn has(&self, row: RowNumber) -> bool {
        (self.first..self.end()).contains(&row)
    }

    /// What it shows, without trailing blanks.
    pub fn text(&self) -> &str {
        &self.text[..self.shown]
    }

    /// What it shows, with the blanks before the cursor where it ends there.
    pub(super) fn text_to_cursor(&self) -> &str {
        &self.text
    }

    /// How many rows it has.
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

/// The row above with the watermark of its change, when its text goes on in this one.
fn above(frame: &Frame, row: RowNumber) -> Option<(Arc<Line>, Watermark)> {
    let above = frame.any_line(RowNumber(row.0.checked_sub(1)?));
    above.filter(|(line, _)| goes_on(frame, line, row))
}

/// Whether a line goes on in the row below it.
fn goes_on(frame: &Frame, line: &Line, below: RowNumber) -> bool {
    // History belongs to the normal screen; nothing in it runs on into the alternate one.
    let between = below == frame.base_row && frame.mode.value == ScreenMode::Alternate;
    line.wrapped && !between
}

/// How many blanks a wrapped row ended with, which its text leaves out.
pub(crate) fn blanks_before(next: &Line, line: &Line, changed: Watermark, frame: &Frame) -> usize {
    // Rows older than the last change of size had another width, which nobody remembers.
    if changed < frame.size.changed {
        return 0;
    }
    let blanks = usize::from(frame.size.value.cols).saturating_sub(columns(line));
    // A wide character leaves the last column empty when only half of it would fit.
    let wide = next.glyphs().first().is_some_and(|glyph| glyph.columns == 2);
    if wide && blanks == 1 { 0 } else { blanks }
}

fn columns(line: &Line) -> usize {
    line.glyphs().last().map_or(0, |glyph| usize::from(glyph.column + glyph.columns))
}
