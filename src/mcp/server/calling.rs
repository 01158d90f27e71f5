//! Tool calls: their protocol revision, turn, progress and results.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonObject, ProgressToken, ProtocolVersion, RequestMetaObject};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::core::moment::Moment;
use crate::core::nearest::nearest_of;
use crate::gateway::{CallOutcome, Calls};
use crate::mcp::call::{CallHandler, CallParams, Era, Reply, ToolCall, ToolResult};
use crate::mcp::elicitation::{Returned, person, questions};
use crate::mcp::error::said;
use crate::mcp::notifications::NoticeLane;
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::request_class::always_waits;
use crate::mcp::server::{LARGE_READ_ROOM, READ_ROOM, Server};
use crate::mount::handle::CallProgress;
use crate::session::command::Accepted;
use crate::session::request_order::RequestTurn;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::person::PersonQuestion;
use crate::surface::tool::{Answer, ToolAccess, ToolAnswer, ToolEntry};
use crate::wire::error::Envelope;
use crate::wire::error::ErrorWire;

/// The interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How many notifications of a mounted server wait for the client; further ones are dropped.
const PROGRESS_AHEAD: usize = 16;

impl CallHandler for Server {
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData> {
        let (named, agreed) = (meta.protocol_version(), self.agreed.get());
        if let Some(named) = &named {
            let supported = self.supported_protocol_versions();
            if !supported.contains(named) {
                return Err(ErrorData::unsupported_protocol_version(named.clone(), &supported));
            }
        }
        if agreed.is_none() || named.as_ref().is_some_and(|named| era(named) == Era::Modern) {
            let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let message = format!("request _meta lacks or cannot be read in: {missing}");
                return Err(ErrorData::invalid_params(message, None));
            }
        }
        named.or_else(|| agreed.cloned()).ok_or_else(|| {
            ErrorData::invalid_params("neither greeted nor named a protocol version", None)
        })
    }

    async fn answer(&self, call: ToolCall) -> Reply {
        let started = self.shared.gateway.daemon().now();
        let ToolCall { params: CallParams { name, arguments, meta, answers, state }, turn } = call;
        let meta = meta.unwrap_or_default();
        let version = match self.revision(&meta) {
            Ok(version) => version,
            Err(error) => return Err(error).into(),
        };
        let standing = self.standing(&meta);
        let Some(entry) = self.shared.gateway.entry(&name, &standing) else {
            let listed = self.shared.gateway.listed(&standing);
            let nearest = nearest_of(&name, listed.iter().map(|entry| &*entry.name), 1);
            let meant = nearest.first().map(|name| format!("; did you mean `{name}`?"));
            let message = said(format!("unknown tool `{name}`{}", meant.unwrap_or_default()));
            return Err(ErrorData::invalid_params(message, None)).into();
        };
        let mut counted = Counted::of(self.shared.gateway.calls(), Arc::clone(&entry.name));
        let room = reply_room(&entry, arguments.as_ref());
        let touched = Arc::clone(&self.touched);
        let arguments = arguments.unwrap_or_default();
        let token = meta.get_progress_token();
        let (progress, mut told) = mpsc::channel(PROGRESS_AHEAD);
        let progress = token.is_some().then_some(progress);
        let call = Call {
            daemon: Arc::clone(self.shared.gateway.daemon()),
            standing,
            accepted: Accepted::nothing(),
            target: None,
            permit: None,
            touched,
            mount_lease: None,
            creates: None,
            person: person(
                &self.connection,
                era(&version),
                &meta,
                self.shows_forms.get() == Some(&true),
                Returned { answers, state },
            ),
            progress,
        };
        // Pinned once: each place that awaits it by value would make every call larger by its size.
        let mut calling = pin!(self.call(&entry, call, arguments, turn, room));
        let (answer, room) = match token {
            None => calling.await,
            Some(token) if entry.mount().is_some() => {
                let lane = self.call_lane();
                let ended = loop {
                    tokio::select! {
                        biased;
                        Some(progress) = told.recv() => lane.relay(&token, progress).await,
                        ended = &mut calling => break ended,
                    }
                };
                while let Ok(progress) = told.try_recv() {
                    lane.relay(&token, progress).await;
                }
                ended
            }
            Some(token) => tokio::select! {
                biased;
                answer = &mut calling => answer,
                never = self.tell_progress(token) => match never {},
            },
        };
        let (result, outcome) = self.result(answer, started, &version);
        counted.outcome = outcome;
        Reply { result: Ok(result), room }
    }
}

impl Server {
    /// Makes a call in its turn and returns the outbox space of its answer.
    async fn call(
        &self,
        entry: &ToolEntry,
        mut call: Call,
        arguments: JsonObject,
        turn: RequestTurn,
        room: Option<usize>,
    ) -> (Result<ToolAnswer, SurfaceError>, Option<ReservedSpace>) {
        turn.wait().await;
        let room = match room {
            Some(bytes) => {
                // A read takes effect at once. It must not delay other requests while it waits for space.
                turn.pass();
                Some(self.connection.outbox.room(bytes).await)
            }
            None => {
                call.accepted = Accepted::guard(turn);
                None
            }
        };
        (self.shared.gateway.call(entry, call, arguments).await, room)
    }

    fn result(
        &self,
        answer: Result<ToolAnswer, SurfaceError>,
        started: Moment,
        version: &ProtocolVersion,
    ) -> (ToolResult, CallOutcome) {
        let era = era(version);
        let mut envelope = self.envelope(started, version);
        let (result, outcome) = match answer {
            Ok(ToolAnswer::Relayed(result)) => {
                return (ToolResult::relayed(era, result), CallOutcome::Done);
            }
            Ok(ToolAnswer::Watching(_)) => {
                let error = SurfaceError::Internal("a tool tells changes".to_owned());
                return self.result(Err(error), started, version);
            }
            Ok(ToolAnswer::Own(Answer { result, text })) => {
                (ToolResult::success(era, text, result), CallOutcome::Done)
            }
            Err(error) => {
                let wire = ErrorWire::from(&error);
                wire.note_in(&mut envelope);
                let result = match error.question() {
                    Some(PersonQuestion { text, state }) => {
                        ToolResult::asking(era, questions(text), state.clone())
                    }
                    None => wire.result(era),
                };
                (result, CallOutcome::Failed(wire.code()))
            }
        };
        (result.in_envelope(envelope), outcome)
    }

    /// Sends a progress notification every few seconds to a client that asked for it.
    async fn tell_progress(&self, token: ProgressToken) -> Infallible {
        let clock = self.shared.gateway.daemon().sessions.clock();
        let started = clock.now();
        let lane = self.call_lane();
        loop {
            clock.sleep_until(clock.now() + PROGRESS_INTERVAL).await;
            let seconds = clock.now().since(started).as_secs_f64();
            let told =
                json!({"progressToken": token, "progress": seconds, "message": "still waiting"});
            lane.tell(told).await;
        }
    }

    /// A lane for the progress of one call.
    fn call_lane(&self) -> CallLane {
        let (connection, lane) = (Arc::clone(&self.connection), self.connection.outbox.lane());
        CallLane(NoticeLane { connection, lane, subscription: None })
    }

    fn envelope(&self, started: Moment, version: &ProtocolVersion) -> Envelope {
        let clock = self.shared.gateway.daemon().sessions.clock();
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| *known == version);
        let since_epoch = clock.wall_time().duration_since(std::time::UNIX_EPOCH);
        Envelope {
            ok: true,
            elapsed_ms: clock.now().since(started).as_millis() as u64,
            version: env!("CARGO_PKG_VERSION").into(),
            now: since_epoch.unwrap_or_default().as_millis() as u64,
            mcp_version: known.map(|known| known.as_str().into()),
            ..Envelope::default()
        }
    }
}

/// Counts a call on drop.
pub(super) struct Counted<'a> {
    calls: &'a Calls,
    tool: Arc<str>,
    pub(super) outcome: CallOutcome,
}

impl<'a> Counted<'a> {
    /// A call counts as given up until it has another outcome.
    pub(super) fn of(calls: &'a Calls, tool: Arc<str>) -> Self {
        Self { calls, tool, outcome: CallOutcome::GivenUp }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.calls.count(&self.tool, self.outcome);
    }
}

/// The lane of a call's progress; closed when the call ends.
struct CallLane(NoticeLane);

impl CallLane {
    /// A client that does not read its progress still receives the result.
    async fn tell(&self, progress: Value) {
        self.0.send("notifications/progress", progress).await;
    }

    /// Tells what a mounted server tells, under the client's token.
    async fn relay(&self, token: &ProgressToken, progress: CallProgress) {
        let mut told = json!(progress.members);
        told["progressToken"] = json!(token);
        self.tell(told).await;
    }
}

impl Drop for CallLane {
    fn drop(&mut self) {
        self.0.lane.close();
    }
}

/// The era of a revision. Revisions are dates, so their names compare like dates.
fn era(version: &ProtocolVersion) -> Era {
    if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// The outbox space reserved for an answer, in bytes. `None` for calls that wait or write.
fn reply_room(entry: &ToolEntry, arguments: Option<&JsonObject>) -> Option<usize> {
    if entry.access != ToolAccess::Read || always_waits(&entry.name) {
        return None;
    }
    let given = |name: &str| arguments.is_some_and(|arguments| arguments.contains_key(name));
    // Another format or a row count may give a larger answer.
    let large = given("format") || given("count");
    Some(if large { LARGE_READ_ROOM } else { READ_ROOM })
}
