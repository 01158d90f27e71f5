//! Commands of attached people. They have a queue of their own, which is served before the commands of
//! agents.

use tokio::sync::oneshot;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::LeaseId;
use crate::core::input::idempotency::key::IdempotencyKey;
use crate::session::command::{Reply, Written};
use crate::session::error::SessionError;

/// The most queued commands of people. The session answers more with `busy`.
pub const PEOPLE_COMMANDS_MAX: usize = 64;

/// Input that a person typed.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The bytes from the person's terminal. A paste keeps its brackets.
    pub bytes: Vec<u8>,
    /// Makes the write idempotent: the bytes are typed once, even if the request is repeated or reaches
    /// another daemon.
    pub key: Option<IdempotencyKey>,
    /// The person's window size, which the session adopts.
    pub view: Option<Size>,
}

#[derive(Debug)]
pub struct PersonCommand {
    /// A human caller, on the connection of its view.
    pub caller: Caller,
    /// The id of the person's lease, if this command acquires one.
    pub fresh: LeaseId,
    pub ask: Ask,
}

#[derive(Debug)]
pub enum Ask {
    TypeIn(Typed, Reply<Written>),
    TakeOver(Option<Size>, Reply<()>),
    /// Answers whether the person had the keyboard.
    HandBack(oneshot::Sender<bool>),
    /// Answers whether the session took the size. It does if the person has the keyboard.
    Resize(Size, Reply<bool>),
}

impl Ask {
    /// Whether no caller waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::TypeIn(_, reply) => reply.is_closed(),
            Self::TakeOver(_, reply) => reply.is_closed(),
            Self::HandBack(reply) => reply.is_closed(),
            Self::Resize(_, reply) => reply.is_closed(),
        }
    }

    /// Answers with an error, if the program has ended or writes are impossible.
    pub fn refuse(self, error: SessionError) {
        // The caller may be gone.
        let _ = match self {
            Self::TypeIn(_, reply) => reply.send(Err(error)).is_ok(),
            Self::TakeOver(_, reply) => reply.send(Err(error)).is_ok(),
            Self::HandBack(reply) => reply.send(false).is_ok(),
            Self::Resize(_, reply) => reply.send(Err(error)).is_ok(),
        };
    }
}
