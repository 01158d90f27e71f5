//! Asks the person in front of a client by the protocol's elicitation: while the call waits in the older era, with a
//! result that the client answers by making its call again in the newer one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::ClientCapabilities;
use serde_json::{Value, json};

use crate::mcp::asking::{ask, shows_forms};
use crate::mcp::call::InputResponses;
use crate::mcp::connection::Connection;
use crate::mcp::era::Era;
use crate::mount::asking::ServerAsk;
use crate::mount::json::reading::read_whole;
use crate::surface::person::{AsksPerson, ClientPerson, PersonAnswer, ReturnedAnswer};

const METHOD: &str = ServerAsk::Elicitation.method();

/// The name of the only question in a result that asks for answers.
const QUESTION: &str = "approval";

/// What a call brings back for an earlier result.
#[derive(Debug, Default)]
pub struct Returned {
    pub answers: Option<InputResponses>,
    pub state: Option<String>,
}

/// How the person in front of a client, which has declared this, is asked about one of its calls.
pub fn person(
    connection: &Arc<Connection>,
    era: Era,
    capabilities: &ClientCapabilities,
    returned: &Returned,
) -> ClientPerson {
    if !shows_forms(capabilities) {
        return ClientPerson::Absent;
    }
    match era {
        Era::Legacy => ClientPerson::Present(Arc::new(ConnectedPerson(Arc::clone(connection)))),
        Era::Modern => {
            let answer = returned.answers.as_ref().and_then(|answers| answers.get(QUESTION));
            let answer = answer.and_then(|answer| read_whole(answer.get()).ok());
            let brought = |state: &String| ReturnedAnswer {
                state: state.clone(),
                answer: answer_of(answer.as_ref()),
            };
            ClientPerson::Later(returned.state.as_ref().map(brought))
        }
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
            let result = ask(&self.0, METHOD, &params(&question)).await.ok();
            let result = result.and_then(|it| read_whole(it.get()).ok());
            answer_of(result.as_ref())
        })
    }
}
