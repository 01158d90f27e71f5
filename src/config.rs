//! The configuration of a daemon: it turns files, variables and flags into values.

pub mod accounts;
pub mod environment;
pub mod file;
pub mod key;
pub mod mounts;
pub mod paths;
pub mod policy;
pub mod problem;
pub mod sockets;
pub mod sources;
pub mod tenants;
pub mod tokens;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::key::{Applies, ConfigKey, KEYS, Value};
use crate::config::sockets::SocketsConfig;
use crate::core::event::EventKinds;
use crate::core::keys::control::ControlKey;
use crate::core::mount::MountTable;
use crate::core::policy::rules::PolicyRules;
use crate::core::policy::tenants::{TenantLimits, Tenants};
use crate::core::quota::Quota;
use crate::core::screen::ScreenLimits;

/// The built-in defaults.
const DEFAULTS: &str = include_str!("../config/termgate.toml");

/// The settings of one daemon. `config/termgate.toml` explains each one and its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub allow_write: bool,
    pub toolsets: Toolsets,
    pub lease: LeaseConfig,
    pub screen: ScreenLimits,
    /// The most cells of a terminal.
    pub cells: usize,
    pub frame_interval: Duration,
    pub sessions: Quota,
    pub keep_ended: Duration,
    pub holding: HoldingConfig,
    /// Whether interactive shells mark their prompts and commands.
    pub shell_marks: bool,
    pub sockets: SocketsConfig,
    /// Whether each new session is sandboxed.
    pub sandbox: bool,
    pub connections: Quota,
    pub connection: ConnectionConfig,
    pub subscriptions: Quota,
    /// The calls per second of each tenant; 0 sets no limit.
    pub calls: Quota,
    pub attach: AttachConfig,
    pub journal: JournalConfig,
    pub search: SearchConfig,
    pub recording: RecordingConfig,
    pub notify: NotifyConfig,
    /// From the policy files.
    pub policy: Arc<PolicyRules>,
    /// From the tenants files.
    pub tenants: Arc<Tenants>,
    /// From the mounts files.
    pub mounts: Arc<MountTable>,
}

/// Whom events are told besides clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifyConfig {
    pub events: EventKinds,
    /// A shell line that runs for each of them; empty if none does.
    pub command: Arc<str>,
    /// Whether the terminals of attached people show them.
    pub terminal: bool,
}

/// What the journal keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalConfig {
    /// The oldest records are removed beyond this.
    pub bytes: usize,
    /// Whether it keeps the bytes that go to terminals, instead of their count and hash.
    pub keep_input: bool,
}

/// What the search index keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// The oldest text is removed beyond this.
    pub bytes: usize,
    /// And text that is older.
    pub days: usize,
}

/// What is recorded of the output of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingConfig {
    /// Whether each new session is recorded from its start.
    pub always: bool,
    /// How large one recording may become.
    pub bytes: usize,
    /// The oldest recordings are removed beyond this.
    pub total_bytes: usize,
}

/// What `termgate attach` reads, and the daemon does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachConfig {
    pub prefix: ControlKey,
    /// Whether programs may write to the clipboard of the person's terminal.
    pub clipboard: bool,
}

/// The sets of tools that clients have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toolsets {
    /// Terminals.
    pub core: bool,
    /// Mounted servers.
    pub mounts: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseConfig {
    pub ttl: Duration,
    pub max_hold: Duration,
    pub grace: Duration,
    pub person_idle: Duration,
    pub waiters: usize,
    pub auto: bool,
}

/// What happens to sessions while no daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldingConfig {
    /// How long sessions wait for a daemon; 0 sets no limit.
    pub orphan_ttl: Duration,
    /// How much unread output to keep, in bytes.
    pub ring_bytes: usize,
    /// Whether unread output beyond that drops the oldest, instead of stopping the program.
    pub overwrite_unread: bool,
}

/// The limits of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionConfig {
    pub message_bytes: usize,
    pub message_tokens: usize,
    /// Shared by all connections.
    pub parsing_bytes: usize,
    /// The bytes of incoming messages, shared by all connections of a user.
    pub incoming: Quota,
    pub first_message: Duration,
    pub inside_message: Duration,
    pub short_requests: usize,
    pub long_requests: usize,
    pub unsent_reply_bytes: usize,
    pub unsent_push_bytes: usize,
}

impl Config {
    /// The defaults from the built-in `config/termgate.toml`.
    pub fn built_in() -> Self {
        let mut config = Self::default();
        let (given, problems) = file::read(DEFAULTS, Path::new("termgate.toml"));
        debug_assert!(problems.is_empty(), "{problems:?}");
        for setting in given {
            setting.key.set(&mut config, setting.value);
        }
        config
    }

    /// Has these tenants hold, with their limits.
    pub fn adopt(&mut self, tenants: Arc<Tenants>) {
        let of = |limit: fn(&TenantLimits) -> Option<usize>| {
            let named = tenants.named.iter();
            named.filter_map(|(id, it)| Some((id.clone(), limit(&it.limits)?))).collect()
        };
        self.sessions.named = of(|limits| limits.sessions);
        self.connections.named = of(|limits| limits.connections);
        self.subscriptions.named = of(|limits| limits.subscriptions);
        self.calls.named = of(|limits| limits.calls_per_second);
        self.tenants = tenants;
    }

    /// Adopts the values from `read` that may change in a running daemon. Returns all differences.
    ///
    /// A value that needs a restart stays unchanged and is returned each time.
    pub fn take_over(&mut self, read: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for key in KEYS {
            let (before, after) = (key.value(self), key.value(read));
            if before == after {
                continue;
            }
            if key.applies != Applies::Restart {
                key.set(self, after.clone());
            }
            changes.push(Change { key, before, after });
        }
        self.policy = Arc::clone(&read.policy);
        self.adopt(Arc::clone(&read.tenants));
        self.mounts = Arc::clone(&read.mounts);
        changes
    }
}

/// A key whose value has changed.
#[derive(Clone, Debug)]
pub struct Change {
    pub key: &'static ConfigKey,
    pub before: Value,
    pub after: Value,
}

#[cfg(test)]
mod tests;
