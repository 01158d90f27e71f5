//! The list of all keys, with their bounds and the settings that they change. Files, variables and flags
//! share it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::config::key::Applies::{AtOnce, NewConnections, NewSessions, Restart};
use crate::core::event::EventKinds;
use crate::core::keys::control::ControlKey;

#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// Its full name, such as `lease.ttl_ms`.
    pub name: &'static str,
    pub kind: ValueKind,
    /// How a project file may change it; `None` forbids that.
    pub project: Option<Tighten>,
    pub applies: Applies,
    slot: Slot,
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Switch,
    Number {
        least: u64,
        most: u64,
    },
    Key,
    /// Of so many bytes at most.
    Text {
        most: usize,
    },
    EventKinds,
}

/// The direction in which a project file may change a key. It can only make limits stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tighten {
    Lower,
    Higher,
    SwitchOff,
    SwitchOn,
}

/// When a new value applies, after the daemon has read it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    AtOnce,
    NewSessions,
    NewConnections,
    Restart,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Switch(bool),
    Number(u64),
    Key(ControlKey),
    Text(Arc<str>),
    EventKinds(EventKinds),
}

impl Value {
    /// The key with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok().map(Self::Key)
    }
}

/// The field of the configuration that a key sets.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Switch(fn(&mut Config) -> &mut bool),
    Count(fn(&mut Config) -> &mut usize),
    Millis(fn(&mut Config) -> &mut Duration),
    Key(fn(&mut Config) -> &mut ControlKey),
    Text(fn(&mut Config) -> &mut Arc<str>),
    EventKinds(fn(&mut Config) -> &mut EventKinds),
}

impl ConfigKey {
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The least and the most that a number may be.
    pub fn bounds(&self) -> Option<RangeInclusive<u64>> {
        match self.kind {
            ValueKind::Number { least, most } => Some(least..=most),
            ValueKind::Switch | ValueKind::Key | ValueKind::Text { .. } | ValueKind::EventKinds => {
                None
            }
        }
    }

    /// The table of the key; empty for a top-level key.
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    pub fn value(&self, config: &Config) -> Value {
        let config = &mut config.clone();
        match self.slot {
            Slot::Switch(of) => Value::Switch(*of(config)),
            Slot::Count(of) => Value::Number(*of(config) as u64),
            Slot::Millis(of) => Value::Number(of(config).as_millis() as u64),
            Slot::Key(of) => Value::Key(*of(config)),
            Slot::Text(of) => Value::Text(Arc::clone(of(config))),
            Slot::EventKinds(of) => Value::EventKinds(of(config).clone()),
        }
    }

    /// Sets its value. The value must satisfy [`ValueKind::takes`].
    pub fn set(&self, config: &mut Config, value: Value) {
        match (self.slot, value) {
            (Slot::Switch(of), Value::Switch(on)) => *of(config) = on,
            (Slot::Count(of), Value::Number(number)) => *of(config) = number as usize,
            (Slot::Millis(of), Value::Number(number)) => {
                *of(config) = Duration::from_millis(number)
            }
            (Slot::Key(of), Value::Key(key)) => *of(config) = key,
            (Slot::Text(of), Value::Text(text)) => *of(config) = text,
            (Slot::EventKinds(of), Value::EventKinds(kinds)) => *of(config) = kinds,
            (
                Slot::Switch(_)
                | Slot::Count(_)
                | Slot::Millis(_)
                | Slot::Key(_)
                | Slot::Text(_)
                | Slot::EventKinds(_),
                _,
            ) => {}
        }
    }

    const fn project(self, how: Tighten) -> Self {
        Self { project: Some(how), ..self }
    }
}

impl ValueKind {
    /// Whether a key of this kind accepts the value.
    pub fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Switch, Value::Switch(_)) => true,
            (Self::Number { least, most }, Value::Number(number)) => {
                (least..=most).contains(number)
            }
            (Self::Key, Value::Key(_)) | (Self::EventKinds, Value::EventKinds(_)) => true,
            (Self::Text { most }, Value::Text(text)) => text.len() <= most && !text.contains('\0'),
            (
                Self::Switch
                | Self::Number { .. }
                | Self::Key
                | Self::Text { .. }
                | Self::EventKinds,
                _,
            ) => false,
        }
    }
}

impl Tighten {
    /// Whether `value` is at least as strict as `before`.
    pub fn allows(self, before: &Value, value: &Value) -> bool {
        match (self, before, value) {
            (Self::Lower, Value::Number(before), Value::Number(value)) => value <= before,
            (Self::Higher, Value::Number(before), Value::Number(value)) => value >= before,
            (Self::SwitchOff, Value::Switch(before), Value::Switch(value)) => *before || !*value,
            (Self::SwitchOn, Value::Switch(before), Value::Switch(value)) => !*before || *value,
            (Self::Lower | Self::Higher | Self::SwitchOff | Self::SwitchOn, _, _) => false,
        }
    }
}

impl Applies {
    /// The identifier in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            AtOnce => "at_once",
            NewSessions => "new_sessions",
            NewConnections => "new_connections",
            Restart => "restart",
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("true or false"),
            Self::Number { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Key => write!(f, "a key: {}", ControlKey::NAMES),
            Self::Text { most } => write!(f, "a text of {most} bytes at most"),
            Self::EventKinds => {
                f.write_str("a list of kinds of events, as `termgate events` names them")
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => on.fmt(f),
            Self::Number(number) => number.fmt(f),
            // As a literal string of TOML, in which a backslash stands for itself.
            Self::Key(key) => write!(f, "'{key}'"),
            Self::Text(text) => toml::Value::from(&**text).fmt(f),
            Self::EventKinds(kinds) => toml::Value::from(kinds.iter().collect::<Vec<_>>()).fmt(f),
        }
    }
}

const fn switch(
    name: &'static str,
    applies: Applies,
    of: fn(&mut Config) -> &mut bool,
) -> ConfigKey {
    ConfigKey { name, kind: ValueKind::Switch, project: None, applies, slot: Slot::Switch(of) }
}

const fn count(
    name: &'static str,
    (least, most): (u64, u64),
    applies: Applies,
    of: fn(&mut Config) -> &mut usize,
) -> ConfigKey {
    let kind = ValueKind::Number { least, most };
    ConfigKey { name, kind, project: None, applies, slot: Slot::Count(of) }
}

const fn millis(
    name: &'static str,
    (least, most): (u64, u64),
    applies: Applies,
    of: fn(&mut Config) -> &mut Duration,
) -> ConfigKey {
    let kind = ValueKind::Number { least, most };
    ConfigKey { name, kind, project: None, applies, slot: Slot::Millis(of) }
}

const fn key(
    name: &'static str,
    applies: Applies,
    of: fn(&mut Config) -> &mut ControlKey,
) -> ConfigKey {
    ConfigKey { name, kind: ValueKind::Key, project: None, applies, slot: Slot::Key(of) }
}

const fn text(
    name: &'static str,
    most: usize,
    applies: Applies,
    of: fn(&mut Config) -> &mut Arc<str>,
) -> ConfigKey {
    ConfigKey { name, kind: ValueKind::Text { most }, project: None, applies, slot: Slot::Text(of) }
}

const fn event_kinds(
    name: &'static str,
    applies: Applies,
    of: fn(&mut Config) -> &mut EventKinds,
) -> ConfigKey {
    let slot = Slot::EventKinds(of);
    ConfigKey { name, kind: ValueKind::EventKinds, project: None, applies, slot }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const HOUR_MS: u64 = 3_600_000;
/// Longer than any system lets the name of a group be.
const GROUP_NAME_MAX: usize = 256;

/// All keys. Limits that are not here are fixed; `config/termgate.toml` lists them and explains why.
pub const KEYS: &[ConfigKey] = &[
    switch("allow_write", Restart, |it| &mut it.allow_write),
    switch("toolsets.core", Restart, |it| &mut it.toolsets.core).project(Tighten::SwitchOff),
    switch("toolsets.mounts", Restart, |it| &mut it.toolsets.mounts).project(Tighten::SwitchOff),
    millis("lease.ttl_ms", (1_000, 600_000), NewSessions, |it| &mut it.lease.ttl)
        .project(Tighten::Lower),
    millis("lease.max_hold_ms", (1_000, 24 * HOUR_MS), NewSessions, |it| &mut it.lease.max_hold)
        .project(Tighten::Lower),
    millis("lease.grace_ms", (0, 600_000), NewSessions, |it| &mut it.lease.grace)
        .project(Tighten::Lower),
    millis("lease.person_idle_ms", (1_000, 600_000), NewSessions, |it| &mut it.lease.person_idle),
    count("lease.waiters", (1, 256), NewSessions, |it| &mut it.lease.waiters),
    switch("lease.auto", AtOnce, |it| &mut it.lease.auto).project(Tighten::SwitchOff),
    millis("screen.frame_interval_ms", (1, 1_000), NewSessions, |it| &mut it.frame_interval)
        .project(Tighten::Higher),
    // The upper bound is the most that tested terminal emulators could handle. The lower bound holds the
    // default size of a session.
    count("screen.cells", (10_000, 200_000), AtOnce, |it| &mut it.cells),
    count("screen.slice_bytes", (4 * KIB, 256 * KIB), NewSessions, |it| {
        &mut it.screen.slice_bytes_max
    }),
    count("screen.command_bytes", (256, 64 * KIB), NewSessions, |it| {
        &mut it.screen.command_bytes_max
    }),
    count("screen.title_characters", (16, 1_024), NewSessions, |it| {
        &mut it.screen.title_characters_max
    }),
    count("screen.titles", (1, 256), NewSessions, |it| &mut it.screen.titles_max),
    count("screen.marks", (1, 32), NewSessions, |it| &mut it.screen.marks_max),
    count("screen.answers_per_second", (1, 10_000), NewSessions, |it| {
        &mut it.screen.answers_per_second_max
    }),
    millis("screen.sync_ms", (1, 1_000), NewSessions, |it| &mut it.screen.sync_time_max),
    count("screen.sync_bytes", (64 * KIB, 16 * MIB), NewSessions, |it| {
        &mut it.screen.sync_bytes_max
    }),
    count("history.rows", (100, 10_000_000), NewSessions, |it| &mut it.screen.history.rows_max)
        .project(Tighten::Lower),
    count("history.bytes", (64 * KIB, 1_024 * MIB), NewSessions, |it| {
        &mut it.screen.history.bytes_max
    })
    .project(Tighten::Lower),
    count("sessions.max", (1, 4_096), AtOnce, |it| &mut it.sessions.own).project(Tighten::Lower),
    count("sessions.others_max", (1, 4_096), AtOnce, |it| &mut it.sessions.others),
    millis("sessions.keep_ended_ms", (0, 168 * HOUR_MS), NewSessions, |it| &mut it.keep_ended)
        .project(Tighten::Lower),
    millis("sessions.orphan_ttl_ms", (0, 168 * HOUR_MS), NewSessions, |it| {
        &mut it.holding.orphan_ttl
    }),
    count("sessions.ring_bytes", (64 * KIB, 64 * MIB), NewSessions, |it| {
        &mut it.holding.ring_bytes
    }),
    switch("sessions.overwrite_unread", NewSessions, |it| &mut it.holding.overwrite_unread),
    switch("sessions.shell_marks", NewSessions, |it| &mut it.shell_marks),
    switch("sessions.sandbox", NewSessions, |it| &mut it.sandbox).project(Tighten::SwitchOn),
    text("sockets.clients", GROUP_NAME_MAX, Restart, |it| &mut it.sockets.clients),
    text("sockets.observers", GROUP_NAME_MAX, Restart, |it| &mut it.sockets.observers),
    count("connections.max", (16, 65_536), AtOnce, |it| &mut it.connections.own),
    count("connections.others_max", (1, 4_096), AtOnce, |it| &mut it.connections.others),
    count("connections.message_bytes", (64 * KIB, 4 * MIB), NewConnections, |it| {
        &mut it.connection.message_bytes
    }),
    count("connections.message_tokens", (1_000, 200_000), NewConnections, |it| {
        &mut it.connection.message_tokens
    }),
    // At least one message of the largest size fits.
    count("connections.parsing_bytes", (4 * MIB, 64 * MIB), Restart, |it| {
        &mut it.connection.parsing_bytes
    }),
    count("connections.incoming_bytes", (4 * MIB, 1_024 * MIB), NewConnections, |it| {
        &mut it.connection.incoming.own
    }),
    count("connections.others_incoming_bytes", (4 * MIB, 1_024 * MIB), NewConnections, |it| {
        &mut it.connection.incoming.others
    }),
    millis("connections.first_message_ms", (100, 60_000), NewConnections, |it| {
        &mut it.connection.first_message
    }),
    millis("connections.inside_message_ms", (1_000, 60_000), NewConnections, |it| {
        &mut it.connection.inside_message
    }),
    count("connections.short_requests", (1, 1_024), NewConnections, |it| {
        &mut it.connection.short_requests
    }),
    count("connections.long_requests", (1, 4_096), NewConnections, |it| {
        &mut it.connection.long_requests
    }),
    count("connections.unsent_reply_bytes", (64 * KIB, 16 * MIB), NewConnections, |it| {
        &mut it.connection.unsent_reply_bytes
    }),
    count("connections.unsent_push_bytes", (64 * KIB, 16 * MIB), NewConnections, |it| {
        &mut it.connection.unsent_push_bytes
    }),
    count("subscriptions.max", (1, 65_536), AtOnce, |it| &mut it.subscriptions.own),
    count("subscriptions.others_max", (1, 65_536), AtOnce, |it| &mut it.subscriptions.others),
    count("calls.per_second", (0, 1_000_000), AtOnce, |it| &mut it.calls.own),
    count("calls.others_per_second", (0, 1_000_000), AtOnce, |it| &mut it.calls.others),
    count("journal.bytes", (8 * MIB, 16_384 * MIB), AtOnce, |it| &mut it.journal.bytes),
    switch("journal.keep_input", AtOnce, |it| &mut it.journal.keep_input),
    event_kinds("notify.events", AtOnce, |it| &mut it.notify.events),
    text("notify.command", 4_096, AtOnce, |it| &mut it.notify.command),
    switch("notify.terminal", AtOnce, |it| &mut it.notify.terminal),
    switch("search.enabled", Restart, |it| &mut it.search.enabled),
    count("search.bytes", (8 * MIB, 65_536 * MIB), AtOnce, |it| &mut it.search.bytes),
    count("search.days", (1, 3_650), AtOnce, |it| &mut it.search.days),
    switch("recording.always", NewSessions, |it| &mut it.recording.always),
    count("recording.bytes", (MIB, 16_384 * MIB), AtOnce, |it| &mut it.recording.bytes),
    count("recording.total_bytes", (MIB, 65_536 * MIB), AtOnce, |it| &mut it.recording.total_bytes),
    key("attach.prefix", AtOnce, |it| &mut it.attach.prefix),
    switch("attach.clipboard", AtOnce, |it| &mut it.attach.clipboard).project(Tighten::SwitchOff),
];
