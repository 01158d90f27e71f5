//! The record of how far the commands of a session are numbered, which calls sent them, and what else
//! is known of calls that may be asked for again.
//!
//! It is all that must outlast a screen that could not be kept or cannot be read: whoever was told of
//! a command by its number must never find another one under it.

use std::collections::VecDeque;

use uuid::Uuid;

use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::shell::commands::record::CommandId;
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
    /// The stamps of other calls, and how many bytes they wrote.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    lengths: VecDeque<(String, usize)>,
    /// Whether the program is in the middle of a bracketed paste.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    paste: bool,
}

/// What is kept of the commands of a session besides their screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandsRecord {
    /// The newest of which anybody was told.
    pub last: CommandId,
    /// The calls with an idempotency key that sent one, oldest first.
    pub calls: VecDeque<(WriteStamp, CommandId)>,
    /// How many bytes the others were to write, oldest first; their terminal knows what it took.
    pub lengths: VecDeque<(WriteStamp, usize)>,
    /// Whether the terminal took the beginning of a bracketed paste and not its end.
    pub paste: bool,
}

impl CommandsRecord {
    /// Notes which command a call sends.
    pub fn note_call(&mut self, stamp: WriteStamp, command: CommandId) {
        push(&mut self.calls, (stamp, command));
    }

    /// Notes how many bytes a call writes that sends no command.
    pub fn note_length(&mut self, stamp: WriteStamp, length: usize) {
        push(&mut self.lengths, (stamp, length));
    }

    /// Says of writes that a daemon before has made what is known of them here.
    pub fn tell_of(&self, writes: &mut [FormerWrite]) {
        for write in writes {
            write.command = find(&self.calls, write.stamp);
            write.length = find(&self.lengths, write.stamp);
        }
    }

    /// The bytes of a note.
    pub fn to_note(&self) -> Vec<u8> {
        let digits = |stamp: &WriteStamp| Uuid::from_bytes(stamp.0).simple().to_string();
        let calls = self.calls.iter().map(|(stamp, command)| (digits(stamp), command.0));
        let lengths = self.lengths.iter().map(|(stamp, length)| (digits(stamp), *length));
        let (calls, lengths) = (calls.collect(), lengths.collect());
        write(Wire { last: self.last.0, calls, lengths, paste: self.paste })
    }

    /// Reads a note; without one, no command was told.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let Wire { last, calls, lengths, paste } = read(bytes)?;
        if last > LAST_MAX {
            return Err(RecordError::value("last", last));
        }
        let mut record = Self { last: CommandId(last), paste, ..Self::default() };
        let parse = |member: &'static str, stamp: String| match Uuid::parse_str(&stamp) {
            Ok(stamp) => Ok(WriteStamp(stamp.into_bytes())),
            Err(_) => Err(RecordError::value(member, stamp)),
        };
        for (stamp, command) in calls {
            let stamp = parse("calls", stamp)?;
            if command == 0 || command > last {
                return Err(RecordError::value("calls", command));
            }
            record.note_call(stamp, CommandId(command));
        }
        for (stamp, length) in lengths {
            record.note_length(parse("lengths", stamp)?, length);
        }
        Ok(record)
    }
}

fn push<T>(known: &mut VecDeque<(WriteStamp, T)>, call: (WriteStamp, T)) {
    if known.len() == CALLS_MAX {
        known.pop_front();
    }
    known.push_back(call);
}

fn find<T: Copy>(known: &VecDeque<(WriteStamp, T)>, stamp: WriteStamp) -> Option<T> {
    known.iter().rev().find(|(of, _)| *of == stamp).map(|(_, what)| *what)
}
