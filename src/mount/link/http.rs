//! Streamable HTTP: each message is a request, whose response has the answer or a stream with it.
//!
//! What a server says by itself comes from a stream of its own, if it has one. A request that is cancelled is closed.

pub mod client;
mod events;
mod exchange;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::mount::link::http::client::{HttpClient, HttpServer};
use crate::mount::link::http::exchange::HttpSession;
use crate::mount::link::lines::{FromServer, Lines, WaitingLines};
use crate::mount::log::ServerLog;

/// How many requests are open at a time.
const OPEN_MAX: usize = 128;

/// How long the end of the session may take.
const END_MAX: Duration = Duration::from_secs(2);

/// The exchange with a server. Dropping it closes all that is open.
#[derive(Debug)]
pub(super) struct HttpExchange {
    session: Arc<HttpSession>,
    driver: JoinSet<()>,
}

/// A message to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpMessage {
    Request {
        id: u64,
        is_greeting: bool,
    },
    Cancelled {
        id: u64,
    },
    /// The greeting is over, and the server may speak by itself.
    Initialized,
    /// It has no answer.
    Notice,
}

#[derive(Debug, Deserialize)]
struct HttpMessageParts {
    id: Option<Value>,
    method: Option<String>,
    params: Option<CancelledRequest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledRequest {
    request_id: Option<u64>,
}

impl HttpMessage {
    fn of(line: &[u8]) -> Self {
        let Ok(parts) = serde_json::from_slice::<HttpMessageParts>(line) else {
            return Self::Notice;
        };
        let cancelled = parts.params.and_then(|params| params.request_id);
        match (parts.method.as_deref(), parts.id.and_then(|id| id.as_u64()), cancelled) {
            (Some(method), Some(id), _) => {
                Self::Request { id, is_greeting: method == "initialize" }
            }
            (Some("notifications/cancelled"), None, Some(id)) => Self::Cancelled { id },
            (Some("notifications/initialized"), None, _) => Self::Initialized,
            (_, _, _) => Self::Notice,
        }
    }
}

impl HttpExchange {
    /// Prepares the exchange; the first message connects.
    ///
    /// # Errors
    /// There can be no client.
    pub(super) fn open(server: &HttpServer, log: &ServerLog) -> Result<(Lines, Self), String> {
        let (lines, unwritten, read) = Lines::new();
        let session = Arc::new(HttpSession::new(HttpClient::new(server)?, log.clone()));
        let mut driver = JoinSet::new();
        driver.spawn(drive(Arc::clone(&session), unwritten, read));
        Ok((lines, Self { session, driver }))
    }

    /// Closes all that is open, and ends the session at the server.
    pub(super) async fn end(mut self) {
        self.driver.shutdown().await;
        // A server that does not answer forgets the session by itself.
        let _ = timeout(END_MAX, self.session.delete()).await;
    }
}

/// Sends each message in a request of its own, so that a slow answer delays no other.
async fn drive(session: Arc<HttpSession>, mut lines: WaitingLines, to: mpsc::Sender<FromServer>) {
    let mut open: JoinSet<Option<u64>> = JoinSet::new();
    let mut requests: BTreeMap<u64, AbortHandle> = BTreeMap::new();
    loop {
        let line = tokio::select! {
            line = lines.next(), if open.len() < OPEN_MAX => line.map(|waiting| waiting.line),
            Some(ended) = open.join_next() => {
                if let Ok(Some(id)) = ended {
                    requests.remove(&id);
                }
                continue;
            }
        };
        let Some(line) = line else { return };
        let (session, to) = (Arc::clone(&session), to.clone());
        let kind = HttpMessage::of(&line);
        match kind {
            HttpMessage::Request { id, is_greeting } => {
                let request = async move {
                    session.request(id, is_greeting, line, &to).await;
                    Some(id)
                };
                requests.insert(id, open.spawn(request));
            }
            HttpMessage::Initialized => {
                // A server may refuse requests before this one.
                session.notify(line, &to).await;
                open.spawn(async move {
                    session.listen(&to).await;
                    None
                });
            }
            HttpMessage::Cancelled { .. } | HttpMessage::Notice => {
                if let HttpMessage::Cancelled { id } = kind
                    && let Some(request) = requests.remove(&id)
                {
                    request.abort();
                }
                open.spawn(async move {
                    session.notify(line, &to).await;
                    None
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::protocol::{answer_to, notification, request};
    use serde_json::json;

    #[test]
    fn each_message_to_a_server_has_its_kind() {
        let cancelled = json!({"requestId": 7, "reason": "given up"});
        for (line, kind) in [
            (
                request(1, "initialize", json!({})),
                HttpMessage::Request { id: 1, is_greeting: true },
            ),
            (
                request(2, "tools/call", json!({})),
                HttpMessage::Request { id: 2, is_greeting: false },
            ),
            (notification("notifications/cancelled", &cancelled), HttpMessage::Cancelled { id: 7 }),
            (notification("notifications/initialized", &json!({})), HttpMessage::Initialized),
            (answer_to(&json!(3), "ping"), HttpMessage::Notice),
            (notification("notifications/other", &json!({})), HttpMessage::Notice),
        ] {
            assert_eq!(HttpMessage::of(&line), kind);
        }
    }
}
