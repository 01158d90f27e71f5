//! The rows that scrolled off the screen, by absolute number, bounded in rows and in bytes.
//!
//! Clones share their rows, so a frame carries its history without a copy or a lock. A row never changes
//! once it is here.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::frame::line::{Line, Link, Run};
use crate::core::ids::{RowNumber, Watermark};

/// How many rows share one chunk, the unit that clones copy and that trimming drops.
const CHUNK_ROWS: usize = 128;

/// The bounds of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    pub rows_max: usize,
    pub bytes_max: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { rows_max: 10_000, bytes_max: 8 * 1024 * 1024 }
    }
}

/// A row of history with the watermark of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRow<'a> {
    pub text: &'a str,
    pub runs: &'a [Run],
    pub links: &'a [Link],
    pub wrapped: bool,
    pub changed: Watermark,
}

impl<'a> HistoryRow<'a> {
    pub fn of(line: &'a Line, changed: Watermark) -> Self {
        let Line { text, runs, links, wrapped } = line;
        Self { text, runs, links, wrapped: *wrapped, changed }
    }

    pub fn line(&self) -> Line {
        let Self { text, runs, links, wrapped, .. } = *self;
        Line { text: text.into(), runs: runs.into(), links: links.into(), wrapped }
    }

    fn bytes(&self) -> usize {
        let targets: usize = self.links.iter().map(|link| link.target.len()).sum();
        let plain = self.runs.is_empty() && self.links.is_empty();
        let styles = if plain { 0 } else { size_of::<StyleEnd>() };
        styles
            + size_of::<TextEnd>()
            + size_of::<Watermark>()
            + self.text.len()
            + size_of_val(self.runs)
            + size_of_val(self.links)
            + targets
    }
}

/// The end of a row's text in its chunk, and whether the row wraps. It begins at the end of the row before.
#[derive(Clone, Copy, Debug, Default)]
struct TextEnd(u32);

impl TextEnd {
    const WRAPPED: u32 = 1 << 31;

    /// A row has at most a thousand cells with a few marks each, so the text of a chunk is shorter.
    fn new(end: usize, wrapped: bool) -> Self {
        Self(end as u32 | if wrapped { Self::WRAPPED } else { 0 })
    }

    fn end(self) -> usize {
        (self.0 & !Self::WRAPPED) as usize
    }

    fn wrapped(self) -> bool {
        self.0 & Self::WRAPPED != 0
    }
}

/// The end of a row's runs and links in its chunk. They begin at the end of the row before.
#[derive(Clone, Copy, Debug, Default)]
struct StyleEnd {
    runs: u32,
    links: u32,
}

/// Consecutive rows in shared buffers, so that a row needs no allocation of its own, and a plain one no more than its
/// text.
#[derive(Clone, Debug, Default)]
struct Chunk {
    text: String,
    text_ends: Vec<TextEnd>,
    changed: Vec<Watermark>,
    runs: Vec<Run>,
    links: Vec<Link>,
    /// One for each row, or none if all rows are plain.
    style_ends: Vec<StyleEnd>,
    bytes: usize,
}

impl Chunk {
    fn push(&mut self, row: HistoryRow<'_>) {
        if self.style_ends.is_empty() && !(row.runs.is_empty() && row.links.is_empty()) {
            self.style_ends.resize(self.rows(), StyleEnd::default());
        }
        self.text.push_str(row.text);
        self.text_ends.push(TextEnd::new(self.text.len(), row.wrapped));
        self.changed.push(row.changed);
        self.runs.extend_from_slice(row.runs);
        self.links.extend_from_slice(row.links);
        if !(self.runs.is_empty() && self.links.is_empty()) {
            let [runs, links] = [self.runs.len() as u32, self.links.len() as u32];
            self.style_ends.push(StyleEnd { runs, links });
        }
        self.bytes += row.bytes();
    }

    fn rows(&self) -> usize {
        self.text_ends.len()
    }

    fn row(&self, index: usize) -> Option<HistoryRow<'_>> {
        let (end, changed) = (self.text_ends.get(index)?, *self.changed.get(index)?);
        let before = index.checked_sub(1);
        let text_from = before.map_or(0, |before| self.text_ends[before].end());
        let style = |index: Option<usize>| {
            index.and_then(|at| self.style_ends.get(at)).copied().unwrap_or_default()
        };
        let (styled_from, styled) = (style(before), style(Some(index)));
        Some(HistoryRow {
            text: &self.text[text_from..end.end()],
            runs: &self.runs[styled_from.runs as usize..styled.runs as usize],
            links: &self.links[styled_from.links as usize..styled.links as usize],
            wrapped: end.wrapped(),
            changed,
        })
    }
}

/// Rows `first()..end()`, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    chunks: VecDeque<Arc<Chunk>>,
    first: RowNumber,
    rows: usize,
    bytes: usize,
    limits: HistoryLimits,
}

impl History {
    /// An empty history whose first row will be row 0.
    pub fn new(limits: HistoryLimits) -> Self {
        Self::starting_at(RowNumber(0), limits)
    }

    pub fn starting_at(first: RowNumber, limits: HistoryLimits) -> Self {
        Self { chunks: VecDeque::new(), first, rows: 0, bytes: 0, limits }
    }

    /// The oldest readable row; older ones were trimmed.
    pub fn first(&self) -> RowNumber {
        self.first
    }

    /// The row after the newest one.
    pub fn end(&self) -> RowNumber {
        self.first.plus(self.rows)
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn limits(&self) -> HistoryLimits {
        self.limits
    }

    /// Whether the rows from `row` on take half the room or more.
    pub fn is_half_after(&self, row: RowNumber) -> bool {
        let rows = self.end().0.saturating_sub(row.max(self.first).0);
        let chunks = (rows as usize).div_ceil(CHUNK_ROWS);
        let bytes: usize = self.chunks.iter().rev().take(chunks).map(|chunk| chunk.bytes).sum();
        rows > 0
            && (rows as usize * 2 >= self.limits.rows_max || bytes * 2 >= self.limits.bytes_max)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a row and trims whole chunks that exceed the limits.
    pub fn push(&mut self, row: HistoryRow<'_>) {
        let full = self.chunks.back().is_none_or(|chunk| chunk.rows() >= CHUNK_ROWS);
        if full {
            self.open_chunk();
        }
        if let Some(open) = self.chunks.back_mut() {
            Arc::make_mut(open).push(row);
        }
        self.rows += 1;
        self.bytes += row.bytes();
        self.trim();
    }

    fn open_chunk(&mut self) {
        if let Some(full) = self.chunks.back_mut() {
            // The copy is no larger than its rows, and the next chunk grows where this one did.
            *full = Arc::new(Chunk::clone(full));
        }
        self.chunks.push_back(Arc::new(Chunk::default()));
    }

    fn trim(&mut self) {
        while self.rows > self.limits.rows_max || self.bytes > self.limits.bytes_max {
            // The newest chunk always stays, so that the row just pushed is readable.
            if self.chunks.len() < 2 {
                return;
            }
            let Some(oldest) = self.chunks.pop_front() else { return };
            self.first = self.first.plus(oldest.rows());
            self.rows -= oldest.rows();
            self.bytes -= oldest.bytes;
        }
    }

    /// The row with this number, unless it was trimmed or has not scrolled off yet.
    pub fn row(&self, number: RowNumber) -> Option<HistoryRow<'_>> {
        self.range(number, number.plus(1)).next().map(|(_, row)| row)
    }

    /// The readable rows of `start..end`, in order.
    pub fn range(
        &self,
        start: RowNumber,
        end: RowNumber,
    ) -> impl DoubleEndedIterator<Item = (RowNumber, HistoryRow<'_>)> {
        let start = start.max(self.first);
        let end = end.min(self.end()).max(start);
        // Every chunk but the newest is full, so the row number gives the chunk.
        let indices = (start.0 - self.first.0) as usize..(end.0 - self.first.0) as usize;
        indices.filter_map(move |index| {
            let chunk = self.chunks.get(index / CHUNK_ROWS)?;
            let row = chunk.row(index % CHUNK_ROWS)?;
            Some((self.first.plus(index), row))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::line::{Attributes, Style};

    fn row(text: &str) -> HistoryRow<'_> {
        HistoryRow { text, runs: &[], links: &[], wrapped: false, changed: Watermark(1) }
    }

    fn history_of(rows: usize, limits: HistoryLimits) -> History {
        let mut history = History::new(limits);
        for number in 0..rows {
            history.push(row(&number.to_string()));
        }
        history
    }

    #[test]
    fn a_row_keeps_its_number_while_older_ones_are_trimmed() {
        let limits = HistoryLimits { rows_max: 300, bytes_max: usize::MAX };
        let history = history_of(1_000, limits);
        assert!(history.len() <= 300);
        assert_eq!(history.end(), RowNumber(1_000));
        for (number, row) in history.range(RowNumber(0), RowNumber(2_000)) {
            assert_eq!(row.text, number.to_string());
        }
        assert_eq!(history.range(RowNumber(0), RowNumber(2_000)).count(), history.len());
    }

    #[test]
    fn bytes_bound_the_history_as_well_as_rows() {
        let limits = HistoryLimits { rows_max: usize::MAX, bytes_max: 20_000 };
        let history = history_of(5_000, limits);
        assert!(history.bytes() <= 20_000, "{}", history.bytes());
        assert!(history.len() >= CHUNK_ROWS);
    }

    #[test]
    fn a_clone_does_not_see_rows_pushed_after_it() {
        let mut history = history_of(10, HistoryLimits::default());
        let before = history.clone();
        history.push(row("late"));
        assert_eq!(before.end(), RowNumber(10));
        assert!(before.row(RowNumber(10)).is_none());
        assert_eq!(history.row(RowNumber(10)).expect("pushed").text, "late");
    }

    #[test]
    fn rows_are_as_they_were_pushed_whether_plain_styled_or_wrapped() {
        let style = Style { attributes: Attributes::BOLD, ..Style::default() };
        let (bold, link) = (
            [Run { column: 0, columns: 2, style }],
            [Link { column: 1, columns: 1, target: "https://a.example".into() }],
        );
        let kinds: [(&[Run], &[Link]); 4] =
            [(&[], &[]), (&bold, &[]), (&[], &link), (&bold, &link)];
        // Chunks of plain rows alone, of both, and with a styled row at either end.
        for period in [1, 3, 50, 127, 128, 200] {
            let texts: Vec<String> = (0..400).map(|number| number.to_string()).collect();
            let rows = texts.iter().enumerate().map(|(at, text)| {
                let (runs, links) = if at % period == 0 { kinds[at % 4] } else { kinds[0] };
                let changed = Watermark(at as u64);
                HistoryRow { text, runs, links, wrapped: at % 5 == 0, changed }
            });
            let mut history = History::new(HistoryLimits::default());
            rows.clone().for_each(|row| history.push(row));
            let found = history.range(RowNumber(0), history.end()).map(|(_, row)| row);
            assert!(found.eq(rows), "{period}");
        }
    }

    #[test]
    fn a_row_out_of_range_is_absent() {
        let history = history_of(3, HistoryLimits::default());
        assert!(history.row(RowNumber(3)).is_none());
        assert_eq!(history.range(RowNumber(2), RowNumber(1)).count(), 0);
    }
}
