//! A lease as its holder is told of it, key included.

use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::lease::request::Grant;
use crate::session::clock::Clock;
use crate::session::handle::Session;

/// A lease with its key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GrantWire {
    pub lease_id: String,
    pub session: String,
    pub epoch: u64,
    pub ttl_ms: u64,
    pub expires_in_ms: u64,
    /// By the wall clock, RFC 3339; for display only.
    pub expires_at: String,
    /// It had expired, and nobody was granted one in between.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub revived: bool,
}

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
            expires_at: rfc3339(clock, left),
            revived: grant.revived,
        }
    }
}

fn rfc3339(clock: &Clock, from_now: Duration) -> String {
    let at = clock.wall_time() + from_now;
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The civil date of a day counted from 1970-01-01, by the Gregorian calendar's 400-year cycle of
/// 146,097 days, counted from a March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let of_cycle = days.rem_euclid(146_097);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + cycle * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_turn_into_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_000), (2024, 10, 4));
    }
}
