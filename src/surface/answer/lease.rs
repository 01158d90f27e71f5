//! A lease with the time it has left.

use std::time::{Duration, UNIX_EPOCH};

use crate::core::lease::request::Grant;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::wire::date::rfc3339;
use crate::wire::lease::GrantWire;

impl GrantWire {
    /// The lease as it stands now.
    pub fn of(session: &Session, grant: &Grant, clock: &Clock) -> Self {
        let left = clock.now().until(grant.expires_at);
        Self {
            lease_id: grant.lease.to_string(),
            session: session.id().to_string(),
            epoch: grant.epoch.0,
            ttl_ms: grant.ttl.as_millis() as u64,
            expires_in_ms: left.as_millis() as u64,
            expires_at: wall_time_after(clock, left),
            revived: grant.revived,
        }
    }
}

/// The wall clock's time after so long.
fn wall_time_after(clock: &Clock, left: Duration) -> String {
    let at = clock.wall_time() + left;
    rfc3339(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
