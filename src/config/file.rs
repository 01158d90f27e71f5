//! Reads the configuration: the defaults that are built in, and the operator's file laid over them.
//!
//! It knows the names and bounds of the keys and nothing of what they do. Whatever is wrong is told
//! with file, line and key, and nothing is passed over: a key that is misspelt would otherwise be a
//! limit that is not there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};
use toml::de::{DeTable, DeValue};

use crate::config::{Config, HistoryConfig, LeaseConfig};

/// What holds where the operator says nothing.
const DEFAULTS: &str = include_str!("../../config/termgate.toml");

/// Largest file that is read, in bytes.
const FILE_MAX: u64 = 1024 * 1024;

/// Says why a file cannot be the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} has more than {FILE_MAX} bytes")]
    TooLarge { path: PathBuf },
    #[error("{path}:{line}: {}{message}", key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
    Wrong { path: PathBuf, line: usize, key: Option<String>, message: String },
}

impl Config {
    /// Reads the configuration, from the defaults alone when there is no file.
    ///
    /// # Errors
    /// Where the file is wrong, or why it cannot be read.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else { return Self::parse("", Path::new("")) };
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let mut text = String::new();
        file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_MAX {
            return Err(ConfigError::TooLarge { path: path.to_owned() });
        }
        Self::parse(&text, path)
    }

    /// Lays a text over the defaults; `path` is the name it has in errors.
    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let given = DeTable::parse(text).map_err(|error| wrong(&error, text, path, None))?;
        let mut merged = DeTable::parse(DEFAULTS).expect("the defaults are checked by a test");
        lay_over(merged.get_mut(), given.get_ref().clone());
        let keys = Keys::deserialize(toml::Deserializer::from(merged))
            .map_err(|error| wrong(&error, text, path, Some(given.get_ref())))?;
        Ok(keys.into())
    }
}

/// Puts every value of `over` in the place of the one of the same name, table by table.
fn lay_over<'i>(base: &mut DeTable<'i>, over: DeTable<'i>) {
    for (key, mut value) in over {
        let name: &str = key.get_ref();
        if let Some(below) = base.get_mut(name)
            && let DeValue::Table(below) = below.get_mut()
            && let DeValue::Table(above) = value.get_mut()
        {
            lay_over(below, std::mem::take(above));
        } else {
            base.insert(key, value);
        }
    }
}

/// Tells where in the operator's text an error is; the defaults have none.
fn wrong(
    error: &toml::de::Error,
    text: &str,
    path: &Path,
    given: Option<&DeTable<'_>>,
) -> ConfigError {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let key = given.and_then(|table| key_at(table, at));
    ConfigError::Wrong { path: path.to_owned(), line, key, message: error.message().to_owned() }
}

/// The full name of the key that stands, or whose value stands, at a place of the text.
fn key_at(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let below = match value.get_ref() {
            DeValue::Table(inner) => key_at(inner, at),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => None,
        };
        let here = key.span().contains(&at) || value.span().contains(&at);
        below.map(|below| format!("{name}.{below}")).or_else(|| here.then(|| name.to_string()))
    })
}

/// The keys as they are written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    allow_write: bool,
    lease: LeaseKeys,
    history: HistoryKeys,
    screen: ScreenKeys,
    sessions: SessionsKeys,
    limits: LimitsKeys,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct LeaseKeys {
    ttl_ms: Within<1_000, 600_000>,
    max_hold_ms: Within<1_000, 86_400_000>,
    grace_ms: Within<0, 600_000>,
    auto: bool,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct HistoryKeys {
    rows: Within<100, 10_000_000>,
    bytes: Within<65_536, 1_073_741_824>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ScreenKeys {
    frame_interval_ms: Within<1, 1_000>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct SessionsKeys {
    keep_ended_ms: Within<0, 604_800_000>,
    max: Within<1, 4_096>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct LimitsKeys {
    subscriptions: Within<1, 65_536>,
}

impl From<Keys> for Config {
    fn from(keys: Keys) -> Self {
        let Keys { allow_write, lease, history, screen, sessions, limits } = keys;
        Self {
            allow_write,
            lease: LeaseConfig {
                ttl: lease.ttl_ms.milliseconds(),
                max_hold: lease.max_hold_ms.milliseconds(),
                grace: lease.grace_ms.milliseconds(),
                auto: lease.auto,
            },
            history: HistoryConfig { rows: history.rows.count(), bytes: history.bytes.count() },
            frame_interval: screen.frame_interval_ms.milliseconds(),
            keep_ended: sessions.keep_ended_ms.milliseconds(),
            sessions_max: sessions.max.count(),
            subscriptions_max: limits.subscriptions.count(),
        }
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy)]
struct Within<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Within<MIN, MAX> {
    fn milliseconds(self) -> Duration {
        Duration::from_millis(self.0.into())
    }

    fn count(self) -> usize {
        self.0 as usize
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(Bounds::<MIN, MAX>).map(Self)
    }
}

struct Bounds<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for Bounds<MIN, MAX> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<u32, E> {
        let within = u32::try_from(value).ok().filter(|value| (MIN..=MAX).contains(value));
        within.ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
    }
}

#[cfg(test)]
mod tests;
