//! The note with the time of the screen's last change. It is valid while the program has written nothing
//! more.

use crate::core::moment::Moment;
use crate::session::records::{RecordError, millis, moment, read, write};

/// The last change of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stillness {
    /// How many bytes the program had written by then.
    pub offset: u64,
    pub at: Moment,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    offset: u64,
    /// Since boot.
    changed_ms: u64,
}

impl Stillness {
    pub fn to_note(&self) -> Vec<u8> {
        write(Wire { offset: self.offset, changed_ms: millis(self.at.since_boot()) })
    }

    /// Reads a note. An empty note gives `None`.
    ///
    /// # Errors
    /// If the note is unreadable.
    pub fn from_note(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let Wire { offset, changed_ms } = read(bytes)?;
        Ok(Some(Self { offset, at: moment(changed_ms) }))
    }
}
