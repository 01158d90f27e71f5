//! Recognizes old text after a resize, which gives rows new numbers and new watermarks.
//!
//! It compares only text, since a reflow leaves no other difference between old and new lines.

use std::sync::Arc;

use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::wait::logical::LogicalLine;

/// How many screens of history a reflow can bring back to the screen.
const SCREENS_BACK: usize = 2;

/// The lines from before the resize.
#[derive(Debug)]
pub struct Reflow {
    known: Vec<String>,
    at: Watermark,
}

impl Reflow {
    /// How many rows it takes to collect those lines.
    pub fn span(before: &[Stamped<Arc<Line>>], frame: &Frame) -> usize {
        SCREENS_BACK * (before.len() + frame.lines.len())
    }

    /// The lines of the old screen and of the history above it that did not change after `seen`.
    pub fn new(before: &[Stamped<Arc<Line>>], frame: &Frame, seen: Watermark) -> Self {
        let span = Self::span(before, frame) as u64;
        let start = RowNumber(frame.base_row.0.saturating_sub(span));
        let kept = frame.history.range(start, frame.base_row);
        let old = kept.filter(|(_, row)| row.changed <= seen);
        let mut known = join(old.map(|(_, row)| (row.text, row.wrapped)));
        known.extend(join(before.iter().map(|row| (&*row.value.text, row.value.wrapped))));
        Self { known, at: frame.size.changed }
    }

    /// How many lines each line is compared with.
    pub fn lines(&self) -> usize {
        self.known.len()
    }

    /// Whether the line repeats an old line and has its watermark only from the reflow.
    ///
    /// Only the end of an old line may remain when its start scrolled off.
    pub fn had(&self, line: &LogicalLine, frame: &Frame) -> bool {
        let rows = (line.first().0..line.end().0).map(RowNumber);
        let mut marks = rows.filter_map(|row| frame.any_line(row)).map(|(_, changed)| changed);
        let text = squeeze(line.text());
        marks.all(|changed| changed <= self.at)
            && self.known.iter().any(|known| known.ends_with(&text))
    }
}

/// The texts of whole lines, joined from rows with their wrap flags. Blanks are removed, because a
/// wrapped row may have lost some.
fn join<'a>(rows: impl Iterator<Item = (&'a str, bool)>) -> Vec<String> {
    let mut texts = vec![String::new()];
    for (row, wrapped) in rows {
        if let Some(text) = texts.last_mut() {
            text.push_str(&squeeze(row));
        }
        if !wrapped {
            texts.push(String::new());
        }
    }
    texts
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect()
}
