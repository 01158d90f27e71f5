//! Tool calls: their turn, their progress, and the shape of their answer.
//!
//! What a tool does and who may call it is the gateway's business.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, MetaObject,
    ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::core::moment::Moment;
use crate::core::policy::Standing;
use crate::gateway::Request;
use crate::gateway::calls::Outcome;
use crate::mcp::envelope::{Envelope, KEY};
use crate::mcp::error::WireError;
use crate::mcp::long::always_waits;
use crate::mcp::server::{LARGE_READ_ROOM, READ_ROOM, Server};
use crate::mcp::turn::TurnSlot;
use crate::session::command::Accepted;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Access, Answer, Entry};

/// How often a client that asked for progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

impl Server {
    pub(super) async fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let started = self.shared.gateway.daemon().now();
        let standing = self.standing(&context);
        let version = context.protocol_version().map(|version| version.to_string());
        let tool = request.name.clone();
        let count = |outcome| self.shared.gateway.calls().count(&tool, outcome);
        let Some(answer) = self.call(request, &context, standing).await? else {
            count(Outcome::GivenUp);
            return Err(ErrorData::internal_error("the call was given up", None));
        };
        let mut envelope = self.envelope(started, version);
        let mut result = match answer {
            Ok(Answer { result, text }) => {
                count(Outcome::Done);
                let mut complete = CallToolResult::success(vec![ContentBlock::text(text)]);
                complete.structured_content = Some(result);
                complete
            }
            Err(error) => {
                let error = WireError::from(&error);
                count(Outcome::Failed(error.code));
                error.note_in(&mut envelope);
                error.into_result()
            }
        };
        let mut meta = MetaObject::new();
        if let Ok(envelope) = serde_json::to_value(envelope) {
            meta.insert(KEY.to_owned(), envelope);
        }
        result.meta = Some(meta);
        Ok(result.into())
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: Standing,
    ) -> Result<Option<Result<Answer, SurfaceError>>, ErrorData> {
        let Some(entry) = self.shared.gateway.entry(&request.name, &standing) else {
            let message = format!("no tool is named `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let turn = context.extensions.get::<TurnSlot>().and_then(TurnSlot::take);
        if let Some(turn) = &turn {
            turn.wait().await;
        }
        let mut accepted = turn.map_or_else(Accepted::nothing, Accepted::guard);
        let room = reply_room(entry, request.arguments.as_ref());
        if room.is_some() {
            // What only looks takes effect at once, and must not keep others while it has no room.
            accepted = Accepted::nothing();
        }
        let request = Request {
            standing,
            arguments: request.arguments.unwrap_or_default(),
            accepted,
            touched: Arc::clone(&self.touched),
        };
        let call = async {
            if let Some(bytes) = room {
                let room = self.connection.outbox.room(bytes).await;
                self.connection.outbox.attach(&context.id, room);
            }
            self.shared.gateway.call(entry, request).await
        };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Ok(None),
            () = self.connection.gone.cancelled() => Ok(None),
            answer = call => Ok(Some(answer)),
            never = self.tell_progress(context) => match never {},
        }
    }

    /// Tells a client that asked for progress, every few seconds, that its call is still on its way.
    async fn tell_progress(&self, context: &RequestContext<RoleServer>) -> Infallible {
        let Some(token) = context.meta.get_progress_token() else {
            return std::future::pending().await;
        };
        let clock = self.shared.gateway.daemon().sessions.clock();
        let started = clock.now();
        loop {
            clock.sleep_until(clock.now() + PROGRESS_INTERVAL).await;
            let seconds = clock.now().since(started).as_secs_f64();
            let mut params = ProgressNotificationParam::new(token.clone(), seconds);
            params.message = Some("still waiting".to_owned());
            // A client that does not read its progress hears of the result all the same.
            let _ = context.peer.notify_progress(params).await;
        }
    }

    fn envelope(&self, started: Moment, version: Option<String>) -> Envelope {
        let clock = self.shared.gateway.daemon().sessions.clock();
        let since_epoch = clock.wall_time().duration_since(std::time::UNIX_EPOCH);
        Envelope {
            ok: true,
            elapsed_ms: clock.now().since(started).as_millis() as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now: since_epoch.unwrap_or_default().as_millis() as u64,
            mcp_version: version,
            ..Envelope::default()
        }
    }
}

/// How much room an answer is given before it is made, in bytes. What waits takes none meanwhile.
fn reply_room(entry: &Entry, arguments: Option<&JsonObject>) -> Option<usize> {
    if entry.access != Access::Read || always_waits(entry.name) {
        return None;
    }
    let given = |name: &str| arguments.is_some_and(|arguments| arguments.contains_key(name));
    // Whoever asks for another form or for so many rows may get more than others.
    let large = given("format") || given("count");
    Some(if large { LARGE_READ_ROOM } else { READ_ROOM })
}
