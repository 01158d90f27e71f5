//! Samples: how long each of many repetitions took, and the two figures that stand for them.
//!
//! It reads the clock and knows nothing of what is timed.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time on a clock that only goes forward; differences of it mean something, nothing else.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC);
    Duration::from(time.expect("every kernel this runs on has a monotonic clock"))
}

/// Waits at least until then; being woken before would measure less than was meant.
pub(crate) fn wait_until(time: Duration) {
    while now() < time {
        std::thread::park_timeout(time.saturating_sub(now()));
    }
}

/// Durations in the order they were measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// Adds all of another series.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The one that half of them do not exceed; zero when there is none.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The one that 99 of 100 do not exceed; zero when there is none.
    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    /// By the nearest rank, so that it is always one of the samples.
    fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }
}
