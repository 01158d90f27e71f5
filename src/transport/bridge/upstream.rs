//! The bridge's connection to a daemon, checked by one request before it is used.
//!
//! An answered request proves that a daemon is at the socket. The daemon then keeps an idle connection open.

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
use crate::transport::bridge::message::Message;
use crate::transport::client::{ConnectError, dial};
use crate::transport::framing::AUTHENTICATE_METHOD;
use crate::transport::framing::lines::{Input, Line, Lines};
use crate::transport::limits::Limits;
use crate::transport::line_memory::Share;
use crate::wire::error::ErrorWire;

/// How long a daemon may take to answer the first request.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// The longest line from a daemon. A full frame is longer than what a daemon accepts.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// Both sides of a bridge may stay silent without limit.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The id of the bridge's own requests. They end one by one before the client's first message is sent.
const OWN: &str = "termgate-mcp";

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon rejects the token; contains its error data.
    #[error("the daemon does not take the token")]
    Rejected(Box<ErrorWire>),
}

/// A connection to a daemon that has answered.
#[derive(Debug)]
pub struct Upstream {
    pub(super) lines: Lines<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

impl Upstream {
    /// Connects to the daemon at `path`, shows the token if there is one, and waits for the first answer.
    ///
    /// # Errors
    ///
    /// Returns why no daemon answered, or that it rejected the token.
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
            Some(Refused { data }) => {
                let unknown = || ErrorWire::new(Code::NotSupported, "this daemon takes no token");
                Err(JoinError::Rejected(Box::new(data.unwrap_or_else(unknown))))
            }
        }
    }

    /// Sends one of the bridge's own requests and waits for its answer.
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

/// The error of an answer, if it has one.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    error: Option<Refused>,
}

#[derive(Debug, Deserialize)]
struct Refused {
    data: Option<ErrorWire>,
}

/// Limits of length without time limits.
pub(super) fn patient(line_max: usize) -> Limits {
    Limits {
        line_max,
        first_message: FOREVER,
        inside_message: FOREVER,
        incoming: Share::of_bytes(2 * line_max),
        ..Limits::default()
    }
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
