//! The record of what a session's program wrote and nobody will ever see.
//!
//! It knows nothing of why it was lost. Whoever reads a session must be told that something is missing,
//! and where, by every later daemon as well.

use std::time::SystemTime;

use crate::core::ids::RowNumber;
use crate::session::records::{RecordError, read, write};

/// So many gaps of one session are told, the newest.
const GAPS_MAX: usize = 16;

/// Output that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first row that may show what came behind it.
    pub row: RowNumber,
    /// How much it was, in bytes; none when nobody knows.
    pub bytes: Option<u64>,
    /// When what came before it was kept; none when all up to it was read.
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
    /// Adds the newest one. One at the same place is the same, found again by a daemon that came after
    /// one that ended before it had kept anything behind the gap.
    pub fn add(&mut self, gap: Gap) {
        if self.0.last().is_some_and(|last| last.row == gap.row) {
            self.0.pop();
        }
        if self.0.len() == GAPS_MAX {
            self.0.remove(0);
        }
        self.0.push(gap);
    }

    /// All that are known.
    pub fn as_slice(&self) -> &[Gap] {
        &self.0
    }

    /// The bytes of a note. A gap that only remains have is in none.
    pub fn to_note(&self) -> Vec<u8> {
        let gaps = self.0.iter().map(|gap| GapNote { row: gap.row.0, bytes: gap.bytes });
        write(Wire { gaps: gaps.collect() })
    }

    /// Reads a note; without one, nothing was lost.
    ///
    /// # Errors
    /// Why it cannot be read.
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
