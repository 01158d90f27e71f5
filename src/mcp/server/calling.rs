//! Tool calls: their protocol revision, turn, progress and results.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProgressToken, ProtocolVersion, RequestMetaObject};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

use crate::core::moment::Moment;
use crate::core::nearest::nearest_of;
use crate::core::policy::Standing;
use crate::gateway::CallOutcome;
use crate::mcp::call::{CallHandler, CallParams, Reply, ToolCall};
use crate::mcp::call_result::CallResult;
use crate::mcp::elicitation::{Returned, person, questions};
use crate::mcp::era::Era;
use crate::mcp::error::said;
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::request_class::always_waits;
use crate::mcp::server::call_lane::CallLane;
use crate::mcp::server::counted::Counted;
use crate::mcp::server::mounted_call::{MountedAnswer, MountedEnd, MountedRequest};
use crate::mcp::server::request_meta::{approval_wait, meta_for_server};
use crate::mcp::server::{LARGE_READ_ROOM, READ_ROOM, Server};
use crate::mount::handle::CallChannels;
use crate::session::command::Accepted;
use crate::session::request_order::RequestTurn;
use crate::surface::call::Call;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::person::{ClientPerson, PersonQuestion};
use crate::surface::tool::{Answer, ToolAccess, ToolAnswer, ToolEntry};
use crate::wire::error::Envelope;
use crate::wire::error::ErrorWire;

/// The interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

impl CallHandler for Server {
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData> {
        let (named, agreed) = (meta.protocol_version(), self.agreed.get());
        if let Some(named) = &named {
            let supported = self.supported_protocol_versions();
            if !supported.contains(named) {
                return Err(ErrorData::unsupported_protocol_version(named.clone(), &supported));
            }
        }
        if agreed.is_none() || named.as_ref().is_some_and(|named| Era::of(named) == Era::Modern) {
            let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let message = if agreed.is_none() && named.is_none() {
                    format!(
                        "send `initialize` before this request (revisions up to 2025-11-25), or name in the _meta of \
                         each request: {missing}"
                    )
                } else {
                    format!("request _meta lacks or cannot be read in: {missing}")
                };
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
        let era = Era::of(&version);
        let capabilities = self.declared(era, &meta);
        let returned = Returned { answers, state };
        let person = person(&self.connection, era, &capabilities, &returned);
        let arguments = arguments.unwrap_or_default();
        let progress = meta.get_progress_token();
        if let Some(tool) = entry.mount().cloned() {
            let turn = Some(turn);
            let arguments = match arguments.for_server() {
                Ok(arguments) => CallArguments::Written(arguments),
                Err(error) => {
                    let mut counted = Counted::of(&self.shared, Arc::clone(&entry.name));
                    let (result, outcome) = self.result(Err(error), started, &version);
                    counted.outcome = outcome;
                    return Ok(result).into();
                }
            };
            let request = MountedRequest {
                entry,
                tool,
                standing,
                arguments,
                era,
                capabilities,
                person,
                returned,
                approval_wait: approval_wait(&meta),
                progress,
                log: self.log_level(era, &meta),
                meta: meta_for_server(&meta),
                turn,
                may_ask: true,
            };
            return self.mounted_reply(request, started, &version).await;
        }
        let mut counted = Counted::of(&self.shared, Arc::clone(&entry.name));
        let room = reply_room(&entry, &arguments);
        let mut call = self.new_call(standing, person, CallChannels::default());
        call.approval_wait = approval_wait(&meta);
        // Pinned once: each place that awaits it by value would make every call larger by its size.
        let mut calling = pin!(self.call(&entry, call, arguments, turn, room));
        let (answer, room) = match progress {
            None => calling.await,
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
    /// A call without the rights that the gateway gives it.
    pub(super) fn new_call(
        &self,
        standing: Standing,
        person: ClientPerson,
        channels: CallChannels,
    ) -> Call {
        let daemon = Arc::clone(self.shared.gateway.daemon());
        Call { person, channels, ..Call::new(daemon, standing, Arc::clone(&self.touched)) }
    }

    /// Makes a call in its turn and returns the outbox space of its answer.
    async fn call(
        &self,
        entry: &ToolEntry,
        mut call: Call,
        arguments: CallArguments,
        turn: RequestTurn,
        room: Option<usize>,
    ) -> (Result<ToolAnswer, SurfaceError>, Option<ReservedSpace>) {
        match entry.access == ToolAccess::Create {
            true => turn.wait_beside().await,
            false => turn.wait().await,
        }
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

    /// Makes a call of a mount.
    async fn mounted_reply(
        &self,
        request: MountedRequest,
        started: Moment,
        version: &ProtocolVersion,
    ) -> Reply {
        // Boxed, since the calls of other tools would be larger by this.
        let (answer, mut counted) = match Box::pin(self.call_mount(request)).await {
            MountedEnd::Ended(answer, counted) => (answer, counted),
            MountedEnd::Links(error) => return error.into(),
            MountedEnd::Asks { questions, state } => {
                return Ok(CallResult::asking(Era::of(version), &questions, state)).into();
            }
        };
        let (answer, room) = match answer {
            Ok(MountedAnswer { answer, space }) => {
                (Ok(answer), Some(ReservedSpace::of_answer(space)))
            }
            Err(error) => (Err(error), None),
        };
        let (result, outcome) = self.result(answer, started, version);
        counted.outcome = outcome;
        Reply { result: Ok(result), room }
    }

    fn result(
        &self,
        answer: Result<ToolAnswer, SurfaceError>,
        started: Moment,
        version: &ProtocolVersion,
    ) -> (CallResult, CallOutcome) {
        let era = Era::of(version);
        let mut envelope = self.envelope(started, version);
        let (result, outcome) = match answer {
            Ok(ToolAnswer::Relayed(result)) => {
                return (CallResult::relayed(era, result), CallOutcome::Done);
            }
            Ok(ToolAnswer::Watching(_)) => {
                let error = SurfaceError::Internal("a tool tells changes".to_owned());
                return self.result(Err(error), started, version);
            }
            Ok(ToolAnswer::Own(Answer { result, text })) => {
                (CallResult::success(era, text, result), CallOutcome::Done)
            }
            Err(error) => {
                let wire = ErrorWire::from(&error);
                wire.note_in(&mut envelope);
                let result = match error.question() {
                    Some(PersonQuestion { text, state }) => {
                        CallResult::asking(era, &questions(text), state.clone())
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
        let lane = CallLane::of(&self.connection);
        loop {
            clock.sleep_until(clock.now() + PROGRESS_INTERVAL).await;
            let seconds = clock.now().since(started).as_secs_f64();
            let told =
                json!({"progressToken": token, "progress": seconds, "message": "still waiting"});
            lane.tell(told).await;
        }
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

/// The outbox space reserved for an answer, in bytes. `None` for calls that wait or write.
fn reply_room(entry: &ToolEntry, arguments: &CallArguments) -> Option<usize> {
    if entry.access != ToolAccess::Read || always_waits(&entry.name) {
        return None;
    }
    let given = |name: &str| arguments.get(name).is_some();
    // Another format or a row count may give a larger answer.
    let large = given("format") || given("count");
    Some(if large { LARGE_READ_ROOM } else { READ_ROOM })
}
