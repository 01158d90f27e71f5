//! What people ask of a session: a lane of its own, served before the commands of agents.
//!
//! Only what is attached to a session may use it. As elsewhere, messages run downward, and each
//! carries the channel for its answer.

use tokio::sync::oneshot;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::LeaseId;
use crate::core::input::request::IdempotencyKey;
use crate::session::command::{Reply, Written};
use crate::session::error::SessionError;

/// How many commands of people may wait for the task; more are answered `busy`.
pub const PEOPLE_COMMANDS_MAX: usize = 64;

/// What a person types.
#[derive(Clone, Debug)]
pub struct Typed {
    /// As the person's terminal sends them, a paste in the brackets that it puts around it.
    pub bytes: Vec<u8>,
    /// With it the bytes are typed once, however often and whichever daemon is asked.
    pub key: Option<IdempotencyKey>,
    /// The size that the person has for the session, which takes it.
    pub view: Option<Size>,
}

/// A person asks for something.
#[derive(Debug)]
pub struct PersonCommand {
    /// Of kind human, on the connection of its view.
    pub caller: Caller,
    /// The id of the person's grant, if it begins with this.
    pub fresh: LeaseId,
    pub ask: Ask,
}

/// What a person asks for.
#[derive(Debug)]
pub enum Ask {
    TypeIn(Typed, Reply<Written>),
    TakeOver(Option<Size>, Reply<()>),
    /// Says whether the person had the keyboard.
    HandBack(oneshot::Sender<bool>),
    /// Says whether the session took the size, since the person has the keyboard.
    Resize(Size, Reply<bool>),
}

impl Ask {
    /// Whether nobody waits for its answer any more.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::TypeIn(_, reply) => reply.is_closed(),
            Self::TakeOver(_, reply) => reply.is_closed(),
            Self::HandBack(reply) => reply.is_closed(),
            Self::Resize(_, reply) => reply.is_closed(),
        }
    }

    /// Answers it where the program has ended, or nothing can be written.
    pub fn refuse(self, error: SessionError) {
        // A caller that no longer waits needs no answer.
        let _ = match self {
            Self::TypeIn(_, reply) => reply.send(Err(error)).is_ok(),
            Self::TakeOver(_, reply) => reply.send(Err(error)).is_ok(),
            Self::HandBack(reply) => reply.send(false).is_ok(),
            Self::Resize(_, reply) => reply.send(Err(error)).is_ok(),
        };
    }
}
