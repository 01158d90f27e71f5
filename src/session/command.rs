//! What a session's task can be asked to do, by agents and by attached people, and what it answers.
//!
//! Messages run downward only; each carries the channel for its answer and the guard that lets the
//! caller's next call go on once this one has taken effect. The commands of people have a queue of their own, which is
//! served before the commands of agents.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{ConnectionId, Epoch, LeaseId, Watermark};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::{CommandSent, WriteOutcome};
use crate::core::keys::Key;
use crate::core::keys::mouse::MouseEvent;
use crate::core::keys::paste::PasteRule;
use crate::core::lease::request::{
    AcquireRequest, Grant, ReleaseRequest, Released, RenewRequest, TakeRule, WaiterId,
};
use crate::core::policy::Door;
use crate::core::policy::bound::PermitBound;
use crate::core::policy::decision::DecisionId;
use crate::core::shell::commands::EndsBy;
use crate::session::control::{Interrupt, KeepAlive};
use crate::session::error::SessionError;
use crate::session::pty::signal::Signal;
use crate::session::request_order::RequestTurn;

/// Dropped once a call has taken effect, so that the connection's next one may.
#[derive(Debug)]
pub struct Accepted(Option<RequestTurn>);

impl Accepted {
    /// Keeps the turn until the call is accepted.
    pub fn guard(turn: RequestTurn) -> Self {
        Self(Some(turn))
    }

    /// For calls that nothing waits for.
    pub fn nothing() -> Self {
        Self(None)
    }

    /// Lets the connection's next call begin if it starts a session as this one does.
    pub fn begin(&self) {
        if let Some(turn) = &self.0 {
            turn.begin();
        }
    }
}

pub type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

/// What is typed, before the screen's modes decide which bytes that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    Keys(Vec<Key>),
    Text { text: String, paste: PasteRule, enter: bool },
    Bytes { bytes: Vec<u8>, enter: bool },
    Mouse(MouseEvent),
}

/// What a writer expects of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// No row, cursor, size or mode changed after it.
    pub watermark: Option<Watermark>,
    /// The screen shows this text.
    pub text: Option<String>,
}

/// Something that a command needs: dropped once the command has ended, or will never be sent.
#[derive(Clone)]
pub struct Provision(#[allow(dead_code)] Arc<dyn Send + Sync>); // Its end alone matters.

impl Provision {
    /// Keeps this for as long as a command may need it.
    pub fn of(needed: impl Send + Sync + 'static) -> Self {
        Self(Arc::new(needed))
    }
}

impl fmt::Debug for Provision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provision").finish_non_exhaustive()
    }
}

/// A text that is one command for whatever reads commands in the terminal.
#[derive(Clone, Debug)]
pub struct CommandOrder {
    pub text: String,
    pub typed: String,
    /// How its end is going to be known.
    pub ends_by: EndsBy,
    pub provision: Option<Provision>,
    /// Interrupt it when its caller gives it up.
    pub interrupts: bool,
}

#[derive(Clone, Debug)]
pub struct WriteOrder {
    pub caller: Caller,
    pub door: Door,
    pub content: Content,
    pub presented: Option<LeaseId>,
    pub take: TakeRule,
    pub expect: Expectation,
    pub key: Option<IdempotencyKey>,
    /// Check everything, send nothing.
    pub dry_run: bool,
    /// Keep the lease from expiring until what comes with the answer is dropped.
    pub keep_alive: bool,
    /// What is written is this command.
    pub command: Option<CommandOrder>,
    /// The decision of the rules that lets it pass; the permit says which.
    pub decision: Option<DecisionId>,
    /// What the permit limits it to.
    pub bound: Option<PermitBound>,
}

#[derive(Debug)]
pub struct Written {
    pub outcome: WriteOutcome,
    pub before: Watermark,
    pub watermark: Watermark,
    pub lease: Option<Grant>,
    /// The holding the bytes belong to.
    pub epoch: Option<Epoch>,
    pub warning: Option<String>,
    /// The same call was made before, and this one had no effect.
    pub replayed: bool,
    /// Keeps the lease alive where the order asked for it, unless the interrupt does.
    pub kept: Option<KeepAlive>,
    /// The command that the order was; none also where it was sent before and is forgotten.
    pub command: Option<CommandSent>,
    /// Interrupts the command unless it is disarmed, where the order asked for it.
    pub interrupt: Option<Interrupt>,
}

/// What is known of a call that sent a command before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// None when it is forgotten.
    pub command: Option<CommandSent>,
    /// The holding that is the caller's now.
    pub epoch: Option<Epoch>,
}

#[derive(Clone, Debug)]
pub struct ResizeOrder {
    pub caller: Caller,
    pub presented: Option<LeaseId>,
    pub take: TakeRule,
    pub size: Size,
    /// Check everything, change nothing.
    pub dry_run: bool,
}

#[derive(Clone, Debug)]
pub struct ManageOrder {
    pub caller: Caller,
    pub act: Act,
    pub fresh: LeaseId,
    /// Whether it may be done while somebody else holds the lease.
    pub over_any_lease: bool,
    /// What its permit is limited to.
    pub bound: Option<PermitBound>,
}

#[derive(Debug)]
pub struct Command {
    /// The connection it came from.
    pub connection: ConnectionId,
    pub accepted: Accepted,
    pub asked: Asked,
}

#[derive(Debug)]
pub enum Asked {
    Write(WriteOrder, Reply<Written>),
    /// Which command a call sent before.
    Recall(Caller, Option<LeaseId>, IdempotencyKey, Reply<Option<Repeated>>),
    /// The lease; the seat is told the place in line, when there is one to wait in.
    Acquire(
        Caller,
        AcquireRequest,
        Option<IdempotencyKey>,
        oneshot::Sender<WaiterId>,
        Reply<Grant>,
    ),
    Renew(Caller, RenewRequest, Option<IdempotencyKey>, Reply<Grant>),
    Release(Caller, ReleaseRequest, Option<IdempotencyKey>, Reply<Released>),
    Resize(ResizeOrder, Reply<Watermark>),
    Manage(ManageOrder, Reply<()>),
}

impl Asked {
    /// Whether it makes no sense any more once the program has ended.
    pub fn needs_program(&self) -> bool {
        match self {
            Self::Write(..) | Self::Acquire(..) | Self::Renew(..) | Self::Resize(..) => true,
            Self::Manage(order, _) => matches!(order.act, Act::Signal(_)),
            Self::Release(..) | Self::Recall(..) => false,
        }
    }

    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::Write(_, reply) => reply.is_closed(),
            Self::Recall(.., reply) => reply.is_closed(),
            Self::Acquire(.., reply) | Self::Renew(.., reply) => reply.is_closed(),
            Self::Release(.., reply) => reply.is_closed(),
            Self::Resize(_, reply) => reply.is_closed(),
            Self::Manage(_, reply) => reply.is_closed(),
        }
    }

    pub fn refuse(self, error: SessionError) {
        // A caller that no longer waits needs no answer.
        let _ = match self {
            Self::Write(_, reply) => reply.send(Err(error)).is_ok(),
            Self::Recall(.., reply) => reply.send(Err(error)).is_ok(),
            Self::Acquire(.., reply) | Self::Renew(.., reply) => reply.send(Err(error)).is_ok(),
            Self::Release(.., reply) => reply.send(Err(error)).is_ok(),
            Self::Resize(_, reply) => reply.send(Err(error)).is_ok(),
            Self::Manage(_, reply) => reply.send(Err(error)).is_ok(),
        };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Signal(Signal),
    Kill,
    ClearHistory,
    /// Only checks that nobody else holds the lease, for what is done outside the session's task.
    Check,
}

/// The most queued commands of people. The session answers more with `busy`.
pub const PEOPLE_COMMANDS_MAX: usize = 64;

/// Input that a person typed.
#[derive(Clone, Debug)]
pub struct TypedInput {
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
    TypeIn(TypedInput, Reply<Written>),
    TakeOver(Option<Size>, Reply<()>),
    /// Answers whether the person had the keyboard.
    HandBack(oneshot::Sender<bool>),
    /// Answers whether the session took the size. It does if the person has the keyboard.
    Resize(Size, Reply<bool>),
}

impl Ask {
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
