//! The bridge's end of a connection to a daemon, which has greeted before anybody relies on it.
//!
//! It must not know clients. The greeting shows that a daemon lives behind the socket, and makes it
//! keep the connection for as long as a client has nothing to say.

use std::path::Path;
use std::time::Duration;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::core::code::Code;
use crate::core::token::Secret;
use crate::transport::authentication::AUTHENTICATE_METHOD;
use crate::transport::bridge::message::Message;
use crate::transport::client::{ConnectError, dial};
use crate::transport::framing::lines::{Input, Line, Lines};
use crate::transport::limits::Limits;
use crate::transport::line_memory::Share;

/// How long a daemon may take to greet.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// Longest line taken from a daemon: a full frame is longer than what a daemon takes itself.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// Whoever is at the other end of a bridge may be silent for as long as they like.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The id of the bridge's own requests, which are over, one by one, before the first message of a
/// client.
const OWN: &str = "termgate-mcp";

/// Says why a bridge has no daemon at its other end.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is one, and it does not take the token; with what it says instead.
    #[error("the daemon does not take the token")]
    Rejected(Value),
}

/// A connection to a daemon that has greeted.
#[derive(Debug)]
pub struct Upstream {
    pub(super) lines: Lines<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

impl Upstream {
    /// Connects to the daemon whose socket is at `path`, as the owner of a token if there is one, and
    /// waits until it has greeted.
    ///
    /// # Errors
    ///
    /// Why there is no daemon to talk to, or that it does not take the token.
    pub async fn connect(path: &Path, secret: Option<&Secret>) -> Result<Self, JoinError> {
        let (reader, writer) = dial(path).await?.into_split();
        let mut upstream = Self { lines: Lines::new(reader, &patient(ANSWER_MAX)), writer };
        let meeting = async {
            if let Some(secret) = secret {
                upstream.authenticate(secret).await?;
            }
            upstream.ask("server/discover", &greeting()).await?;
            Ok(())
        };
        match timeout(GREETING_MAX, meeting).await {
            Ok(met) => met.map(|()| upstream),
            Err(_) => Err(ConnectError::NoGreeting.into()),
        }
    }

    async fn authenticate(&mut self, secret: &Secret) -> Result<(), JoinError> {
        let params = json!({"token": secret.reveal()});
        let answer = self.ask(AUTHENTICATE_METHOD, &params).await?;
        let answer: Answer = serde_json::from_slice(answer.bytes()).unwrap_or_default();
        match answer.error {
            None => Ok(()),
            Some(Refused { data: Some(data) }) if data["error_code"].is_string() => {
                Err(JoinError::Rejected(data))
            }
            // A daemon from before there were tokens.
            Some(Refused { .. }) => Err(JoinError::Rejected(json!({
                "error_code": Code::NotSupported.as_str(),
                "message": "this daemon takes no token",
                "hint": "Stop it with `termgate stop`, so that one of this version can be started.",
            }))),
        }
    }

    /// Makes a request of the bridge's own, and waits for the line that answers it.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Line, ConnectError> {
        let request = json!({"jsonrpc": "2.0", "id": OWN, "method": method, "params": params});
        let sent = self.writer.write_all(format!("{request}\n").as_bytes()).await;
        sent.map_err(|_| ConnectError::NoGreeting)?;
        let own = RequestId::String(OWN.into());
        while let Input::Line(line) = self.lines.next().await {
            if Message::read(line.bytes()).is_some_and(|it| it.answered() == Some(&own)) {
                return Ok(line);
            }
        }
        Err(ConnectError::NoGreeting)
    }
}

/// What of an answer tells whether a token was taken.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    error: Option<Refused>,
}

#[derive(Debug, Deserialize)]
struct Refused {
    data: Option<Value>,
}

/// Limits of length only, for a bridge holds nobody up but the two it joins.
pub(super) fn patient(line_max: usize) -> Limits {
    Limits {
        line_max,
        first_message: FOREVER,
        inside_message: FOREVER,
        incoming: Share::of_bytes(2 * line_max),
        ..Limits::default()
    }
}

/// The parameters of the one request that any client may make in any era before its own greeting.
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
