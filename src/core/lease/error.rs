//! Why a lease is refused, and how one ended.
//!
//! No variant carries what would help to take a lease from its holder.

use std::time::Duration;

use crate::core::caller::{Kind, PrincipalName};
use crate::core::ids::TenantId;

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndCause {
    Released,
    Expired,
    /// Others waited, and it had lasted as long as one holding may then last.
    HeldTooLong,
    /// Its holder's connection closed and did not come back in time.
    Disconnected,
    /// Nobody was there any more to receive it.
    Undeliverable,
    /// An operator ended it.
    Preempted {
        by: PrincipalName,
    },
    /// It went over to somebody else: handed on, or taken along to a new connection.
    HandedOver {
        to: PrincipalName,
    },
    /// Another person took the keyboard.
    Replaced {
        by: PrincipalName,
    },
    WritingSwitchedOff,
    SessionEnded,
    /// The session's task failed and was started again.
    SessionRestarted,
    /// Its holder may not write any more: its token was revoked, has expired or was changed.
    RightEnded,
}

impl EndCause {
    /// The word for it on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::HeldTooLong => "held_too_long",
            Self::Disconnected => "disconnected",
            Self::Undeliverable => "undeliverable",
            Self::Preempted { .. } => "preempted",
            Self::HandedOver { .. } => "handed_over",
            Self::Replaced { .. } => "replaced",
            Self::WritingSwitchedOff => "writing_switched_off",
            Self::SessionEnded => "session_ended",
            Self::SessionRestarted => "session_restarted",
            Self::RightEnded => "right_ended",
        }
    }

    /// Who ended it or has it now, where the cause names anybody.
    pub fn by(&self) -> Option<&PrincipalName> {
        match self {
            Self::Preempted { by } | Self::Replaced { by } => Some(by),
            Self::HandedOver { to } => Some(to),
            Self::Released
            | Self::Expired
            | Self::HeldTooLong
            | Self::Disconnected
            | Self::Undeliverable
            | Self::WritingSwitchedOff
            | Self::SessionEnded
            | Self::SessionRestarted
            | Self::RightEnded => None,
        }
    }
}

/// Why somebody may not write, or does not get the lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The session is free, and the call needs a lease.
    #[error("writing needs a lease, and the lease is free")]
    Required,
    /// Somebody else holds the lease.
    #[error("the lease is held by {by}")]
    Held {
        by: PrincipalName,
        tenant: TenantId,
        kind: Kind,
        /// What its holder said that it is doing.
        reason: Option<Box<str>>,
        /// When it ends unless its holder goes on using it.
        expires_in: Duration,
        /// When it ends even so, once somebody waits for it.
        at_most: Duration,
        waiters: usize,
        /// It is of a daemon before, and whoever shows its id has it back.
        reclaimable: bool,
    },
    /// The same for a caller who may not know the holder.
    #[error("the lease is held by another tenant")]
    HeldByOtherTenant { expires_in: Duration, at_most: Duration, waiters: usize },
    /// A person has the keyboard, and the caller's lease comes back by itself after that.
    #[error("the lease is suspended while {by} types")]
    Suspended {
        by: PrincipalName,
        kind: Kind,
        /// When it comes back, unless the person goes on typing.
        resumes_in: Duration,
        /// How long it then lasts unless it is used.
        remaining: Duration,
    },
    /// The caller has handed the lease on, and it may still come back.
    #[error("the lease is offered to {to}")]
    Offered { to: PrincipalName },
    /// The caller's lease has ended.
    #[error("the lease has ended: {}", .cause.as_str())]
    Lost { cause: EndCause },
    /// The id is from before a restart of the daemon, or its end was too long ago to be known.
    #[error("the lease id is no longer known")]
    Superseded,
    /// The id belongs to another tenant; to the caller, the session does not exist.
    #[error("no such session")]
    OtherTenant,
    /// As many wait as may.
    #[error("{waiters_max} callers wait for the lease, and no more may")]
    QueueFull { waiters_max: usize },
    /// The caller asked for a time out of bounds.
    #[error("a lease lasts from {min:?} to {max:?}")]
    TtlOutOfBounds { min: Duration, max: Duration },
    /// The waiter's own connection closed.
    #[error("the wait for the lease was given up")]
    WaitGivenUp,
}
