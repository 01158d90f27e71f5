//! Why a write is refused.
//!
//! It knows nothing of error codes; each variant carries what the caller would want to be told.

use crate::core::ids::Watermark;
use crate::core::lease::error::LeaseError;

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
    #[error("{queued} bytes wait for the terminal, and at most {bytes_max} may")]
    TooMuchQueued { queued: usize, bytes_max: usize },
    /// Too many calls with idempotency keys are in flight to remember another.
    #[error("too many calls with idempotency keys are in flight")]
    TooManyInFlight,
    /// The idempotency key was used for another call.
    #[error("the idempotency key was used for a call with other arguments")]
    KeyReused,
    /// The caller's lease came back after a person typed, and it has not seen the screen since;
    /// `since` is the watermark to have seen, where there is a frame already.
    #[error("a person typed here, and you have not said that you saw the screen since")]
    NotSeen { since: Option<Watermark> },
    /// The caller has no right to write.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}
