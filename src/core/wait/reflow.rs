//! What a change of width leaves of the past: rows with new numbers and new watermarks, and old
//! text in them that must not pass for output.
//!
//! It compares text only, since after a reflow nothing else tells an old line from a new one.

use std::sync::Arc;

use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::wait::logical::LogicalLine;

/// How many screens of history a reflow can bring back to the screen.
const SCREENS_BACK: usize = 2;

/// The lines that were known before the size changed.
#[derive(Debug)]
pub struct Reflow {
    known: Vec<String>,
    at: Watermark,
}

impl Reflow {
    /// How many rows are looked at to know them.
    pub fn span(before: &[Stamped<Arc<Line>>], frame: &Frame) -> usize {
        SCREENS_BACK * (before.len() + frame.lines.len())
    }

    /// The lines of the screen as it was and of the history above it, as far as nothing in them
    /// changed after `seen`.
    pub fn new(before: &[Stamped<Arc<Line>>], frame: &Frame, seen: Watermark) -> Self {
        let span = Self::span(before, frame) as u64;
        let start = RowNumber(frame.base_row.0.saturating_sub(span));
        let kept = frame.history.range(start, frame.base_row);
        let old = kept.filter(|(_, row)| row.changed <= seen);
        let mut known = join(old.map(|(_, row)| (row.text, row.wrapped)));
        known.extend(join(before.iter().map(|row| (&*row.value.text, row.value.wrapped))));
        Self { known, at: frame.size.changed }
    }

    /// How many lines each is compared with.
    pub fn lines(&self) -> usize {
        self.known.len()
    }

    /// Whether the line says what a line said before, and got its watermark from the reflow alone.
    ///
    /// Only the end of an old line may be left where its head scrolled off.
    pub fn had(&self, line: &LogicalLine, frame: &Frame) -> bool {
        let rows = (line.first().0..line.end().0).map(RowNumber);
        let mut marks = rows.filter_map(|row| frame.any_line(row)).map(|(_, changed)| changed);
        let text = squeeze(line.text());
        marks.all(|changed| changed <= self.at)
            && self.known.iter().any(|known| known.ends_with(&text))
    }
}

/// The texts of whole lines, without blanks, which a wrapped row may have lost, from rows that say
/// whether they go on in the next.
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
