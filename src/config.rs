//! What the operator settles before the daemon runs: where things live, and how much of what.
//!
//! It touches no socket and starts nothing; it turns text into values that others obey, so that
//! nobody else needs to know where a number came from.

pub mod change;
pub mod environment;
pub mod file;
pub mod key;
pub mod paths;
pub mod problem;
pub mod sources;
pub mod tokens;

use std::path::Path;
use std::time::Duration;

use crate::core::quota::Quota;
use crate::core::screen::ScreenLimits;

/// What holds where nobody says anything.
const DEFAULTS: &str = include_str!("../config/termgate.toml");

/// The settings of one daemon; `config/termgate.toml` says what each is for and its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub allow_write: bool,
    pub lease: LeaseConfig,
    pub screen: ScreenLimits,
    /// How many cells a terminal may have.
    pub cells: usize,
    pub frame_interval: Duration,
    pub sessions: Quota,
    pub keep_ended: Duration,
    pub holding: HoldingConfig,
    /// Whether interactive shells mark their prompts and commands.
    pub shell_marks: bool,
    pub connections: Quota,
    pub connection: ConnectionConfig,
    pub subscriptions: Quota,
    /// How often each tenant may call in a second; zero is no limit.
    pub calls: Quota,
}

/// How leases are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseConfig {
    pub ttl: Duration,
    pub max_hold: Duration,
    pub grace: Duration,
    pub person_idle: Duration,
    pub waiters: usize,
    pub auto: bool,
}

/// What becomes of sessions while no daemon is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldingConfig {
    /// How long they wait for one; for ever when it is zero.
    pub orphan_ttl: Duration,
    /// How much output is kept that no daemon has read.
    pub ring_bytes: usize,
    /// Whether the oldest of it is lost when there is more, instead of the program waiting.
    pub overwrite_unread: bool,
}

/// What one connection may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionConfig {
    pub message_bytes: usize,
    pub message_tokens: usize,
    /// Of all connections together.
    pub parsing_bytes: usize,
    /// Of messages that come in, of all connections of a user.
    pub incoming: Quota,
    pub first_message: Duration,
    pub inside_message: Duration,
    pub short_requests: usize,
    pub long_requests: usize,
    pub unsent_reply_bytes: usize,
    pub unsent_push_bytes: usize,
}

impl Config {
    /// What holds where nobody says anything: `config/termgate.toml`, which is built in.
    pub fn built_in() -> Self {
        let mut config = Self::default();
        let (given, problems) = file::read(DEFAULTS, Path::new("termgate.toml"));
        debug_assert!(problems.is_empty(), "{problems:?}");
        for setting in given {
            setting.key.set(&mut config, setting.value);
        }
        config
    }
}

#[cfg(test)]
mod tests;
