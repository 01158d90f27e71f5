//! What the operator settles before the daemon runs: where things live, and how much of what.
//!
//! It touches no socket and starts nothing; it turns text into values that others obey, so that
//! nobody else needs to know where a number came from.

pub mod file;
pub mod paths;

use std::time::Duration;

/// The settings of one daemon; `config/termgate.toml` says what each is for and its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub allow_write: bool,
    pub lease: LeaseConfig,
    pub history: HistoryConfig,
    pub frame_interval: Duration,
    pub keep_ended: Duration,
    /// For each tenant.
    pub sessions_max: usize,
    /// For each tenant.
    pub subscriptions_max: usize,
}

/// How leases are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    pub ttl: Duration,
    pub max_hold: Duration,
    pub grace: Duration,
    pub auto: bool,
}

/// How much of each session's history is kept; whichever is reached first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    pub rows: usize,
    pub bytes: usize,
}
