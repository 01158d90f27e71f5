//! What everybody may know of a lease: who holds it and how many wait, never its key.
//!
//! Two views are equal when an observer has nothing new to learn, so the expiry, which every
//! renewal moves, is not part of it.

use crate::core::caller::{Kind, PrincipalName};
use crate::core::ids::Epoch;

/// The state of one session's lease, as published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseView {
    /// The holding that is in force, or none when the session is free.
    pub holding: Option<HoldingView>,
    /// The holding that waits for a person to be done; it comes back with a higher epoch.
    pub suspended: Option<HoldingView>,
    /// How many callers wait for it.
    pub waiters: usize,
}

/// One holding, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingView {
    pub by: PrincipalName,
    pub kind: Kind,
    pub epoch: Epoch,
    /// What the holder said it is doing.
    pub reason: Option<Box<str>>,
    /// To whom the lease was handed and who has not taken it up yet.
    pub offered_to: Option<PrincipalName>,
    /// It is of a daemon before, and whoever held it may take it back for a moment.
    pub reclaimable: bool,
}
