//! What callers ask to be written, and what they are answered.
//!
//! Plain values: they know nothing of the queue, nor of how they look on the wire.

use crate::core::caller::Caller;
use crate::core::ids::{LeaseId, Watermark};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::keys::unit::Unit;
use crate::core::lease::event::LeaseEvent;
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
    /// The lease they were queued under ended.
    LeaseEnded,
    /// A person took the keyboard.
    PersonTyped,
    /// An interrupt of the holder went past them.
    Interrupted,
    /// The session ended.
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
    /// Why the last of them were.
    pub cause: DiscardCause,
}

/// Something that happened to a lease or to what was written under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEvent {
    Lease(LeaseEvent),
    Discarded(Discarded),
}
