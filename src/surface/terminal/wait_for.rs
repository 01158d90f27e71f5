//! `wait_for`: ends when something happens in one of several sessions, without polling; and what a caller
//! may wait for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::core::ids::Watermark;
use crate::core::wait::Conditions;
use crate::core::wait::look::Which;
use crate::core::wait::pattern::Pattern;
use crate::session::handle::Session;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::waiting::{Bounds, FIRST_LOOK_LEAST, Watch};
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::surface::turns::{Reserved, Share};
use crate::wire::wait::Waited;

/// How many sessions one call may wait on.
const SESSIONS_MAX: usize = 32;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct WaitFor {
    /// Id, prefix or name
    session: Option<String>,
    /// Or several; the first to meet a condition ends it
    #[serde(default)]
    sessions: Vec<String>,
    #[serde(flatten)]
    wanted: WaitConditions,
    /// Also match changes after this watermark
    since: Option<u64>,
    /// Up to 600000 (default 30000)
    timeout_ms: Option<u64>,
}

impl Tool for WaitFor {
    const NAME: &'static str = "wait_for";
    const TITLE: &'static str = "Wait for something to happen";
    const DESCRIPTION: &'static str = "Waits until a condition holds instead of polling. A timeout \
        is an outcome, not an error.";
    const ACCESS: ToolAccess = ToolAccess::Read;

    type Result = Waited;

    async fn call(self, call: Call) -> Result<Answer<Waited>, SurfaceError> {
        let started = call.daemon.now();
        let timeout = self.timeout_ms.unwrap_or(30_000);
        let timeout = millis("timeout_ms", timeout, 0..=600_000)?;
        let share = call.share();
        let sessions = self.chosen(&call)?;
        let clock = call.daemon.sessions.clock().clone();
        let (conditions, _memory) = tokio::select! {
            biased;
            conditions = self.wanted.conditions(sessions.len(), &share) => conditions?,
            // The patterns of others kept it waiting until there is nothing to wait for any more.
            () = clock.sleep_until(started + timeout.max(FIRST_LOOK_LEAST)) => {
                (Conditions { exit: true, ..Conditions::default() }, Memory::default())
            }
        };
        let (since, several) = (self.since.map(Watermark), sessions.len() > 1);
        let bounds = Bounds { since, started, timeout, epoch: None };
        let (mut waits, waiting) = (JoinSet::new(), call.daemon.departure.waiting());
        for session in sessions {
            let watch = Watch::begin(session, conditions.clone(), bounds, share.clone())?;
            let (clock, waiting) = (clock.clone(), waiting.clone());
            waits.spawn(async move { watch.end(&clock, &waiting).await });
        }
        // What the same client sends next comes after this, and is seen.
        drop(call.accepted);
        match waits.join_next().await {
            Some(Ok(waited)) => {
                let waited = if several { waited.of_several() } else { waited };
                Ok(Answer { text: waited.summary(), result: waited })
            }
            Some(Err(error)) => Err(SurfaceError::Internal(error.to_string())),
            None => Err(SurfaceError::Internal("there was nothing to wait on".to_owned())),
        }
    }
}

impl WaitFor {
    fn chosen(&self, call: &Call) -> Result<Vec<Session>, SurfaceError> {
        if self.sessions.is_empty() {
            return Ok(vec![call.session(self.session.as_deref())?]);
        }
        if self.session.is_some() {
            return Err(SurfaceError::argument("sessions", "give either `session` or `sessions`"));
        }
        if self.since.is_some() && self.sessions.len() > 1 {
            let problem = "each session has watermarks of its own; leave it out for several";
            return Err(SurfaceError::argument("since", problem));
        }
        if self.sessions.len() > SESSIONS_MAX {
            let problem = format!("{} are more than {SESSIONS_MAX}", self.sessions.len());
            return Err(SurfaceError::argument("sessions", problem));
        }
        self.sessions.iter().map(|given| call.session(Some(given))).collect()
    }
}

/// What to wait for; the first that comes true ends the wait.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct WaitConditions {
    /// Text that appears
    pub text: Option<String>,
    /// Or a regular expression
    pub pattern: Option<String>,
    /// Text that stops the wait
    pub stop_text: Option<String>,
    /// Or such an expression
    pub stop_pattern: Option<String>,
    /// Anything changes
    #[serde(default)]
    pub change: bool,
    /// No change for so long
    pub idle_ms: Option<u64>,
    /// A command ends
    #[serde(default)]
    pub command_done: bool,
    /// Input is needed
    #[serde(default)]
    pub needs_input: bool,
    /// The program ends
    #[serde(default)]
    pub exit: bool,
}

/// The memory of the patterns that are waited for, counted for as long as this is kept.
pub type Memory = Vec<Reserved>;

impl WaitConditions {
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
            let problem = "give at least one of text, pattern, stop_text, stop_pattern, change, idle_ms, \
                           command_done, needs_input, exit";
            return Err(SurfaceError::argument("text", problem));
        }
        let (mut patterns, mut memory) = (Vec::new(), Memory::new());
        for (which, name, expression) in self.patterns() {
            let (pattern, reserved) = compile(which, name, expression, waits, share).await?;
            patterns.push((which, pattern));
            memory.push(reserved);
        }
        let conditions = Conditions {
            patterns,
            change: self.change,
            idle,
            idle_program: false,
            command_done: self.command_done,
            needs_input: self.needs_input,
            exit: self.exit,
        };
        Ok((conditions, memory))
    }

    /// The patterns that are given, with the names of their parameters, in the order in which they count.
    fn patterns(&self) -> impl Iterator<Item = (Which, &'static str, &String)> {
        [
            (Which::Text, "text", &self.text),
            (Which::Pattern, "pattern", &self.pattern),
            (Which::StopText, "stop_text", &self.stop_text),
            (Which::StopPattern, "stop_pattern", &self.stop_pattern),
        ]
        .into_iter()
        .filter_map(|(which, name, given)| Some((which, name, given.as_ref()?)))
    }

    fn is_empty(&self) -> bool {
        let done = self.command_done || self.needs_input || self.exit;
        self.patterns().next().is_none() && !self.change && self.idle_ms.is_none() && !done
    }
}

async fn compile(
    which: Which,
    name: &'static str,
    text: &str,
    waits: usize,
    share: &Share,
) -> Result<(Pattern, Reserved), SurfaceError> {
    let is_literal = matches!(which, Which::Text | Which::StopText);
    let (text, memory) = (text.to_owned(), share.clone());
    // The memory is counted before the turn is over, so that as many take some that is not as there
    // are turns at once.
    let compile = move || {
        let pattern = if is_literal { Pattern::literal(&text) } else { Pattern::regex(&text) };
        let pattern = pattern.map_err(|error| SurfaceError::pattern(name, &error))?;
        let memory = memory.reserve(pattern.bytes(waits))?;
        Ok((pattern, memory))
    };
    if is_literal { compile() } else { share.turn().await.work(compile).await }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::TenantId;
    use crate::surface::turns::Turns;

    #[tokio::test]
    async fn the_memory_of_a_pattern_is_counted_as_soon_as_there_is_one() {
        let share = Turns::default().share_of(&TenantId::of_uid(1));
        let pattern = Some("x{9000}".to_owned());
        let wanted = WaitConditions { pattern, ..WaitConditions::default() };
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
