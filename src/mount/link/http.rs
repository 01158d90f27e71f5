//! Streamable HTTP: each message is a request, whose response has the answer or a stream with it.
//!
//! What a server says by itself comes from a stream of its own, if it has one. A request that is cancelled is closed.

pub mod client;
mod events;
mod exchange;
mod long_messages;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::mount::eras::named_revision;
use crate::mount::link::http::client::{HttpClient, HttpServer};
use crate::mount::link::http::exchange::{HttpSession, REVISION};
use crate::mount::link::lines::{FromServer, Lines, WaitingLine, WaitingLines};
use crate::mount::log::ServerLog;

/// How many requests are open at a time.
const OPEN_MAX: usize = 192;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How long the end of the session may take.
const END_MAX: Duration = Duration::from_secs(2);

/// The exchange with a server. Dropping it closes all that is open.
#[derive(Debug)]
pub(super) struct HttpExchange {
    session: Arc<HttpSession>,
    driver: JoinSet<()>,
}

/// A message to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HttpMessage {
    Request {
        id: u64,
        is_greeting: bool,
        /// Those of a request of the newer era.
        headers: Option<HeaderMap>,
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
    params: Option<HttpMessageParams>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HttpMessageParams {
    request_id: Option<u64>,
    #[serde(rename = "_meta", default)]
    meta: Value,
    name: Option<Value>,
    uri: Option<Value>,
    task_id: Option<Value>,
}

impl HttpMessage {
    fn of(line: &[u8]) -> Self {
        let Ok(parts) = serde_json::from_slice::<HttpMessageParts>(line) else {
            return Self::Notice;
        };
        let cancelled = parts.params.as_ref().and_then(|params| params.request_id);
        match (parts.method.as_deref(), parts.id.and_then(|id| id.as_u64()), cancelled) {
            (Some(method), Some(id), _) => Self::Request {
                id,
                is_greeting: method == "initialize",
                headers: parts.params.and_then(|params| newer_headers(method, &params)),
            },
            (Some("notifications/cancelled"), None, Some(id)) => Self::Cancelled { id },
            (Some("notifications/initialized"), None, _) => Self::Initialized,
            (_, _, _) => Self::Notice,
        }
    }
}

/// The headers with which a request of the newer era says again what is in it; `None` if it is one of the older era.
fn newer_headers(method: &str, params: &HttpMessageParams) -> Option<HeaderMap> {
    let revision = named_revision(&params.meta)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.name.as_ref(),
        "resources/read" => params.uri.as_ref(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id.as_ref(),
        _ => None,
    };
    let name = name.and_then(Value::as_str);
    let named = [(REVISION, Some(revision)), (METHOD, Some(method)), (NAME, name)];
    let said = |(name, value): (HeaderName, Option<&str>)| {
        Some((name, HeaderValue::from_str(&header_text(value?)).ok()?))
    };
    Some(named.into_iter().filter_map(said).collect())
}

/// A header that a server has named; `None` if the name is none.
fn header(name: &str, text: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name, HeaderValue::from_str(&header_text(text)).ok()?))
}

/// A text as the value of a header: what a header cannot hold, or what looks as if it were encoded, is encoded.
fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    if is_plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
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
    // With whether each is of the newer era.
    let mut requests: BTreeMap<u64, (AbortHandle, bool)> = BTreeMap::new();
    loop {
        let line = tokio::select! {
            line = lines.next(), if open.len() < OPEN_MAX => line,
            Some(ended) = open.join_next() => {
                if let Ok(Some(id)) = ended {
                    requests.remove(&id);
                }
                continue;
            }
        };
        let Some(WaitingLine { line, headers: said, .. }) = line else { return };
        let (session, to) = (Arc::clone(&session), to.clone());
        let kind = HttpMessage::of(&line);
        match kind {
            HttpMessage::Request { id, is_greeting, headers } => {
                let is_newer = headers.is_some();
                let request = async move {
                    let mut headers = headers.unwrap_or_default();
                    headers.extend(said.iter().filter_map(|(name, text)| header(name, text)));
                    session.request((id, is_greeting), headers, line, &to).await;
                    Some(id)
                };
                requests.insert(id, (open.spawn(request), is_newer));
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
                    && let Some((request, is_newer)) = requests.remove(&id)
                {
                    request.abort();
                    if is_newer {
                        // The end of the request says it.
                        continue;
                    }
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
    use crate::mount::eras::ServerEra;
    use crate::mount::json::ExactJson;
    use crate::mount::protocol::{ServerParams, answer_to, notification, request};
    use serde_json::json;
    use serde_json::value::to_raw_value;

    #[test]
    fn each_message_to_a_server_has_its_kind() {
        let cancelled = json!({"requestId": 7, "reason": "given up"});
        for (line, kind) in [
            (
                request(1, "initialize", &json!({})),
                HttpMessage::Request { id: 1, is_greeting: true, headers: None },
            ),
            (
                request(2, "tools/call", &json!({})),
                HttpMessage::Request { id: 2, is_greeting: false, headers: None },
            ),
            (notification("notifications/cancelled", &cancelled), HttpMessage::Cancelled { id: 7 }),
            (notification("notifications/initialized", &json!({})), HttpMessage::Initialized),
            (answer_to(&ExactJson::of(&3), "ping"), HttpMessage::Notice),
            (notification("notifications/other", &json!({})), HttpMessage::Notice),
        ] {
            assert_eq!(HttpMessage::of(&line), kind);
        }
    }

    #[test]
    fn requests_of_the_newer_era_have_their_headers() {
        let headers = |method: &str, params: Value| {
            let mut params = ServerParams::of(&to_raw_value(&params).unwrap());
            let line = ServerEra::Newer.request(1, method, &mut params);
            let HttpMessage::Request { headers: Some(headers), .. } = HttpMessage::of(&line) else {
                panic!()
            };
            let text = |it: &HeaderValue| it.to_str().unwrap().to_owned();
            assert_eq!(headers.get(REVISION).map(text).as_deref(), Some("2026-07-28"));
            (text(&headers[METHOD]), headers.get(NAME).map(text))
        };
        let named = |method: &str, name: Option<&str>| (method.to_owned(), name.map(str::to_owned));
        for (method, params, name) in [
            ("tools/list", json!({"name": "x"}), None),
            ("tools/call", json!({"name": "a b"}), Some("a b")),
            ("prompts/get", json!({"name": "\u{e9}"}), Some("=?base64?w6k=?=")),
            ("resources/read", json!({"uri": " x"}), Some("=?base64?IHg=?=")),
            ("tasks/get", json!({"taskId": "t", "name": "x"}), Some("t")),
            (
                "tools/call",
                json!({"name": "=?base64?eA==?="}),
                Some("=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
            ),
        ] {
            assert_eq!(headers(method, params), named(method, name));
        }
    }
}
