//! From which level on a client is told the log messages of the servers that it calls.

use std::sync::{Mutex, PoisonError};

#[allow(deprecated)] // Clients of the older era still use it.
use rmcp::model::LoggingLevel;
use rmcp::model::RequestMetaObject;
use serde::Deserialize as _;

use crate::mcp::era::Era;
use crate::mcp::server::Server;
use crate::mount::eras::LOG_LEVEL;
use crate::mount::log::LogLevel;

/// The level that a client of the older era has set, if it has.
#[derive(Debug, Default)]
pub(super) struct WantedLevel(Mutex<Option<LogLevel>>);

impl WantedLevel {
    pub(super) fn set(&self, level: LogLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    fn get(&self) -> Option<LogLevel> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(deprecated)] // As above.
impl From<LoggingLevel> for LogLevel {
    fn from(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }
}

impl Server {
    /// From which level on a client of this era wants log messages, if it wants any.
    pub(super) fn log_level(&self, era: Era, meta: &RequestMetaObject) -> Option<LogLevel> {
        match era {
            Era::Legacy => self.wanted_level.get(),
            Era::Modern => LogLevel::deserialize(meta.get(LOG_LEVEL)?).ok(),
        }
    }
}
