//! The notes that a shim stores for the next daemon, encoded as JSON.
//! Other versions of termgate may read them: readers skip unknown members and use defaults for missing ones.

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

/// The version of the members. Raise it if a member changes its meaning, not if one is added.
const VERSION: u32 = 1;

/// Why a note cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON, or a member has the wrong type.
    #[error("the note cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Its version has members with another meaning.
    #[error("the note is of version {0}, and {VERSION} is known")]
    Version(u32),
    /// A member has an invalid value.
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
    struct Head {
        v: u32,
    }
    // Reads the version first, because another version may have other members.
    let Head { v } = serde_json::from_slice(bytes)?;
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

fn moment(since_boot_ms: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(since_boot_ms))
}

#[cfg(test)]
mod tests;
