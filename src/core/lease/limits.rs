//! The bounds of a lease: how long it may last, how long others may wait for it.
//!
//! They are values handed to the lease manager and know nothing of where they were configured.

use std::time::Duration;

/// The bounds of one session's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLimits {
    /// The shortest time a lease may be asked for.
    pub ttl_min: Duration,
    /// How long a lease lasts when nobody says.
    pub ttl_default: Duration,
    /// The longest time a lease may be asked for.
    pub ttl_max: Duration,
    /// How long a lease outlives its holder's connection when nobody says.
    pub grace_default: Duration,
    /// How long a lease that was handed to somebody waits to be taken up.
    pub offer: Duration,
    /// How long one holding may last while others wait, counted from its grant.
    pub max_hold: Duration,
    /// How long a person who types keeps the keyboard after the last key.
    pub person_idle: Duration,
    /// How many callers may wait for one session.
    pub waiters_max: usize,
    /// How many callers of one tenant may wait for one session.
    pub tenant_waiters_max: usize,
}

impl Default for LeaseLimits {
    fn default() -> Self {
        Self {
            ttl_min: Duration::from_secs(1),
            ttl_default: Duration::from_secs(30),
            ttl_max: Duration::from_secs(600),
            grace_default: Duration::from_secs(5),
            offer: Duration::from_secs(10),
            max_hold: Duration::from_secs(600),
            person_idle: Duration::from_secs(10),
            waiters_max: 16,
            tenant_waiters_max: 4,
        }
    }
}
