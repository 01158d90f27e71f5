//! The record of when the screen of a session last changed.
//!
//! It holds for as long as the program has written nothing more, since what it writes changes the screen
//! for whoever reads it.

use crate::core::moment::Moment;
use crate::session::records::{RecordError, millis, moment, read, write};

/// Since when a screen is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stillness {
    /// How much the program had written then, in bytes.
    pub offset: u64,
    pub at: Moment,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    offset: u64,
    /// Since the machine was booted.
    changed_ms: u64,
}

impl Stillness {
    /// The bytes of a note.
    pub fn to_note(&self) -> Vec<u8> {
        write(Wire { offset: self.offset, changed_ms: millis(self.at.since_boot()) })
    }

    /// Reads a note; there is none of a screen that was never still.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn from_note(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let Wire { offset, changed_ms } = read(bytes)?;
        Ok(Some(Self { offset, at: moment(changed_ms) }))
    }
}
