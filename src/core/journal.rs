//! What the journal is told of an act: facts without a number, a time or a form.

use crate::core::caller::Caller;
use crate::core::event::{Event, EventScope};
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::policy::Door;
use crate::core::policy::decision::DecisionId;

/// The number of a record. Records of one journal have the numbers from 1 on, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordNumber(pub u64);

/// An act that is about to take effect, or was refused.
#[derive(Clone, Debug)]
pub struct Intent<'a> {
    pub by: &'a Caller,
    /// Through which the act came in, where that is known.
    pub door: Option<Door>,
    /// Also the one that it is about to create. `None` for acts on the daemon as a whole.
    pub session: Option<SessionId>,
    /// For example `text`, `keys`, `resize` or `acquire_lease`.
    pub act: &'a str,
    /// Of the lease that the caller holds as it acts.
    pub epoch: Option<Epoch>,
    /// Of the rules of policy, if there are any.
    pub decision: Option<DecisionId>,
    pub content: ActContent<'a>,
}

/// What an act consists of.
#[derive(Clone, Debug)]
pub enum ActContent<'a> {
    /// The bytes for the terminal.
    Bytes(&'a [u8]),
    /// The bytes for the terminal that have it run a command, which may be in a file that they name.
    Command {
        bytes: &'a [u8],
        command: &'a str,
    },
    /// Bytes for a program that reads a secret; nothing of them is recorded.
    Secret,
    /// A command that was refused, so that nothing of it went to the terminal.
    RefusedCommand(RefusedInput<'a>),
    /// The same for text and keys.
    RefusedInput(RefusedInput<'a>),
    /// A JSON object.
    Arguments(&'a str),
    Nothing,
}

/// What a call would have typed.
#[derive(Clone, Copy, Debug)]
pub struct RefusedInput<'a> {
    pub whole: &'a str,
    /// What is recorded of it: all, or its beginning and end.
    pub told: &'a str,
}

/// What became of an act.
#[derive(Clone, Debug)]
pub enum ActOutcome<'a> {
    Done {
        /// Of the lease under which it was done.
        epoch: Option<Epoch>,
    },
    /// The bytes that the terminal took, will never take, and has yet to take.
    Written { epoch: Option<Epoch>, written: usize, discarded: usize, queued: usize },
    Failed {
        /// The error code, where the error has one yet.
        code: Option<&'a str>,
        reason: &'a str,
    },
    /// The caller did not wait for it.
    GivenUp,
    /// The daemon, or its part for the session, failed first.
    Unknown,
}

/// One entry of the journal.
#[derive(Clone, Debug)]
pub enum JournalEntry<'a> {
    Intent(Intent<'a>),
    /// Further bytes of an intent.
    More {
        of: RecordNumber,
        content: ActContent<'a>,
    },
    Outcome {
        of: RecordNumber,
        outcome: ActOutcome<'a>,
    },
    /// An operator's act that was recorded late, because the disk took no record before it.
    Late {
        intent: Intent<'a>,
        outcome: ActOutcome<'a>,
    },
    /// An act that did not begin.
    Refused {
        intent: Intent<'a>,
        /// Of the session, or of the one to be created.
        tenant: &'a TenantId,
        code: &'a str,
        reason: Option<&'a str>,
        /// How many were refused before that have no record.
        left_out: u64,
    },
    /// Bytes of an earlier act that the terminal will never take, after the outcome of the act.
    Discarded {
        session: SessionId,
        writer: &'a Caller,
        bytes: usize,
        cause: &'a str,
    },
    /// Something that happened.
    Event {
        scope: EventScope<'a>,
        event: Event,
    },
}

/// The journal cannot be written, so nothing may be done that it would have to record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be written: {why}")]
pub struct NotRecorded {
    pub why: String,
    /// Another process writes it.
    pub is_taken: bool,
}
