//! The note with the last command number, the calls that sent commands, and facts about calls that may be
//! repeated.
//! It must outlast an unreadable screen, so that a command number never names two commands.

use std::collections::VecDeque;

use uuid::Uuid;

use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::shell::commands::record::CommandId;
use crate::session::records::{RecordError, read, write};

/// More commands than any session has had, and far below the highest number.
const LAST_MAX: u64 = 1 << 53;

/// The most known calls, equal to the writes that the next daemon knows.
const CALLS_MAX: usize = 64;

#[derive(serde::Serialize, serde::Deserialize)]
struct CommandsNote {
    #[serde(default)]
    last: u64,
    /// The stamps of calls, in hexadecimal, with the commands that they sent.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    calls: VecDeque<(String, u64)>,
    /// The stamps of other calls, with the number of bytes that they write.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    lengths: VecDeque<(String, usize)>,
    /// Whether the program has received the start of a bracketed paste but not its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    paste: bool,
}

/// Facts about a session's commands that the screen does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandsRecord {
    /// The newest command that a client knows of.
    pub last: CommandId,
    /// The calls with an idempotency key that sent a command, oldest first.
    pub calls: VecDeque<(WriteStamp, CommandId)>,
    /// How many bytes the other calls were to write, oldest first. The shim knows how many the terminal took.
    pub lengths: VecDeque<(WriteStamp, usize)>,
    /// Whether the terminal took the start of a bracketed paste but not its end.
    pub paste: bool,
}

impl CommandsRecord {
    /// Records which command a call sends.
    pub fn note_call(&mut self, stamp: WriteStamp, command: CommandId) {
        push(&mut self.calls, (stamp, command));
    }

    /// Records how many bytes a call writes that sends no command.
    pub fn note_length(&mut self, stamp: WriteStamp, length: usize) {
        push(&mut self.lengths, (stamp, length));
    }

    /// Adds the known facts to the writes of a previous daemon.
    pub fn tell_of(&self, writes: &mut [FormerWrite]) {
        for write in writes {
            write.command = find(&self.calls, write.stamp);
            write.length = find(&self.lengths, write.stamp);
        }
    }

    pub fn to_note(&self) -> Vec<u8> {
        let digits = |stamp: &WriteStamp| Uuid::from_bytes(stamp.0).simple().to_string();
        let calls = self.calls.iter().map(|(stamp, command)| (digits(stamp), command.0));
        let lengths = self.lengths.iter().map(|(stamp, length)| (digits(stamp), *length));
        let (calls, lengths) = (calls.collect(), lengths.collect());
        write(CommandsNote { last: self.last.0, calls, lengths, paste: self.paste })
    }

    /// Reads a note. An empty note gives the default: no commands.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let CommandsNote { last, calls, lengths, paste } = read(bytes)?;
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
