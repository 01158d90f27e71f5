//! Asks a client: what it declared that it answers, and a request on its connection.

use std::fmt;

use bytes::Bytes;
use rmcp::model::ClientCapabilities;
use serde_json::json;
use tokio::sync::oneshot;

use crate::mcp::connection::Connection;
use crate::mount::asking::{AskAnswer, AskRefusal, ServerAsk, mode};
use crate::mount::json::ExactObject;

/// Whether a client shows forms to its person.
pub fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    // A client that names no mode shows forms.
    let shows = |it: &rmcp::model::ElicitationCapability| it.form.is_some() || it.url.is_none();
    capabilities.elicitation.as_ref().is_some_and(shows)
}

/// Checks that a client has declared that it answers such a question.
///
/// # Errors
/// The protocol's error for one that did not.
pub fn check_offered(
    capabilities: &ClientCapabilities,
    ask: ServerAsk,
    params: &ExactObject,
) -> Result<(), AskRefusal> {
    let lacks = |what: &str| Err(AskRefusal::not_offered(format!("the client has no {what}")));
    match ask {
        ServerAsk::Elicitation => {
            let Some(elicitation) = &capabilities.elicitation else { return lacks("elicitation") };
            let (mode, shows) = match mode(params) {
                mode @ "form" => (mode, shows_forms(capabilities)),
                mode @ "url" => (mode, elicitation.url.is_some()),
                mode => (mode, false),
            };
            let unknown = || format!("the client has no elicitation of the mode {mode}");
            if shows { Ok(()) } else { Err(AskRefusal::malformed(unknown())) }
        }
        ServerAsk::Sampling => match &capabilities.sampling {
            None => lacks("sampling"),
            Some(sampling) if params.get("tools").is_some() && sampling.tools.is_none() => {
                Err(AskRefusal::malformed("the client has no sampling with tools"))
            }
            Some(_) => Ok(()),
        },
        ServerAsk::Roots => capabilities.roots.as_ref().map_or_else(|| lacks("roots"), |_| Ok(())),
    }
}

/// Makes a request to the client and waits for its answer. Dropping the future cancels the request.
///
/// # Errors
/// The client's own error, or why there is no answer: it has left, or has too many requests to answer.
pub async fn ask(connection: &Connection, method: &str, params: &impl fmt::Display) -> AskAnswer {
    PendingRequest::make(connection, method, params).await?.answer().await
}

/// A request to a client that waits for its answer. If it is dropped before, the client is told.
#[derive(Debug)]
pub struct PendingRequest<'a> {
    connection: &'a Connection,
    id: String,
    answer: oneshot::Receiver<AskAnswer>,
    is_sent: bool,
}

impl<'a> PendingRequest<'a> {
    /// Makes a request, and returns when it is sent.
    ///
    /// # Errors
    /// The client has too many requests to answer.
    pub async fn make(
        connection: &'a Connection,
        method: &str,
        params: &impl fmt::Display,
    ) -> Result<Self, AskRefusal> {
        let busy = || AskRefusal::refused("the client has too many questions to answer");
        let (id, answer) = connection.asked.expect().ok_or_else(busy)?;
        let mut pending = Self { connection, id, answer, is_sent: false };
        let id = &pending.id;
        let (id, method) = (json!(id), json!(method));
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n"
        );
        let room = connection.outbox.push_room(line.len()).await;
        let segments = [Bytes::from(line), Bytes::new(), Bytes::new()];
        connection.outbox.push(&connection.outbox.lane(), Some(room), segments).await;
        pending.is_sent = true;
        Ok(pending)
    }

    /// Waits for its answer.
    ///
    /// # Errors
    /// The client's own error, or that it has left.
    pub async fn answer(mut self) -> AskAnswer {
        let left = || AskRefusal::refused("the client has left");
        tokio::select! {
            answer = &mut self.answer => answer.unwrap_or_else(|_| Err(left())),
            () = self.connection.ended.cancelled() => Err(left()),
        }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Self { connection, id, .. } = self;
        if !connection.asked.forget(id) || !self.is_sent {
            return;
        }
        let params = json!({"requestId": id, "reason": "no answer is needed any more"});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let segments = [Bytes::from(format!("{told}\n")), Bytes::new(), Bytes::new()];
        // There are no more of them than requests were made.
        drop(connection.outbox.push(&connection.outbox.lane(), None, segments));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::mount::json::ExactJson;

    fn refusal(capabilities: Value, ask: ServerAsk, params: Value) -> i64 {
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let params = ExactJson::of(&params).try_into().unwrap();
        check_offered(&capabilities, ask, &params).map_or_else(|refusal| refusal.code, |()| 0)
    }

    #[test]
    fn a_client_is_asked_only_what_it_declared() {
        let all = json!({"elicitation": {"url": {}}, "sampling": {}, "roots": {}});
        for (ask, params, code) in [
            (ServerAsk::Elicitation, json!({"mode": "url"}), 0),
            (ServerAsk::Elicitation, json!({}), -32602),
            (ServerAsk::Elicitation, json!({"mode": "voice"}), -32602),
            (ServerAsk::Sampling, json!({}), 0),
            (ServerAsk::Sampling, json!({"tools": []}), -32602),
            (ServerAsk::Roots, json!({}), 0),
        ] {
            assert_eq!(refusal(all.clone(), ask, params.clone()), code, "{ask:?} {params}");
            assert_eq!(refusal(json!({}), ask, params), -32601, "{ask:?}");
        }
        assert_eq!(refusal(json!({"elicitation": {}}), ServerAsk::Elicitation, json!({})), 0);
        let url = json!({"mode": "url"});
        assert_eq!(refusal(json!({"elicitation": {}}), ServerAsk::Elicitation, url), -32602);
        let tools = json!({"sampling": {"tools": {}}});
        assert_eq!(refusal(tools, ServerAsk::Sampling, json!({"tools": []})), 0);
    }
}
