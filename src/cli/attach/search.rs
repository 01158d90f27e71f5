//! Searches history for a text, some rows at a time, and says which rows to read next.

use std::ops::Range;

use crate::wire::rows::HistoryRows;

/// How many rows are read at once.
const ROWS: u64 = 500;

/// Where to search on from the last row that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    Older,
    Newer,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct HistorySearch {
    text: String,
    towards: Towards,
    /// Rows that are still to be searched, without those of the chunk.
    rest: Range<u64>,
    /// What is still to be read of the rows that are searched now.
    chunk: Range<u64>,
    found: Option<u64>,
}

/// What an answer brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    Found(u64),
    /// There are more rows to read.
    GoesOn,
    Nowhere,
}

impl HistorySearch {
    /// Searches these rows. A text without capitals matches any.
    pub fn new(text: &str, towards: Towards, rest: Range<u64>) -> Self {
        Self { text: text.to_owned(), towards, rest, chunk: 0..0, found: None }
    }

    /// What to tell where no row has the text.
    pub fn missed(&self) -> String {
        let where_to = match self.towards {
            Towards::Older => "above",
            Towards::Newer => "below",
        };
        format!("not found {where_to}: {}", self.text)
    }

    /// The rows to read: the first one and how many; none when all were searched.
    pub fn wanted(&mut self) -> Option<(u64, u64)> {
        if self.chunk.is_empty() {
            let Range { start, end } = self.rest.clone();
            self.chunk = match self.towards {
                Towards::Older => end.saturating_sub(ROWS).max(start)..end,
                Towards::Newer => start..end.min(start.saturating_add(ROWS)),
            };
            match self.towards {
                Towards::Older => self.rest.end = self.chunk.start,
                Towards::Newer => self.rest.start = self.chunk.end,
            }
        }
        (!self.chunk.is_empty()).then(|| (self.chunk.start, self.chunk.end - self.chunk.start))
    }

    /// Takes an answer of `read_history`.
    pub fn take(&mut self, answer: &HistoryRows) -> Searched {
        // It answers the search before this one.
        if self.chunk.is_empty() {
            return Searched::GoesOn;
        }
        let texts = answer.text.as_deref().unwrap_or_default();
        let rows = (answer.first_row..answer.next_row).zip(texts.split('\n'));
        let mut found = rows.filter(|(_, text)| self.is_in(text)).map(|(row, _)| row);
        self.found = match self.towards {
            Towards::Older => found.last().or(self.found),
            Towards::Newer => self.found.or_else(|| found.next()),
        };
        // Rows that are gone by now are not read again.
        self.chunk.start = answer.next_row.max(self.chunk.start + 1).min(self.chunk.end);
        match self.found {
            _ if !self.chunk.is_empty() => Searched::GoesOn,
            Some(row) => Searched::Found(row),
            None if self.rest.is_empty() => Searched::Nowhere,
            None => Searched::GoesOn,
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match self.text.chars().any(char::is_uppercase) {
            true => text.contains(&self.text),
            false => text.to_lowercase().contains(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these rows of a history in which each row shows its number.
    fn answer(rows: Range<u64>) -> HistoryRows {
        let texts: Vec<_> = rows.clone().map(|row| format!("Row {row}.")).collect();
        HistoryRows {
            untrusted: crate::wire::untrusted::Untrusted,
            session: "s".to_owned(),
            first_row: rows.start,
            end_row: 2_000,
            next_row: rows.end,
            dropped_rows: 0,
            lost_output: Vec::new(),
            watermark: 1,
            text: Some(texts.join("\n")),
            lines: None,
        }
    }

    /// Searches to the end, reading so many rows at once; also returns how many rows were read.
    fn search(text: &str, towards: Towards, rest: Range<u64>, most: u64) -> (Option<u64>, u64) {
        let (mut search, mut read) = (HistorySearch::new(text, towards, rest), 0);
        while let Some((first, count)) = search.wanted() {
            let count = count.min(most);
            read += count;
            match search.take(&answer(first..first + count)) {
                Searched::Found(row) => return (Some(row), read),
                Searched::Nowhere => return (None, read),
                Searched::GoesOn => {}
            }
        }
        (None, read)
    }

    #[test]
    fn the_nearest_row_is_found_in_either_direction() {
        for most in [7, 500] {
            assert_eq!(search("7.", Towards::Older, 0..1_900, most).0, Some(1_897));
            assert_eq!(search("7.", Towards::Newer, 1_000..1_900, most).0, Some(1_007));
            assert_eq!(search("row 3.", Towards::Older, 0..1_900, most), (Some(3), 1_900));
        }
        assert_eq!(search("7.", Towards::Newer, 1_000..1_900, 500).1, 500, "no more is read");
    }

    #[test]
    fn what_is_nowhere_is_not_found_and_capitals_count_where_they_are_typed() {
        assert_eq!(search("ROW 3", Towards::Older, 0..600, 500), (None, 600));
        assert_eq!(search("Row 3.", Towards::Older, 0..600, 500).0, Some(3));
        assert_eq!(search("row", Towards::Older, 5..5, 500), (None, 0));
    }

    #[test]
    fn an_answer_to_the_search_before_counts_for_nothing() {
        let mut search = HistorySearch::new("3.", Towards::Older, 0..10);
        assert_eq!(search.take(&answer(0..4)), Searched::GoesOn);
        assert_eq!(search.wanted(), Some((0, 10)));
        assert_eq!(search.take(&answer(0..10)), Searched::Found(3));
    }

    #[test]
    fn rows_that_are_gone_end_no_search() {
        let mut search = HistorySearch::new("x", Towards::Newer, 0..10);
        assert_eq!(search.wanted(), Some((0, 10)));
        assert_eq!(search.take(&answer(8..8)), Searched::GoesOn);
        assert_eq!(search.wanted(), Some((8, 2)));
        assert_eq!(search.take(&answer(8..10)), Searched::Nowhere);
    }
}
