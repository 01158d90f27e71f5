//! Numbers rows: a row that scrolls off enters history and keeps its number.
//!
//! The number of the top row is always the end of history, so numbers cannot shift.

use std::sync::Arc;

use alacritty_terminal::grid::Row;
use alacritty_terminal::term::cell::Cell;

use crate::core::frame::history::{History, HistoryLimits};
use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::screen::cells::RowReader;
use crate::core::screen::links::Links;
use crate::core::screen::rewrapped::stamped_again;

/// A line with the watermark of its last change.
pub(crate) type StampedLine = Stamped<Arc<Line>>;

/// History, the watermark of the next frame, and the rows of the last frame.
#[derive(Debug)]
pub(crate) struct RowNumbers {
    limits: HistoryLimits,
    history: History,
    mark: Watermark,
    shown: Arc<[StampedLine]>,
    shown_base: RowNumber,
    reader: RowReader,
    /// A delta cannot express the changes since the last frame.
    reset: bool,
    cleared: bool,
}

impl RowNumbers {
    /// Continues from this watermark and from the end of this history.
    pub(crate) fn new(limits: HistoryLimits, watermark: Watermark, history: History) -> Self {
        Self {
            limits,
            mark: watermark.next(),
            shown: Arc::from([]),
            shown_base: history.end(),
            history,
            reader: RowReader::default(),
            reset: false,
            cleared: false,
        }
    }

    /// The number of the top row of the normal screen.
    pub(crate) fn base_row(&self) -> RowNumber {
        self.history.end()
    }

    pub(crate) fn mark(&self) -> Watermark {
        self.mark
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn was_reset(&self) -> bool {
        self.reset
    }

    pub(crate) fn was_cleared(&self) -> bool {
        self.cleared
    }

    /// The targets of links in cells.
    pub(crate) fn links(&mut self) -> &mut Links {
        &mut self.reader.targets
    }

    pub(crate) fn line(&mut self, row: &Row<Cell>) -> Arc<Line> {
        self.reader.read(row);
        Arc::new(self.reader.line())
    }

    /// Notes that these rows stand below history now, of which some were on the screen `before`.
    pub(crate) fn show(&mut self, before: &[StampedLine], rows: Vec<Arc<Line>>) {
        self.shown = stamped_again(before, rows, self.mark);
        self.shown_base = self.history.end();
        self.reset();
    }

    /// Makes the next frame one that cannot be sent as a delta.
    pub(crate) fn reset(&mut self) {
        self.reset = true;
    }

    /// Discards the rows of history; row numbers continue.
    pub(crate) fn clear(&mut self) {
        self.cleared |= !self.history.is_empty();
        self.history = History::starting_at(self.history.end(), self.limits);
    }

    pub(crate) fn reads_empty(&mut self, row: &Row<Cell>) -> bool {
        self.reader.read(row);
        self.reader.equals(&Line::default())
    }

    /// Moves the row below history into it.
    pub(crate) fn keep(&mut self, row: &Row<Cell>) {
        self.reader.read(row);
        let shown = self.shown(self.history.end()).filter(|shown| self.reader.equals(&shown.value));
        let changed = shown.map_or(self.mark, |shown| shown.changed);
        self.history.push(self.reader.row(changed));
    }

    /// The line of a row. An unchanged line keeps its stamp from the last frame.
    pub(crate) fn stamp(&mut self, number: RowNumber, row: &Row<Cell>) -> StampedLine {
        self.reader.read(row);
        match self.shown(number) {
            Some(shown) if self.reader.equals(&shown.value) => shown.clone(),
            Some(_) | None => Stamped { value: Arc::new(self.reader.line()), changed: self.mark },
        }
    }

    fn shown(&self, number: RowNumber) -> Option<&StampedLine> {
        let index = number.0.checked_sub(self.shown_base.0)?;
        self.shown.get(usize::try_from(index).ok()?)
    }

    /// Continues from a frame that was just published.
    pub(crate) fn on_published(&mut self, frame: &Frame) {
        self.mark = frame.watermark.next();
        self.shown = Arc::clone(&frame.lines);
        self.shown_base = frame.base_row;
        self.reset = false;
        self.cleared = false;
    }
}
