//! The note with the output that was lost. Every later daemon must report that output is missing, and where.

use std::time::SystemTime;

use crate::core::ids::RowNumber;
use crate::session::records::{RecordError, read, write};

/// The most gaps to keep; the newest stay.
const GAPS_MAX: usize = 16;

/// Output that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first row that may show output from after the gap.
    pub row: RowNumber,
    /// The size in bytes; `None` if it is unknown.
    pub bytes: Option<u64>,
    /// When the output before the gap was stored; `None` if all output up to the gap was read.
    pub since: Option<SystemTime>,
}

/// The newest gaps of one session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(Vec<Gap>);

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    #[serde(default)]
    gaps: Vec<GapNote>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct GapNote {
    row: u64,
    bytes: Option<u64>,
}

impl Gaps {
    /// Adds the newest gap. A gap at the same row replaces the last one: it is the same gap, found again
    /// after a daemon that ended early.
    pub fn add(&mut self, gap: Gap) {
        if self.0.last().is_some_and(|last| last.row == gap.row) {
            self.0.pop();
        }
        if self.0.len() == GAPS_MAX {
            self.0.remove(0);
        }
        self.0.push(gap);
    }

    pub fn as_slice(&self) -> &[Gap] {
        &self.0
    }

    /// Encodes the gaps as a note. `since` is not stored.
    pub fn to_note(&self) -> Vec<u8> {
        let gaps = self.0.iter().map(|gap| GapNote { row: gap.row.0, bytes: gap.bytes });
        write(Wire { gaps: gaps.collect() })
    }

    /// Reads a note. An empty note means that nothing was lost.
    ///
    /// # Errors
    /// If the note is unreadable.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut gaps = Self::default();
        if bytes.is_empty() {
            return Ok(gaps);
        }
        let Wire { gaps: kept } = read(bytes)?;
        for GapNote { row, bytes } in kept {
            gaps.add(Gap { row: RowNumber(row), bytes, since: None });
        }
        Ok(gaps)
    }
}
