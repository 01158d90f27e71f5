//! The bridge's end of a connection to a daemon, which has greeted before anybody relies on it.
//!
//! It must not know clients. The greeting shows that a daemon lives behind the socket, and makes it
//! keep the connection for as long as a client has nothing to say.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::RequestId;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::transport::bridge::message::Message;
use crate::transport::client::ConnectError;
use crate::transport::framing::lines::{Input, Lines};
use crate::transport::limits::Limits;

/// How long a daemon may take to greet.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// Longest line taken from a daemon: a full frame is longer than what a daemon takes itself.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// Whoever is at the other end of a bridge may be silent for as long as they like.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The id of the greeting, which is over before the first message of a client.
const GREETING: &str = "termgate-mcp";

/// A connection to a daemon that has greeted.
#[derive(Debug)]
pub struct Upstream {
    pub(super) lines: Lines<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

impl Upstream {
    /// Connects to the daemon whose socket is at `path`, and waits until it has greeted.
    ///
    /// # Errors
    ///
    /// Why there is no daemon to talk to.
    pub async fn connect(path: &Path) -> Result<Self, ConnectError> {
        let (reader, mut writer) = UnixStream::connect(path).await?.into_split();
        let mut lines = Lines::new(reader, &patient(ANSWER_MAX));
        let greeting = async {
            writer.write_all(greeting().as_bytes()).await.ok()?;
            loop {
                let Input::Line(line) = lines.next().await else { return None };
                let message = Message::read(line.bytes());
                if message.is_some_and(|message| message.answered() == Some(&greeting_id())) {
                    return Some(());
                }
            }
        };
        match timeout(GREETING_MAX, greeting).await {
            Ok(Some(())) => Ok(Self { lines, writer }),
            Ok(None) | Err(_) => Err(ConnectError::NoGreeting),
        }
    }
}

/// Limits of length only, for a bridge holds nobody up but the two it joins.
pub(super) fn patient(line_max: usize) -> Limits {
    Limits {
        line_max,
        first_message: FOREVER,
        inside_message: FOREVER,
        parsing: Arc::new(Semaphore::new(2 * line_max / 1024)),
        ..Limits::default()
    }
}

fn greeting_id() -> RequestId {
    RequestId::String(GREETING.into())
}

/// The one request that any client may make in any era before its own greeting.
fn greeting() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {
            "name": "termgate-mcp",
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    let params = json!({"_meta": meta});
    let request =
        json!({"jsonrpc": "2.0", "id": GREETING, "method": "server/discover", "params": params});
    format!("{request}\n")
}
