//! The note with the last command number, the commands that no checkpoint covers, the calls that sent
//! commands, and facts about calls that may be repeated.
//! It must outlast an unreadable screen, so that a command number never names two commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::moment::Moment;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::core::shell::commands::{EndsBy, SentCommand, Submission};
use crate::session::records::{RecordError, read, write};

/// More commands than any session has had, and far below the highest number.
const LAST_MAX: u64 = 1 << 53;

/// The most known calls, equal to the writes that the next daemon knows.
const CALLS_MAX: usize = 64;

/// The most JSON of commands that no checkpoint covers, in bytes; all else in the note leaves this.
const UNCOVERED_BYTES_MAX: usize = 1_536;

#[derive(serde::Serialize, serde::Deserialize)]
struct CommandsNote {
    #[serde(default)]
    last: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typed_before: Option<u64>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    uncovered: VecDeque<UncoveredCommand>,
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

/// A command that was sent to a shell with marks after the newest checkpoint. Whoever reads the output again
/// from there submits it again behind the output before `offset`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UncoveredCommand {
    id: u64,
    pub offset: u64,
    /// When it was sent, in nanoseconds since boot.
    at: u64,
    text: Arc<str>,
    typed: Arc<str>,
    by: Option<Arc<str>>,
    prompt: Arc<str>,
    echoed: bool,
}

impl UncoveredCommand {
    /// Describes a command that was submitted when the screen had the output before `offset`.
    pub fn of(record: &CommandRecord, sent: &SentCommand, offset: u64) -> Self {
        Self {
            id: record.id.0,
            offset,
            at: u64::try_from(record.started.since_boot().as_nanos()).unwrap_or(u64::MAX),
            text: Arc::clone(&record.text),
            typed: Arc::clone(&sent.typed),
            by: record.by.clone(),
            prompt: Arc::clone(&sent.prompt),
            echoed: record.echo_lines > 0,
        }
    }

    pub fn id(&self) -> CommandId {
        CommandId(self.id)
    }

    pub fn at(&self) -> Moment {
        Moment::from_boot(Duration::from_nanos(self.at))
    }

    pub fn submission(&self) -> Submission<'_> {
        let Self { text, typed, by, prompt, echoed, .. } = self;
        let by = by.clone();
        Submission { text, typed, by, ends_by: EndsBy::Marks, prompt, echoed: *echoed }
    }
}

/// Facts about a session's commands that the screen does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandsRecord {
    /// The newest command that a client knows of.
    pub last: CommandId,
    /// How many bytes the terminal takes before the first one of that command; `None` if nobody counts them.
    pub typed_before: Option<u64>,
    /// The commands that no checkpoint covers, oldest first.
    pub uncovered: VecDeque<UncoveredCommand>,
    /// The calls with an idempotency key that sent a command, oldest first.
    pub calls: VecDeque<(WriteStamp, CommandId)>,
    /// How many bytes the other calls were to write, oldest first. The shim knows how many the terminal took.
    pub lengths: VecDeque<(WriteStamp, usize)>,
    /// Whether the terminal took the start of a bracketed paste but not its end.
    pub paste: bool,
}

impl CommandsRecord {
    /// Records a command that no checkpoint covers. Returns whether there was room for it.
    pub fn note_uncovered(&mut self, command: UncoveredCommand) -> bool {
        self.uncovered.push_back(command);
        let bytes = serde_json::to_vec(&self.uncovered).map_or(usize::MAX, |json| json.len());
        let fits = bytes <= UNCOVERED_BYTES_MAX;
        if !fits {
            self.uncovered.pop_back();
        }
        fits
    }

    /// Notes that a checkpoint covers the commands up to this one. Returns whether it is news.
    pub fn cover(&mut self, last: CommandId) -> bool {
        let before = self.uncovered.len();
        self.uncovered.retain(|command| command.id() > last);
        self.uncovered.len() < before
    }

    /// The number of the newest command before those that are still to be submitted again.
    pub fn last_before(&self, uncovered: &VecDeque<UncoveredCommand>) -> CommandId {
        uncovered.front().map_or(self.last, |next| CommandId(next.id.saturating_sub(1)))
    }

    /// Forgets the newest command if none of its bytes was taken of so many in all, and returns its number: the daemon
    /// that stored it was killed before it sent it.
    pub fn take_unsent(&mut self, typed: Option<u64>) -> Option<CommandId> {
        let before = self.typed_before.take()?;
        if typed? > before {
            return None;
        }
        self.uncovered.retain(|command| command.id() != self.last);
        self.calls.retain(|(_, command)| *command != self.last);
        Some(self.last)
    }

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
        let (last, uncovered, paste) = (self.last.0, self.uncovered.clone(), self.paste);
        let typed_before = self.typed_before;
        write(CommandsNote { last, typed_before, uncovered, calls, lengths, paste })
    }

    /// Reads a note. An empty note gives the default: no commands.
    pub fn from_note(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let CommandsNote { last, typed_before, uncovered, calls, lengths, paste } = read(bytes)?;
        if last > LAST_MAX {
            return Err(RecordError::value("last", last));
        }
        if let Some(command) = uncovered.iter().find(|one| one.id == 0 || one.id > last) {
            return Err(RecordError::value("uncovered", command.id));
        }
        let last_id = CommandId(last);
        let mut record = Self { last: last_id, typed_before, uncovered, paste, ..Self::default() };
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
