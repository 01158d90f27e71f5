//! What a mounted server asks of the client of a call, on its way to the client.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, ErrorCode, JsonObject};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::core::mount::MountTrust;
use crate::core::policy::Standing;
use crate::gateway::CallOutcome;
use crate::mcp::asking::{PendingRequest, check_offered};
use crate::mcp::connection::Connection;
use crate::mcp::server::after_questions::AfterQuestions;
use crate::mcp::server::counted::Counted;
use crate::mcp::shared::ServerShared;
use crate::mount::asking::{
    AskAnswer, AskRefusal, LINK_ID, LaterNews, ServerAsk, ServerQuestion, mode,
};
use crate::mount::error::LINK_NEEDED;
use crate::mount::registry::MountedTool;
use crate::mount::servers::Mount;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::tool::ToolEntry;
use crate::surface::tool::untrusted::visible;
use crate::wire::error::ErrorWire;

/// The member of `_meta` that names the mount that asks.
const MOUNT_KEY: &str = "dev.termgate/mount";

/// How a client is asked.
#[derive(Debug)]
pub(super) enum ClientWay {
    /// By a request on its connection.
    Connected(Arc<Connection>, Arc<AfterQuestions>),
    /// By a result that it answers with its next call.
    Returning(mpsc::Sender<ServerQuestion>),
}

/// Asks the client of one call what its server asks.
#[derive(Debug)]
pub(super) struct ClientAsker {
    pub(super) shared: Arc<ServerShared>,
    pub(super) standing: Standing,
    pub(super) tool: MountedTool,
    /// What the client declared that it answers.
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) way: ClientWay,
}

impl ClientAsker {
    /// Asks the client, as long as the server waits for it, and answers the server.
    pub(super) async fn ask(&self, question: ServerQuestion) {
        let ServerQuestion { ask, params, mut reply, later } = question;
        let answer = tokio::select! {
            answer = self.answer((ask, params), later) => answer,
            () = reply.closed() => return,
        };
        // The server may have taken it back just now.
        let _ = reply.send(answer);
    }

    async fn answer(&self, (ask, params): (ServerAsk, JsonObject), later: LaterNews) -> AskAnswer {
        check_offered(&self.capabilities, ask, &params)?;
        let name = ToolEntry::question(&self.tool, ask).name;
        let mut counted = Counted::of(&self.shared, name);
        let judged = match ask {
            ServerAsk::Elicitation => {
                JsonObject::from_iter([("mode".to_owned(), json!(mode(&params)))])
            }
            ServerAsk::Sampling | ServerAsk::Roots => JsonObject::new(),
        };
        let gateway = &self.shared.gateway;
        let begun = gateway
            .begin_question(&self.standing, (&self.tool, ask), CallArguments::Values(judged))
            .await;
        let begun = begun.map_err(|error| {
            let (outcome, refusal) = refused(&error);
            counted.outcome = outcome;
            refusal
        })?;
        let answer = self.asked((ask, shown(&self.tool.mount, ask, params)), later).await;
        counted.outcome = CallOutcome::Done;
        match &answer {
            Ok(_) => begun.conclude(None),
            Err(_) => begun.fail("the client did not answer"),
        }
        answer
    }

    /// The server's own error that wants links to be opened, for a client that knows it and may be asked to.
    pub(super) async fn links(&self, message: String, mut data: Value) -> Option<ErrorData> {
        // The newer era has no such error.
        let ClientWay::Connected(..) = &self.way else { return None };
        let (ask, mount) = (ServerAsk::Elicitation, &self.tool.mount);
        let judged = JsonObject::from_iter([("mode".to_owned(), json!("url"))]);
        check_offered(&self.capabilities, ask, &judged).ok()?;
        let (gateway, judged) = (&self.shared.gateway, CallArguments::Values(judged));
        let begun = gateway.begin_question(&self.standing, (&self.tool, ask), judged);
        begun.await.ok()?.conclude(None);
        if mount.settings().trust != MountTrust::Trusted {
            let links = data.get_mut("elicitations").and_then(Value::as_array_mut);
            for link in links.into_iter().flatten().filter_map(Value::as_object_mut) {
                name_asker(mount, link);
            }
        }
        Some(ErrorData::new(ErrorCode(LINK_NEEDED as i32), message, Some(data)))
    }

    async fn asked(&self, (ask, params): (ServerAsk, JsonObject), later: LaterNews) -> AskAnswer {
        match &self.way {
            ClientWay::Connected(connection, after) => {
                let LaterNews { followed, roots } = later;
                after.on_roots_asked(roots, self.tool.clone());
                let link = params.get(LINK_ID).and_then(Value::as_str).map(str::to_owned);
                let params = Value::Object(params);
                let request = PendingRequest::make(connection, ask.method(), &params).await?;
                if let Some((link, followed)) = link.zip(followed) {
                    after.expect_link(connection, link, followed);
                }
                request.answer().await
            }
            ClientWay::Returning(questions) => {
                let (reply, answer) = oneshot::channel();
                let left = |()| AskRefusal::refused("the client has left");
                let question = ServerQuestion { ask, params, reply, later };
                questions.send(question).await.map_err(|_| left(()))?;
                answer.await.unwrap_or_else(|_| Err(left(())))
            }
        }
    }
}

/// What a server is told that may not ask: not which rule says so.
fn refused(error: &SurfaceError) -> (CallOutcome, AskRefusal) {
    let code = ErrorWire::from(error).code();
    let told = format!("termgate does not let this server ask that: {}", code.as_str());
    (CallOutcome::Failed(code), AskRefusal::refused(told))
}

/// Says before an elicitation which mount it is of.
fn name_asker(mount: &Mount, params: &mut JsonObject) {
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = format!("{} asks: {message}", mount.name());
    params.insert("message".to_owned(), message.into());
}

/// A question as the client sees it: its link has the name of the mount, so that no other server can tell of it. Unless the
/// server is trusted, all characters are visible and the name is also before the question.
fn shown(mount: &Mount, ask: ServerAsk, mut params: JsonObject) -> JsonObject {
    // Tokens in it are of the server's connection.
    params.remove("_meta");
    if mount.settings().trust != MountTrust::Trusted {
        params = match visible(Value::Object(params)) {
            Value::Object(params) => params,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        if ask == ServerAsk::Elicitation {
            name_asker(mount, &mut params);
        }
    }
    if let Some(link) = params.get(LINK_ID).and_then(Value::as_str) {
        let link = format!("{}/{link}", mount.name());
        params.insert(LINK_ID.to_owned(), link.into());
    }
    params.insert("_meta".to_owned(), json!({MOUNT_KEY: mount.name().as_str()}));
    params
}
