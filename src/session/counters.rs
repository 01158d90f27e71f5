//! Counters of events since the daemon started. Each event costs one relaxed addition.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Totals over all sessions of a daemon, including removed ones.
#[derive(Debug, Default)]
pub struct Counters {
    pub sessions_created: Counter,
    pub leases_granted: Counter,
    pub frames_published: Counter,
    /// The bytes that programs have written.
    pub output_bytes: Counter,
    /// The bytes that programs were sent as input.
    pub input_bytes: Counter,
}
