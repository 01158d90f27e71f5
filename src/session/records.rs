//! What is kept of a session beside its terminal, as bytes, for the daemon that comes next.
//!
//! Notes are read by other versions of termgate than wrote them: members that a reader does not know
//! are skipped, those that it misses have defaults. Nothing here knows who keeps the bytes.

pub mod commands;
pub mod gaps;
pub mod identity;
pub mod lease;
pub mod stillness;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::core::moment::Moment;
use crate::session::pty::Note;

/// The meaning of the members that there are now; another one is raised when one of them changes
/// its meaning, not when members are added.
const VERSION: u32 = 1;

/// Why a note cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON, or a member is not what it should be.
    #[error("the note cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It was written by a version whose members mean something else.
    #[error("the note is of version {0}, and {VERSION} is known")]
    Version(u32),
    /// A member has a value that it cannot have.
    #[error("the note says `{value}` for `{member}`")]
    Value { member: &'static str, value: String },
}

impl RecordError {
    fn value(member: &'static str, value: impl ToString) -> Self {
        Self::Value { member, value: value.to_string().chars().take(64).collect() }
    }
}

/// A record with the version of its members.
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
    struct Head {
        v: u32,
    }
    // The version comes first: of another one, nothing else need be as it is here.
    let Head { v } = serde_json::from_slice(bytes)?;
    if v != VERSION {
        return Err(RecordError::Version(v));
    }
    Ok(serde_json::from_slice::<Versioned<T>>(bytes)?.record)
}

/// The beginning of a text that has at most so many bytes once it is written as JSON; an ellipsis
/// stands for what was cut off.
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

fn moment(since_boot_ms: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(since_boot_ms))
}

#[cfg(test)]
mod tests;
