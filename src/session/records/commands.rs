//! The record of how far the commands of a session are numbered.
//!
//! It is all that must outlast a screen that could not be kept or cannot be read: whoever was told of
//! a command by its number must never find another one under it.

use crate::core::commands::record::CommandId;
use crate::session::records::{RecordError, read, write};

/// More commands than any session has had, and far below the highest number.
const LAST_MAX: u64 = 1 << 53;

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    #[serde(default)]
    last: u64,
}

/// The bytes of a note.
pub fn to_note(last: CommandId) -> Vec<u8> {
    write(Wire { last: last.0 })
}

/// Reads a note; without one, no command was told.
///
/// # Errors
/// Why it cannot be read.
pub fn from_note(bytes: &[u8]) -> Result<CommandId, RecordError> {
    if bytes.is_empty() {
        return Ok(CommandId::default());
    }
    let Wire { last } = read(bytes)?;
    if last > LAST_MAX {
        return Err(RecordError::value("last", last));
    }
    Ok(CommandId(last))
}
