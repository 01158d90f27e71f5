//! Time as a value: a point on the machine's boot clock, which the caller passes to the core.
//!
//! Boot time includes the time that a laptop sleeps, so that leases have expired when it wakes.

use std::ops::Add;
use std::time::Duration;

/// A point in time since boot, suspended time included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to this moment; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from this moment to `later`; zero when `later` has passed.
    pub fn until(self, later: Self) -> Duration {
        later.since(self)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}
