//! What a mounted server asks of the client of a call, on its way to the client.

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, JsonObject};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::core::mount::MountTrust;
use crate::core::policy::Standing;
use crate::gateway::CallOutcome;
use crate::mcp::asking::{PendingRequest, check_offered};
use crate::mcp::call_result::RelayedError;
use crate::mcp::connection::Connection;
use crate::mcp::server::after_questions::AfterQuestions;
use crate::mcp::server::counted::Counted;
use crate::mcp::shared::ServerShared;
use crate::mount::asking::{
    AskAnswer, AskRefusal, LINK_ID, LaterNews, ServerAsk, ServerQuestion, mode,
};
use crate::mount::error::{LINK_NEEDED, LINKS};
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::registry::MountedTool;
use crate::mount::servers::Mount;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::tool::ToolEntry;
use crate::surface::tool::untrusted::visible_members;
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

    async fn answer(&self, (ask, params): (ServerAsk, ExactObject), later: LaterNews) -> AskAnswer {
        check_offered(&self.capabilities, ask, &params)?;
        let name = ToolEntry::question(&self.tool, ask).name;
        let mut counted = Counted::of(&self.shared, name);
        let (gateway, judged) = (&self.shared.gateway, judged(ask, &params));
        let begun = gateway.begin_question(&self.standing, (&self.tool, ask), judged);
        let begun = begun.await.map_err(|error| {
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
    pub(super) async fn links(
        &self,
        message: String,
        mut data: ExactObject,
    ) -> Option<RelayedError> {
        // The newer era has no such error.
        let ClientWay::Connected(..) = &self.way else { return None };
        let (ask, mount) = (ServerAsk::Elicitation, &self.tool.mount);
        let mut asked = ExactObject::default();
        asked.insert("mode", ExactJson::of(&"url"));
        check_offered(&self.capabilities, ask, &asked).ok()?;
        let (gateway, judged) = (&self.shared.gateway, judged(ask, &asked));
        let begun = gateway.begin_question(&self.standing, (&self.tool, ask), judged);
        begun.await.ok()?.conclude(None);
        if let Some(ExactJson::List(links)) = data.get_mut(LINKS) {
            for link in links {
                let ExactJson::Object(link) = link else { continue };
                if mount.settings().trust != MountTrust::Trusted {
                    name_asker(mount, link);
                }
                name_link(mount, link);
            }
        }
        let data = Some(ExactJson::Object(data));
        Some(RelayedError { code: LINK_NEEDED, message, data })
    }

    async fn asked(&self, (ask, params): (ServerAsk, ExactObject), later: LaterNews) -> AskAnswer {
        match &self.way {
            ClientWay::Connected(connection, after) => {
                let LaterNews { followed, roots } = later;
                after.on_roots_asked(roots, self.tool.clone());
                let link = params.text(LINK_ID).map(str::to_owned);
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

/// What rules see of a question.
fn judged(ask: ServerAsk, params: &ExactObject) -> CallArguments {
    CallArguments::Values(match ask {
        ServerAsk::Elicitation => JsonObject::from_iter([("mode".to_owned(), json!(mode(params)))]),
        ServerAsk::Sampling | ServerAsk::Roots => JsonObject::new(),
    })
}

/// What a server is told that may not ask: not which rule says so.
fn refused(error: &SurfaceError) -> (CallOutcome, AskRefusal) {
    let code = ErrorWire::from(error).code();
    let told = format!("termgate does not let this server ask that: {}", code.as_str());
    (CallOutcome::Failed(code), AskRefusal::refused(told))
}

/// Says before an elicitation which mount it is of.
fn name_asker(mount: &Mount, params: &mut ExactObject) {
    let message = params.text("message").unwrap_or_default();
    let message = format!("{} asks: {message}", mount.name());
    params.insert("message", ExactJson::Text(message));
}

/// Gives a link the name of the mount, so that no other server can tell of it.
fn name_link(mount: &Mount, params: &mut ExactObject) {
    if let Some(link) = params.text(LINK_ID) {
        let link = format!("{}/{link}", mount.name());
        params.insert(LINK_ID, ExactJson::Text(link));
    }
}

/// A question as the client sees it. Unless the server is trusted, all characters are visible and the name is also before the question.
fn shown(mount: &Mount, ask: ServerAsk, mut params: ExactObject) -> ExactObject {
    // Tokens in it are of the server's connection.
    params.remove("_meta");
    if mount.settings().trust != MountTrust::Trusted {
        params = visible_members(params);
        if ask == ServerAsk::Elicitation {
            name_asker(mount, &mut params);
        }
    }
    name_link(mount, &mut params);
    params.insert("_meta", ExactJson::of(&json!({MOUNT_KEY: mount.name().as_str()})));
    params
}
