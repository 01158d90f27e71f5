//! How long calls took, in a bounded room however many there were.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each bucket ends an eighth of a doubling after the one before, so that a figure is at most 9 % too high.
const PER_DOUBLING: f64 = 8.0;
/// Up to 2^32 microseconds, which is more than an hour.
const BUCKETS: usize = 32 * 8 + 1;

/// The times of one kind of call.
#[derive(Debug)]
pub(crate) struct Latency([AtomicU64; BUCKETS]);

impl Default for Latency {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Latency {
    pub(crate) fn add(&self, took: Duration) {
        let micros = took.as_micros().max(1) as f64;
        let bucket = (micros.log2() * PER_DOUBLING).ceil() as usize;
        self.0[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The time that this many of a thousand do not exceed.
    pub(crate) fn of_thousand(&self, thousandths: u64) -> Duration {
        let wanted = (self.count() * thousandths).div_ceil(1_000);
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += count.load(Ordering::Relaxed);
            if seen >= wanted {
                let micros = 2_f64.powf(bucket as f64 / PER_DOUBLING);
                return Duration::from_micros(micros as u64);
            }
        }
        Duration::ZERO
    }
}
