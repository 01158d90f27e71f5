//! Counters: how often something happened since the daemon started.
//!
//! They decide nothing. Each is one relaxed addition where the thing happens, so that a hot path does
//! not notice, and is read by whoever looks after the daemon.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts so many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What all sessions of a daemon did, also those that are forgotten.
#[derive(Debug, Default)]
pub struct Counters {
    pub sessions_created: Counter,
    pub leases_granted: Counter,
    pub frames_published: Counter,
    /// What programs wrote, in bytes.
    pub output_bytes: Counter,
    /// What programs were typed, in bytes.
    pub input_bytes: Counter,
}
