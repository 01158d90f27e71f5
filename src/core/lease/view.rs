//! What others learn of a lease: who holds it, how many wait, and what happened to it; never its key.
//!
//! Two views are equal when an observer has nothing new to learn, so the expiry, which every
//! renewal moves, is not part of one.

use crate::core::caller::{Caller, Kind, PrincipalName};
use crate::core::ids::{Epoch, TenantId};
use crate::core::lease::error::EndCause;

/// The state of one session's lease, as published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseView {
    /// The holding that is in force, or none when the session is free.
    pub holding: Option<HoldingView>,
    /// The holding that waits for a person to be done; it comes back with a higher epoch.
    pub suspended: Option<HoldingView>,
    pub waiters: usize,
}

/// One holding, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingView {
    pub by: PrincipalName,
    /// That of `by`, which other tenants at a mount must not know.
    pub tenant: TenantId,
    pub kind: Kind,
    pub epoch: Epoch,
    /// What the holder said it is doing.
    pub reason: Option<Box<str>>,
    /// To whom the lease was handed and who has not taken it up yet.
    pub offered_to: Option<PrincipalName>,
    /// It is of a daemon before, and whoever held it may take it back for a moment.
    pub reclaimable: bool,
}

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
    Granted,
    /// It had expired and goes on, since its holder came back before anybody else was granted one.
    Revived,
    /// Its holder prolonged it by name; mere use is no event.
    Renewed,
    /// A person has the keyboard; it comes back by itself.
    Suspended {
        by: PrincipalName,
    },
    /// It is in force again after a person was done; the epoch is a new one.
    Resumed,
    Ended(EndCause),
}
