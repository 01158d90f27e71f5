//! What callers ask to be written, and what they are answered.

use crate::core::caller::Caller;
use crate::core::counted::counted;
use crate::core::ids::{Epoch, LeaseId, Watermark};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::keys::Unit;
use crate::core::lease::error::LeaseError;
use crate::core::lease::view::LeaseEvent;
use crate::core::shell::commands::record::CommandId;

/// Names one write, within one session; whoever asks for the write chooses it, never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// The command that a write sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSent {
    pub id: CommandId,
    /// The watermark just before it was sent.
    pub before: Watermark,
}

/// What a person types.
#[derive(Clone, Debug)]
pub struct Typing {
    pub unit: Unit,
    pub write: WriteId,
    /// By what it is known when it is asked for again; see [`Input::typed_before`].
    ///
    /// [`Input::typed_before`]: crate::core::input::Input::typed_before
    pub stamp: Option<WriteStamp>,
    /// The id of the person's grant if it is a new one; random and never used before.
    pub fresh: LeaseId,
}

/// The bytes that go to the terminal next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextBytes<'a> {
    pub bytes: &'a [u8],
    /// None for an answer of the terminal.
    pub epoch: Option<Epoch>,
    /// By what the next daemon will know the write; none without an idempotency key.
    pub stamp: Option<WriteStamp>,
    /// By what this daemon itself will know it; none for what people type.
    pub own: Option<WriteStamp>,
}

/// What became of the bytes of a write, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The terminal took them.
    pub written: usize,
    /// They will never be written.
    pub discarded: usize,
    /// They wait for the terminal to take them.
    pub queued: usize,
}

/// The end of a write, as far as its caller waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub write: WriteId,
    pub outcome: WriteOutcome,
}

/// Why bytes were discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardCause {
    LeaseEnded,
    PersonTyped,
    /// An interrupt of the holder went past them.
    Interrupted,
    SessionEnded,
    /// Whoever has the terminal does not answer; nobody knows whether it took the first of them.
    TerminalSilent,
}

/// Bytes that were discarded after their write had been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    pub writer: Caller,
    pub write: WriteId,
    pub bytes: usize,
    pub cause: DiscardCause,
}

/// What a writer is to be told with its next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How many bytes were discarded since it was last told.
    pub discarded: usize,
    pub cause: DiscardCause,
}

/// Something that happened to a lease or to what was written under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEvent {
    Lease(LeaseEvent),
    Discarded(Discarded),
}

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Writing to this session is switched off.
    #[error("writing is switched off")]
    ReadOnly,
    /// The session has ended and takes no more input.
    #[error("the session has ended")]
    SessionEnded,
    /// The terminal takes no bytes at the moment, and too many wait already.
    #[error("{} queued for the terminal, and at most {bytes_max} may be", counted(*.queued, "byte"))]
    TooMuchQueued { queued: usize, bytes_max: usize },
    /// Too many calls with idempotency keys are in flight to remember another.
    #[error("too many calls with idempotency keys are in flight")]
    TooManyInFlight,
    /// The idempotency key was used for another call.
    #[error("the idempotency key was used for a call with other arguments")]
    KeyReused,
    /// The call may only be answered as before, and what it was answered is forgotten by now.
    #[error("what was done before under this idempotency key is forgotten")]
    NotRepeated,
    /// The caller's lease came back after a person typed, and it has not seen the screen since;
    /// `since` is the watermark to have seen, where there is a frame already.
    #[error("a person typed here, and you have not said that you saw the screen since")]
    NotSeen { since: Option<Watermark> },
    /// The caller has no right to write.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}
