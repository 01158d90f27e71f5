//! The conditions of `wait_for` and of `until`: what a caller waits for, read from its arguments.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::wait::Conditions;
use crate::core::wait::pattern::Pattern;
use crate::surface::argument::millis;
use crate::surface::error::SurfaceError;
use crate::surface::turns::{Reserved, Share};

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

/// The memory of the patterns that are waited for, counted for as long as this is kept.
pub type Memory = [Option<Reserved>; 2];

impl Wanted {
    /// The conditions as the core judges them, for so many waits, with the memory of their patterns; these
    /// are compiled when it is their turn.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] when a pattern cannot be read or costs too much, a time is out of bounds
    /// or nothing is waited for at all; [`SurfaceError::Quota`] when there is no memory for a pattern.
    pub async fn conditions(
        &self,
        waits: usize,
        share: &Share,
    ) -> Result<(Conditions, Memory), SurfaceError> {
        let idle = |wanted: u64| millis("idle_ms", wanted, 1..=600_000);
        let idle: Option<Duration> = self.idle_ms.map(idle).transpose()?;
        if self.is_empty() {
            let problem = "give at least one of pattern, stop_pattern, change, idle_ms, command_done, \
                           needs_input, exit";
            return Err(SurfaceError::argument("pattern", problem));
        }
        let pattern = self.compile("pattern", self.pattern.as_ref(), waits, share).await?;
        let stop = self.compile("stop_pattern", self.stop_pattern.as_ref(), waits, share).await?;
        let ((pattern, memory), (stop_pattern, stop_memory)) = (pattern.unzip(), stop.unzip());
        let conditions = Conditions {
            pattern,
            stop_pattern,
            change: self.change,
            idle,
            command_done: self.command_done,
            needs_input: self.needs_input,
            exit: self.exit,
        };
        Ok((conditions, [memory, stop_memory]))
    }

    async fn compile(
        &self,
        name: &str,
        text: Option<&String>,
        waits: usize,
        share: &Share,
    ) -> Result<Option<(Pattern, Reserved)>, SurfaceError> {
        let Some(text) = text.cloned() else { return Ok(None) };
        let regex = self.regex;
        let (name, memory) = (name.to_owned(), share.clone());
        // The memory is counted before the turn is over, so that as many take some that is not as there
        // are turns at once.
        let compile = move || {
            let pattern = if regex { Pattern::regex(&text) } else { Pattern::literal(&text) };
            let pattern = pattern.map_err(|error| SurfaceError::pattern(&name, &error))?;
            let memory = memory.reserve(pattern.bytes(waits))?;
            Ok(Some((pattern, memory)))
        };
        if regex { share.turn().await.work(compile).await } else { compile() }
    }

    fn is_empty(&self) -> bool {
        let patterns = self.pattern.is_some() || self.stop_pattern.is_some();
        let done = self.command_done || self.needs_input || self.exit;
        !patterns && !self.change && self.idle_ms.is_none() && !done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::TenantId;
    use crate::surface::turns::Turns;

    #[tokio::test]
    async fn the_memory_of_a_pattern_is_counted_as_soon_as_there_is_one() {
        let share = Turns::default().share_of(&TenantId::of_uid(1));
        let expression = Some("x{9000}".to_owned());
        let wanted = Wanted { pattern: expression, regex: true, ..Wanted::default() };
        let mut kept = Vec::new();
        let refused = loop {
            match wanted.conditions(9, &share).await {
                Ok(conditions) => kept.push(conditions),
                Err(error) => break error,
            }
            assert!(kept.len() < 100, "nothing is counted");
        };
        assert!(matches!(refused, SurfaceError::Quota(_)), "{refused}");
        kept.pop();
        assert!(wanted.conditions(9, &share).await.is_ok());
    }
}
