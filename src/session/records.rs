//! The notes that a shim stores for the next daemon, encoded as JSON; here those of lost output and of the last change.
//! Other versions of termgate may read them: readers skip unknown members and use defaults for missing ones.

pub mod commands;
pub mod identity;
pub mod lease;

use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::core::ids::RowNumber;
use crate::core::moment::Moment;
use crate::session::pty::Note;

/// The most gaps to keep; the newest stay.
const GAPS_MAX: usize = 16;

/// The version of the members. Raise it if a member changes its meaning, not if one is added.
const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the note cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the note is of version {0}, and {VERSION} is known")]
    Version(u32),
    #[error("the note says `{value}` for `{member}`")]
    Value { member: &'static str, value: String },
}

impl RecordError {
    fn value(member: &'static str, value: impl ToString) -> Self {
        Self::Value { member, value: value.to_string().chars().take(64).collect() }
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    record: T,
}

fn write<T: Serialize>(record: T) -> Vec<u8> {
    let bytes = serde_json::to_vec(&Versioned { v: VERSION, record })
        .expect("texts, numbers and lists of them are always JSON");
    debug_assert!(bytes.len() <= Note::BYTES_MAX, "texts are cut so that every note fits");
    bytes
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    #[derive(serde::Deserialize)]
    struct VersionNote {
        v: u32,
    }
    // Reads the version first, because another version may have other members.
    let VersionNote { v } = serde_json::from_slice(bytes)?;
    if v != VERSION {
        return Err(RecordError::Version(v));
    }
    Ok(serde_json::from_slice::<Versioned<T>>(bytes)?.record)
}

/// Cuts a text to at most `bytes_max` bytes of JSON. An ellipsis replaces the rest.
fn cut(text: &str, bytes_max: usize) -> String {
    const ELLIPSIS: char = '\u{2026}';
    let written = |c: char| match c {
        '"' | '\\' => 2,
        c if c.is_ascii_control() => 6,
        c => c.len_utf8(),
    };
    if text.chars().map(written).sum::<usize>() <= bytes_max {
        return text.to_owned();
    }
    let mut left = bytes_max.saturating_sub(ELLIPSIS.len_utf8());
    let fits = |c: &char| {
        let fits = written(*c) <= left;
        left = left.saturating_sub(written(*c));
        fits
    };
    text.chars().take_while(fits).chain([ELLIPSIS]).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const fn moment(since_boot_ms: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(since_boot_ms))
}

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
struct GapsNote {
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
        write(GapsNote { gaps: gaps.collect() })
    }

    /// Reads a note. An empty note means that nothing was lost.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut gaps = Self::default();
        if bytes.is_empty() {
            return Ok(gaps);
        }
        let GapsNote { gaps: kept } = read(bytes)?;
        for GapNote { row, bytes } in kept {
            gaps.add(Gap { row: RowNumber(row), bytes, since: None });
        }
        Ok(gaps)
    }
}

/// The last change of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stillness {
    /// How many bytes the program had written by then.
    pub offset: u64,
    pub at: Moment,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct StillnessNote {
    offset: u64,
    /// Since boot.
    changed_ms: u64,
}

impl Stillness {
    pub fn to_note(&self) -> Vec<u8> {
        write(StillnessNote { offset: self.offset, changed_ms: millis(self.at.since_boot()) })
    }

    /// Reads a note. An empty note gives `None`.
    pub fn from_note(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let StillnessNote { offset, changed_ms } = read(bytes)?;
        Ok(Some(Self { offset, at: moment(changed_ms) }))
    }
}

#[cfg(test)]
mod tests;
