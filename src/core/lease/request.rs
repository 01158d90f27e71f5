//! What callers ask of a lease, and what they are answered.

use std::time::Duration;

use crate::core::caller::PrincipalName;
use crate::core::ids::{Epoch, LeaseId};
use crate::core::lease::error::EndCause;
use crate::core::moment::Moment;

/// Names one wait for a lease, within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub u64);

/// What becomes of a lease when the last connection of its holder that used it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It ends at once.
    Release,
    /// It ends after this time, unless its holder is back by then.
    Grace(Duration),
    /// It lasts as if nothing had happened. A lease that the command line keeps so is one holder's,
    /// whichever of its connections shows the id.
    Keep,
}

/// A lease as its holder is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub lease: LeaseId,
    pub epoch: Epoch,
    pub ttl: Duration,
    /// When it ends unless it is used before.
    pub expires_at: Moment,
    /// It had expired, and nobody was granted one in between.
    pub revived: bool,
}

/// What a caller wants of a lease.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// The id the lease gets if it is a new one; random and never used before.
    pub fresh: LeaseId,
    /// The id of a lease to take back after a disconnect.
    pub presented: Option<LeaseId>,
    /// How long it lasts without use; the default of the limits when not given.
    pub ttl: Option<Duration>,
    /// A grace of the default length when not given.
    pub on_disconnect: Option<OnDisconnect>,
    /// What the caller is about to do, for others to read; cleaned and cut by the surface.
    pub reason: Option<Box<str>>,
    /// Until when to wait for a lease that somebody else holds.
    pub wait_until: Option<Moment>,
    /// How many of the caller's tenant may wait; as many as the limits say when not given.
    pub waiters_max: Option<usize>,
}

/// The answer to an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    Granted(Grant),
    /// The caller waits; a grant or a refusal follows under this name.
    Waiting(WaiterId),
}

/// Which lease to prolong, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenewRequest {
    /// The id of the lease; the one the caller holds when not given.
    pub presented: Option<LeaseId>,
    /// The new time to live; the one the lease has when not given.
    pub ttl: Option<Duration>,
}

/// Which lease to give back, and to whom.
#[derive(Clone, Debug, Default)]
pub struct ReleaseRequest {
    /// The id of the lease; the one the caller holds when not given.
    pub presented: Option<LeaseId>,
    pub hand_to: Option<HandOver>,
}

/// To whom a lease goes.
#[derive(Clone, Debug)]
pub struct HandOver {
    pub to: PrincipalName,
    /// The id it gets there; random and never used before.
    pub fresh: LeaseId,
}

/// The answer to a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lease ended, and the next caller has it if one waited.
    Freed,
    /// The one it was handed to waited for it and has it.
    HandedOver,
    /// The one it was handed to may take it up until then; after that it returns.
    Offered { until: Moment },
    /// The caller declined what it was offered, and its holder has it back.
    Returned,
    /// It had ended before, in this way.
    AlreadyGone(EndCause),
}

/// What a call does about a lease that its caller does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeRule {
    /// The call needs a lease that is held.
    HeldOnly,
    /// A free lease is taken under this fresh id, and given back when the call is done.
    ForThisCall(LeaseId),
    /// A free lease is taken under this fresh id for this time, and kept.
    AndKeep(LeaseId, Duration),
}

/// Keeps a lease from expiring while a call is in flight; to be given to
/// `let_go`.
#[derive(Debug)]
#[must_use = "a lease is kept alive until this is let go"]
pub struct HoldToken {
    pub(super) stint: u64,
}
