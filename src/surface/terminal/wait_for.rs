//! `wait_for`: ends when something happens in one of several sessions, without polling.

use std::pin::pin;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::core::ids::Watermark;
use crate::core::moment::Moment;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::argument::millis;
use crate::surface::call::{Call, Progress};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::condition::Wanted;
use crate::surface::terminal::waiting::{Bounds, Waited, wait};
use crate::surface::tool::{Access, Answer, Tool};

/// How many sessions one call may wait on.
const SESSIONS_MAX: usize = 32;
/// How often a client that asked for progress is told.
const PROGRESS_MS: u64 = 5_000;

/// The tool.
#[derive(Debug)]
pub struct WaitFor;

/// The parameters of `wait_for`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, unique prefix or name
    session: Option<String>,
    /// Or several; the first that meets a condition ends the wait
    #[serde(default)]
    sessions: Vec<String>,
    #[serde(flatten)]
    wanted: Wanted,
    /// Everything after this watermark counts; without it, what comes after the call
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
        let conditions = parameters.wanted.conditions()?;
        let since = parameters.since.map(Watermark);
        let bounds = Bounds { since, started, timeout, epoch: None };
        let clock = call.daemon.sessions.clock().clone();

        let mut waits = JoinSet::new();
        for session in parameters.chosen(&call)? {
            let (clock, conditions) = (clock.clone(), conditions.clone());
            waits.spawn(async move { wait(&session, &clock, conditions, bounds).await });
        }
        let total_ms = timeout.as_millis() as u64;
        let mut progress = pin!(tell_progress(call.progress, clock, started, total_ms));
        let waited = tokio::select! {
            waited = waits.join_next() => waited,
            never = &mut progress => match never {},
        };
        match waited {
            Some(Ok(waited)) => waited.map(|it| Answer { text: it.summary(), result: it }),
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
        if self.sessions.len() > SESSIONS_MAX {
            let problem = format!("{} are more than {SESSIONS_MAX}", self.sessions.len());
            return Err(SurfaceError::argument("sessions", problem));
        }
        self.sessions.iter().map(|given| call.session(Some(given))).collect()
    }
}

/// Tells how the wait stands every few seconds, for as long as anybody asked.
async fn tell_progress(
    progress: Option<mpsc::Sender<Progress>>,
    clock: Clock,
    started: Moment,
    total_ms: u64,
) -> std::convert::Infallible {
    let Some(progress) = progress else { return std::future::pending().await };
    loop {
        clock.sleep_until(clock.now() + std::time::Duration::from_millis(PROGRESS_MS)).await;
        let elapsed_ms = clock.now().since(started).as_millis() as u64;
        let message = "still waiting".to_owned();
        // A client that does not read its progress misses some of it.
        let _ = progress.try_send(Progress { elapsed_ms, total_ms, message });
    }
}
