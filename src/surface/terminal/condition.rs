//! The conditions of `wait_for` and of `until`: what a caller waits for, read from its arguments.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::wait::Conditions;
use crate::core::wait::pattern::Pattern;
use crate::surface::argument::millis;
use crate::surface::error::SurfaceError;
use crate::surface::turns::Share;

/// What to wait for; the first that comes true ends the wait.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Wanted {
    /// Text that must appear
    pub pattern: Option<String>,
    /// Read the patterns as regular expressions
    #[serde(default)]
    pub regex: bool,
    /// Text that ends the wait as `stopped`
    pub stop_pattern: Option<String>,
    /// Anything on the screen changes
    #[serde(default)]
    pub change: bool,
    /// The screen stands still for so long
    pub idle_ms: Option<u64>,
    /// A command ends
    #[serde(default)]
    pub command_done: bool,
    /// The program waits for somebody to type
    #[serde(default)]
    pub needs_input: bool,
    /// The program ends
    #[serde(default)]
    pub exit: bool,
}

impl Wanted {
    /// The conditions as the core judges them; the patterns are compiled when it is their turn.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] when a pattern cannot be read, a time is out of bounds or nothing
    /// is waited for at all.
    pub async fn conditions(&self, share: &Share) -> Result<Conditions, SurfaceError> {
        let idle = |wanted: u64| millis("idle_ms", wanted, 1..=600_000);
        let idle: Option<Duration> = self.idle_ms.map(idle).transpose()?;
        let conditions = Conditions {
            pattern: self.compile("pattern", self.pattern.as_ref(), share).await?,
            stop_pattern: self.compile("stop_pattern", self.stop_pattern.as_ref(), share).await?,
            change: self.change,
            idle,
            command_done: self.command_done,
            needs_input: self.needs_input,
            exit: self.exit,
        };
        if self.is_empty() {
            let problem = "give at least one of pattern, stop_pattern, change, idle_ms, command_done, \
                           needs_input, exit";
            return Err(SurfaceError::argument("pattern", problem));
        }
        Ok(conditions)
    }

    async fn compile(
        &self,
        name: &str,
        text: Option<&String>,
        share: &Share,
    ) -> Result<Option<Pattern>, SurfaceError> {
        let Some(text) = text.cloned() else { return Ok(None) };
        let read = if self.regex {
            share.turn().await.work(move || Pattern::regex(&text)).await
        } else {
            Pattern::literal(&text)
        };
        read.map(Some).map_err(|error| SurfaceError::pattern(name, &error))
    }

    fn is_empty(&self) -> bool {
        let patterns = self.pattern.is_some() || self.stop_pattern.is_some();
        let done = self.command_done || self.needs_input || self.exit;
        !patterns && !self.change && self.idle_ms.is_none() && !done
    }
}
