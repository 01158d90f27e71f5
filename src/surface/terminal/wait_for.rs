//! `wait_for`: ends when something happens in one of several sessions, without polling.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::core::ids::Watermark;
use crate::core::wait::Conditions;
use crate::session::handle::Session;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::condition::{Memory, Wanted};
use crate::surface::terminal::waiting::{Bounds, FIRST_LOOK_LEAST, Watch};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::wait::Waited;

/// How many sessions one call may wait on.
const SESSIONS_MAX: usize = 32;

/// The tool.
#[derive(Debug)]
pub struct WaitFor;

/// The parameters of `wait_for`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    session: Option<String>,
    /// Or several; the first to meet a condition ends it
    #[serde(default)]
    sessions: Vec<String>,
    #[serde(flatten)]
    wanted: Wanted,
    /// Count all after this watermark, not only what comes
    since: Option<u64>,
    /// Up to 600000 (default 30000)
    timeout_ms: Option<u64>,
}

impl Tool for WaitFor {
    const NAME: &'static str = "wait_for";
    const TITLE: &'static str = "Wait for something to happen";
    const DESCRIPTION: &'static str = "Waits until a condition holds instead of polling. A timeout \
        is an outcome, not an error.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = Waited;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<Waited>, SurfaceError> {
        let started = call.daemon.now();
        let timeout = parameters.timeout_ms.unwrap_or(30_000);
        let timeout = millis("timeout_ms", timeout, 0..=600_000)?;
        let share = call.share();
        let sessions = parameters.chosen(&call)?;
        let clock = call.daemon.sessions.clock().clone();
        let (conditions, _memory) = tokio::select! {
            biased;
            conditions = parameters.wanted.conditions(sessions.len(), &share) => conditions?,
            // The patterns of others kept it waiting until there is nothing to wait for any more.
            () = clock.sleep_until(started + timeout.max(FIRST_LOOK_LEAST)) => {
                (Conditions { exit: true, ..Conditions::default() }, Memory::default())
            }
        };
        let since = parameters.since.map(Watermark);
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
            Some(Ok(waited)) => Ok(Answer { text: waited.summary(), result: waited }),
            Some(Err(error)) => Err(SurfaceError::Internal(error.to_string())),
            None => Err(SurfaceError::Internal("there was nothing to wait on".to_owned())),
        }
    }
}

impl Parameters {
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
