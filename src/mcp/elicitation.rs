//! Asks the person in front of a client by the protocol's elicitation: while the call waits in the older era, with a
//! result that the client answers by making its call again in the newer one.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{ClientCapabilities, RequestMetaObject};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::mcp::call::Era;
use crate::mcp::connection::Connection;
use crate::surface::person::{AsksPerson, ClientPerson, PersonAnswer, ReturnedAnswer};

const METHOD: &str = "elicitation/create";

/// The name of the only question in a result that asks for answers.
const QUESTION: &str = "approval";

/// Whether a client shows forms to its person.
pub fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    // A client that names no mode shows forms.
    let shows = |it: &rmcp::model::ElicitationCapability| it.form.is_some() || it.url.is_none();
    capabilities.elicitation.as_ref().is_some_and(shows)
}

/// What a call brings back for an earlier result.
#[derive(Debug, Default)]
pub struct Returned {
    pub answers: Option<BTreeMap<String, Value>>,
    pub state: Option<String>,
}

/// How the person in front of a client is asked about one of its calls. `greeted` says whether the client showed forms
/// when it sent `initialize`.
pub fn person(
    connection: &Arc<Connection>,
    era: Era,
    meta: &RequestMetaObject,
    greeted: bool,
    returned: Returned,
) -> ClientPerson {
    match era {
        Era::Legacy if greeted => {
            ClientPerson::Present(Arc::new(ConnectedPerson(Arc::clone(connection))))
        }
        Era::Modern if meta.client_capabilities().as_ref().is_some_and(shows_forms) => {
            let answer = |state| {
                let answer = returned.answers.and_then(|mut answers| answers.remove(QUESTION));
                ReturnedAnswer { state, answer: answer_of(answer.as_ref()) }
            };
            ClientPerson::Later(returned.state.map(answer))
        }
        Era::Legacy | Era::Modern => ClientPerson::Absent,
    }
}

/// The questions of a result that asks for answers.
pub fn questions(text: &str) -> Value {
    json!({QUESTION: {"method": METHOD, "params": params(text)}})
}

/// A form without fields: to accept it is to let the call pass.
fn params(text: &str) -> Value {
    json!({"message": text, "requestedSchema": {"type": "object", "properties": {}}})
}

fn answer_of(result: Option<&Value>) -> PersonAnswer {
    match result.and_then(|result| result.get("action")).and_then(Value::as_str) {
        Some("accept") => PersonAnswer::Granted,
        Some("decline") => PersonAnswer::Denied,
        Some(_) | None => PersonAnswer::Nothing,
    }
}

/// The person in front of a client that is connected.
#[derive(Debug)]
struct ConnectedPerson(Arc<Connection>);

impl AsksPerson for ConnectedPerson {
    fn ask(&self, question: String) -> Pin<Box<dyn Future<Output = PersonAnswer> + Send + '_>> {
        Box::pin(async move {
            let result = ask(&self.0, METHOD, &params(&question)).await;
            answer_of(result.as_ref())
        })
    }
}

/// Makes a request to the client and waits for its result. `None` if it answers with an error, leaves, or has too many
/// requests to answer. Dropping the future cancels the request.
async fn ask(connection: &Connection, method: &str, params: &Value) -> Option<Value> {
    let (id, answer) = connection.asked.expect()?;
    let mut pending = PendingRequest { connection, id, answer, is_sent: false };
    let id = &pending.id;
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let line = format!("{request}\n");
    let room = connection.outbox.push_room(line.len()).await;
    let segments = [Bytes::from(line), Bytes::new(), Bytes::new()];
    connection.outbox.push(&connection.outbox.lane(), Some(room), segments).await;
    pending.is_sent = true;
    tokio::select! {
        result = &mut pending.answer => result.ok().flatten(),
        () = connection.ended.cancelled() => None,
    }
}

/// A request that waits for its answer. If it is dropped before, the client is told.
struct PendingRequest<'a> {
    connection: &'a Connection,
    id: String,
    answer: oneshot::Receiver<Option<Value>>,
    is_sent: bool,
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
