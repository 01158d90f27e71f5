//! What happened to a lease, for the log, the observers and its former holder.
//!
//! It knows nothing of where events go, and it never carries the key of a lease.

use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::Epoch;
use crate::core::lease::error::EndCause;

/// Something that happened to one holding of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseEvent {
    /// Whose holding it is, or was: the one to notify of its end, on the connection it last used.
    pub holder: Caller,
    pub epoch: Epoch,
    pub change: LeaseChange,
}

/// What happened to a holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// It began.
    Granted,
    /// It had expired and goes on, since its holder came back before anybody else was granted one.
    Revived,
    /// Its holder prolonged it by name; mere use is no event.
    Renewed,
    /// A person has the keyboard; it comes back by itself.
    Suspended { by: PrincipalName },
    /// It is in force again after a person was done; the epoch is a new one.
    Resumed,
    /// It ended.
    Ended(EndCause),
}
