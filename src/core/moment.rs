//! Time as a value: a point on the machine's boot clock, handed to the core by whoever calls it.
//!
//! The core never asks what time it is. Boot time goes on while a laptop sleeps, so that leases
//! have expired when it wakes.

use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from the boot of the machine, suspended time included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The moment this long after boot.
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// How long after boot this is.
    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// How long ago `earlier` was at this moment; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long it is from this moment until `later`; zero when it has passed.
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
