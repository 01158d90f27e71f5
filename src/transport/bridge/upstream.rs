//! The bridge's connection to a daemon, checked by one request before it is used.
//!
//! An answered request proves that a daemon is at the socket. The daemon then keeps an idle connection open.

use std::path::Path;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::core::code::Code;
use crate::core::token::Secret;
use crate::transport::bridge::message::BridgedMessage;
use crate::transport::client::{ConnectError, GREETING_MAX, dial};
use crate::transport::framing::AUTHENTICATE_METHOD;
use crate::transport::framing::lines::{InputLine, LineInput, LineReader};
use crate::transport::limits::{ANSWER_MAX, Limits};
use crate::transport::unix::impostor::ExpectedDaemon;
use crate::wire::error::ErrorWire;

/// The id of the bridge's own requests. They end one by one before the client's first message is sent.
const OWN: &str = "termgate-mcp";

/// A connection to a daemon that has answered.
#[derive(Debug)]
pub struct Upstream {
    pub(super) lines: LineReader<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

impl Upstream {
    /// Connects to the daemon at `path`, shows the token if there is one, and waits for the first answer.
    pub async fn connect(
        path: &Path,
        expected: ExpectedDaemon,
        secret: Option<&Secret>,
    ) -> Result<Self, ConnectError> {
        let (reader, writer) = dial(path, expected).await?.into_split();
        let mut upstream =
            Self { lines: LineReader::new(reader, &Limits::patient(ANSWER_MAX)), writer };
        let meeting = async {
            if let Some(secret) = secret {
                upstream.authenticate(secret).await?;
            }
            upstream.ask("server/discover", &greeting()).await
        };
        let met = timeout(GREETING_MAX, meeting).await;
        let met = met.unwrap_or(Err(ConnectError::NoGreeting))?;
        // A daemon that does not know the request says nothing more about it.
        if let Some(OwnRefusal { data: Some(told) }) = refusal_in(&met) {
            return Err(ConnectError::Rejected(Box::new(told)));
        }
        Ok(upstream)
    }

    async fn authenticate(&mut self, secret: &Secret) -> Result<(), ConnectError> {
        let params = json!({"token": secret.reveal()});
        let answer = self.ask(AUTHENTICATE_METHOD, &params).await?;
        match refusal_in(&answer) {
            None => Ok(()),
            Some(OwnRefusal { data }) => {
                let unknown = || ErrorWire::new(Code::NotSupported, "this daemon takes no token");
                Err(ConnectError::Rejected(Box::new(data.unwrap_or_else(unknown))))
            }
        }
    }

    /// Sends one of the bridge's own requests and waits for its answer.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<InputLine, ConnectError> {
        let request = json!({"jsonrpc": "2.0", "id": OWN, "method": method, "params": params});
        let sent = self.writer.write_all(format!("{request}\n").as_bytes()).await;
        sent.map_err(|_| ConnectError::NoGreeting)?;
        let own = RequestId::String(OWN.into());
        while let LineInput::Line(line) = self.lines.next().await {
            if BridgedMessage::read(line.bytes()).is_some_and(|it| it.answered() == Some(&own)) {
                return Ok(line);
            }
        }
        Err(ConnectError::NoGreeting)
    }
}

/// The error of an answer, if it has one.
#[derive(Debug, Default, Deserialize)]
struct OwnAnswer {
    error: Option<OwnRefusal>,
}

#[derive(Debug, Deserialize)]
struct OwnRefusal {
    data: Option<ErrorWire>,
}

fn refusal_in(answer: &InputLine) -> Option<OwnRefusal> {
    let answer: OwnAnswer = serde_json::from_slice(answer.bytes()).unwrap_or_default();
    answer.error
}

/// The parameters of `server/discover`, the request that every client may send first.
fn greeting() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {
            "name": "termgate-mcp",
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    json!({"_meta": meta})
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dial {
    /// Only check for a running daemon.
    Connect,
    /// A request is waiting: start a daemon if that is allowed.
    ConnectOrStart,
}

/// Why no daemon was reached.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Undialed {
    /// The error code for waiting requests. [`Code::UpstreamUnavailable`] means that a later attempt may succeed.
    pub code: Code,
    pub reason: String,
}
