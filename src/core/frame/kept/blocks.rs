//! Rows of history as bytes, in blocks that are appended and read back together.
//!
//! A block starts with the number of its first row, so rows can be cut into blocks anywhere.

use serde::{Deserialize, Serialize};

use crate::core::frame::history::{History, HistoryLimits, HistoryRow};
use crate::core::frame::kept::KeptLine;
use crate::core::ids::{RowNumber, Watermark};

/// The written version of the block format, the first byte of each block.
const FORMAT: u8 = 1;

/// Every row number and watermark is below this: 2^53.
pub(crate) const NUMBER_MAX: u64 = 1 << 53;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: u8,
    /// The number of the first row.
    first: u64,
    rows: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptRow<'a> {
    #[serde(borrow)]
    line: KeptLine<'a>,
    changed: u64,
}

/// What is wrong with the bytes of rows.
pub(crate) type Damage = &'static str;

impl History {
    /// A block with the rows from `since` on; empty when there are no rows.
    pub fn block(&self, since: RowNumber) -> Vec<u8> {
        let since = since.max(self.first());
        if since >= self.end() {
            return Vec::new();
        }
        let rows = u32::try_from(self.end().0 - since.0).unwrap_or(u32::MAX);
        let mut bytes = append(&Head { format: FORMAT, first: since.0, rows }, Vec::new());
        for (_, row) in self.range(since, since.plus(rows as usize)) {
            let line = KeptLine::of(row.text, row.runs, row.wrapped);
            bytes = append(&KeptRow { line, changed: row.changed.0 }, bytes);
        }
        bytes
    }

    /// Adds the new rows of these blocks, in the order in which they were written. When rows are
    /// missing in between, all rows before the gap are dropped.
    ///
    /// # Errors
    /// [`Damage`] when the bytes are not blocks; the rows before the damage are added.
    pub(crate) fn take_blocks(
        &mut self,
        limits: HistoryLimits,
        bytes: &[u8],
    ) -> Result<(), Damage> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let head: Head = take(&mut rest)?;
            if head.format != FORMAT {
                return Err("they are of a format that is not known here");
            }
            let first = RowNumber(head.first);
            if head.first.saturating_add(head.rows.into()) > NUMBER_MAX {
                return Err("a row has a number that is too high");
            }
            if first > self.end() {
                *self = Self::starting_at(first, limits);
            }
            for number in head.first..head.first + u64::from(head.rows) {
                let row: KeptRow<'_> = take(&mut rest)?;
                let line = row.line.line().ok_or("a row is none that a screen shows")?;
                if row.changed > NUMBER_MAX {
                    return Err("a row has a watermark that is too high");
                }
                if RowNumber(number) == self.end() {
                    self.push(HistoryRow::of(&line, Watermark(row.changed)));
                }
            }
        }
        Ok(())
    }
}

fn append(value: &impl Serialize, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("memory takes all that these types are made of")
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Result<T, Damage> {
    let (value, after) = postcard::take_from_bytes(rest).map_err(|_| "a row cannot be read")?;
    *rest = after;
    Ok(value)
}
