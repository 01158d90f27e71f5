//! The record of how far the commands of a session are numbered, and which calls sent them.
//!
//! It is all that must outlast a screen that could not be kept or cannot be read: whoever was told of
//! a command by its number must never find another one under it.

use std::collections::VecDeque;

use uuid::Uuid;

use crate::core::commands::record::CommandId;
use crate::core::input::former::{FormerWrite, WriteStamp};
use crate::session::records::{RecordError, read, write};

/// More commands than any session has had, and far below the highest number.
const LAST_MAX: u64 = 1 << 53;

/// How many calls are known: as many as there are writes that the next daemon knows.
const CALLS_MAX: usize = 64;

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    #[serde(default)]
    last: u64,
    /// The stamps of calls as hexadecimal digits, and the commands that they sent.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    calls: VecDeque<(String, u64)>,
}

/// What is kept of the commands of a session besides their screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandsRecord {
    /// The newest of which anybody was told.
    pub last: CommandId,
    /// The calls with an idempotency key that sent one, oldest first.
    pub calls: VecDeque<(WriteStamp, CommandId)>,
}

impl CommandsRecord {
    /// Notes which command a call sends.
    pub fn note_call(&mut self, stamp: WriteStamp, command: CommandId) {
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back((stamp, command));
    }

    /// Says of writes that a daemon before has made which commands they sent.
    pub fn tell_commands(&self, writes: &mut [FormerWrite]) {
        for write in writes {
            let known = self.calls.iter().rev().find(|(stamp, _)| *stamp == write.stamp);
            write.command = known.map(|(_, command)| *command);
        }
    }

    /// The bytes of a note.
    pub fn to_note(&self) -> Vec<u8> {
        let calls = self.calls.iter();
        let calls = calls
            .map(|(stamp, command)| (Uuid::from_bytes(stamp.0).simple().to_string(), command.0));
        write(Wire { last: self.last.0, calls: calls.collect() })
    }

    /// Reads a note; without one, no command was told.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let Wire { last, calls } = read(bytes)?;
        if last > LAST_MAX {
            return Err(RecordError::value("last", last));
        }
        let mut record = Self { last: CommandId(last), calls: VecDeque::new() };
        for (stamp, command) in calls {
            let stamp = Uuid::parse_str(&stamp).map_err(|_| RecordError::value("calls", stamp))?;
            if command == 0 || command > last {
                return Err(RecordError::value("calls", command));
            }
            record.note_call(WriteStamp(stamp.into_bytes()), CommandId(command));
        }
        Ok(record)
    }
}
