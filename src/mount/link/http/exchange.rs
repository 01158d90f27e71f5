//! The requests of one session with a server, and what becomes of each.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::mount::link::http::client::{HttpClient, NoResponse};
use crate::mount::link::http::events::EventReader;
use crate::mount::link::http::long_messages::MessagePlace;
use crate::mount::link::lines::{FromServer, LostAnswer, MESSAGE_MAX};
use crate::mount::log::ServerLog;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How long a notification or an answer to the server may take.
const NOTICE_MAX: Duration = Duration::from_secs(10);

/// The most that is read of a refusal, in bytes.
const REFUSAL_MAX: usize = 64 * 1024;

/// The code of a request that was refused without an error of the protocol.
const REFUSED: i64 = -32000;

/// How long to wait before a stream is resumed, if the server does not say; and at most after failures.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The session with a server.
#[derive(Debug)]
pub(super) struct HttpSession {
    client: HttpClient,
    log: ServerLog,
    /// The id of the session and the revision of the protocol, as headers, once the server has said them.
    headers: Mutex<HeaderMap>,
}

/// Why a request got no answer.
#[derive(Debug, PartialEq, Eq)]
enum NoAnswer {
    /// It had no effect.
    Refused { code: i64, message: String },
    /// It may have had an effect.
    Lost(LostAnswer),
    /// There is no server, or it has forgotten the session.
    Gone(String),
}

fn lost(problem: impl Into<String>) -> NoAnswer {
    NoAnswer::Lost(LostAnswer::Silent(problem.into()))
}

/// The parts of a server's message by which its answers are known.
#[derive(Debug, Deserialize)]
struct Incomplete {
    id: Option<Value>,
    method: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct GreetingAnswer {
    result: GreetingResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GreetingResult {
    protocol_version: String,
}

#[derive(Debug, Deserialize)]
struct RefusalBody {
    error: RefusalError,
}

#[derive(Debug, Deserialize)]
struct RefusalError {
    code: i64,
    message: String,
}

impl HttpSession {
    pub(super) fn new(client: HttpClient, log: ServerLog) -> Self {
        Self { client, log, headers: Mutex::default() }
    }

    /// Sends a request, and hands on all that comes with its answer.
    pub(super) async fn request(
        &self,
        (id, is_greeting): (u64, bool),
        headers: HeaderMap,
        line: Vec<u8>,
        to: &mpsc::Sender<FromServer>,
    ) {
        let wanted = WantedAnswer { id, is_greeting };
        let Err(unanswered) = self.ask(&wanted, headers, line, to).await else { return };
        let told = match unanswered {
            NoAnswer::Refused { code, message } => {
                let error = json!({"code": code, "message": message});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                FromServer::Line(answer.to_string().into_bytes())
            }
            NoAnswer::Lost(problem) => FromServer::Lost { request: id, problem },
            NoAnswer::Gone(problem) => FromServer::Closed(problem),
        };
        // Nobody listens any longer to a link that ends.
        let _ = to.send(told).await;
    }

    /// Sends what needs no answer, in bounded time.
    pub(super) async fn notify(&self, line: Vec<u8>, to: &mpsc::Sender<FromServer>) {
        let posted = timeout(NOTICE_MAX, self.post(HeaderMap::new(), line)).await;
        match posted.unwrap_or_else(|_| Err(lost("it does not answer"))) {
            Ok(_) => {}
            Err(NoAnswer::Gone(problem)) => _ = to.send(FromServer::Closed(problem)).await,
            Err(NoAnswer::Refused { message: problem, .. }) => self.note_untaken(&problem),
            Err(NoAnswer::Lost(problem)) => self.note_untaken(&problem.to_string()),
        }
    }

    /// Reads what the server says by itself, until it offers no such stream.
    pub(super) async fn listen(&self, to: &mpsc::Sender<FromServer>) {
        let (mut reader, mut pause) = (EventReader::default(), PAUSE);
        let mut has_listened = false;
        loop {
            match self.stream(reader.last_id()).await {
                Ok(response) => {
                    (has_listened, pause) = (true, PAUSE);
                    if let Err(problem) = self.relay(response, &mut reader, None, to).await {
                        self.note(&format!("its own messages are not read: {problem}"));
                        return;
                    }
                }
                Err(NoAnswer::Gone(problem)) if has_listened && problem == SESSION_LOST => {
                    let _ = to.send(FromServer::Closed(problem)).await;
                    return;
                }
                Err(NoAnswer::Gone(_) | NoAnswer::Lost(_)) if has_listened => {
                    pause = (2 * pause).min(PAUSE_MAX);
                }
                // It has no such stream.
                Err(NoAnswer::Refused { .. } | NoAnswer::Gone(_) | NoAnswer::Lost(_)) => {
                    return;
                }
            }
            sleep(reader.pause().unwrap_or(PAUSE).max(pause)).await;
        }
    }

    /// Ends the session at the server.
    pub(super) async fn delete(&self) {
        let headers = self.headers().clone();
        if headers.contains_key(SESSION) {
            // A server may keep its sessions as long as it likes.
            let _ = self.client.send(Method::DELETE, &headers, Bytes::new()).await;
        }
    }

    fn note_untaken(&self, problem: &str) {
        self.note(&format!("a notification was not taken: {problem}"));
    }

    /// Adds a line to the log of the server.
    fn note(&self, text: &str) {
        self.log.add(format!("[termgate] {text}").as_bytes());
    }

    async fn ask(
        &self,
        wanted: &WantedAnswer,
        headers: HeaderMap,
        line: Vec<u8>,
        to: &mpsc::Sender<FromServer>,
    ) -> Result<(), NoAnswer> {
        let response = self.post(headers, line).await?;
        let mut reader = EventReader::default();
        if wanted.is_greeting
            && let Some(session) = response.headers().get(SESSION)
        {
            let mut session = session.clone();
            session.set_sensitive(true);
            self.headers().insert(SESSION, session);
        }
        if !is_of_type(&response, EVENTS) {
            let mut place = self.client.long.place();
            let body = read_whole(response.into_body(), MESSAGE_MAX, &mut place).await?;
            let is_answer = self.is_answer(&body, wanted);
            if !body.is_empty() {
                let _ = to.send(within(wanted.id, body)).await;
            }
            let no_answer = lost("its response is no answer");
            return if is_answer { Ok(()) } else { Err(no_answer) };
        }
        let mut response = response;
        loop {
            let read = self.relay(response, &mut reader, Some(wanted), to).await;
            if read.map_err(NoAnswer::Lost)? == StreamEnd::Answer {
                return Ok(());
            }
            // A server may close the stream and answer in a later one.
            let Some(last) = reader.last_id() else {
                return Err(lost("its stream ended without an answer"));
            };
            sleep(reader.pause().unwrap_or(PAUSE)).await;
            response = self.stream(Some(last)).await.map_err(|unanswered| match unanswered {
                NoAnswer::Refused { message, .. } => lost(message),
                unanswered @ (NoAnswer::Lost(_) | NoAnswer::Gone(_)) => unanswered,
            })?;
        }
    }

    /// Sends a message, with these headers beside those of the session.
    async fn post(&self, own: HeaderMap, line: Vec<u8>) -> Result<Response<Incoming>, NoAnswer> {
        let mut headers = self.headers().clone();
        headers.extend(own);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.accepted(Method::POST, headers, line.into()).await
    }

    /// Opens or resumes a stream.
    async fn stream(&self, last: Option<&str>) -> Result<Response<Incoming>, NoAnswer> {
        let mut headers = self.headers().clone();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let response = self.accepted(Method::GET, headers, Bytes::new()).await?;
        if is_of_type(&response, EVENTS) {
            return Ok(response);
        }
        Err(NoAnswer::Refused { code: REFUSED, message: "it has no stream".to_owned() })
    }

    async fn accepted(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let has_session = headers.contains_key(SESSION);
        let response = match self.client.send(method, &headers, body).await {
            Ok(response) => response,
            Err(NoResponse::NotConnected(why)) => return Err(NoAnswer::Gone(why)),
            Err(NoResponse::Broken(why)) => return Err(lost(why)),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let (body, mut place) = (response.into_body(), self.client.long.place());
        let body = read_whole(body, REFUSAL_MAX, &mut place).await.unwrap_or_default();
        Err(refusal(status, &body, has_session))
    }

    /// Hands on the messages of a stream, to its end or to the answer that is wanted.
    async fn relay(
        &self,
        response: Response<Incoming>,
        reader: &mut EventReader,
        wanted: Option<&WantedAnswer>,
        to: &mpsc::Sender<FromServer>,
    ) -> Result<StreamEnd, LostAnswer> {
        let (mut body, mut place) = (response.into_body(), self.client.long.place());
        while let Some(Ok(frame)) = body.frame().await {
            let Some(bytes) = frame.data_ref() else { continue };
            place.hold(reader.held() + bytes.len()).await;
            for message in reader.feed(bytes).map_err(|_| LostAnswer::TooLong)? {
                let is_answer = wanted.is_some_and(|wanted| self.is_answer(&message, wanted));
                let read = match wanted {
                    Some(wanted) => within(wanted.id, message),
                    None => FromServer::Line(as_line(message)),
                };
                let _ = to.send(read).await;
                if is_answer {
                    return Ok(StreamEnd::Answer);
                }
            }
            place.keep(reader.held());
        }
        reader.end();
        Ok(StreamEnd::End)
    }

    /// Whether a message is the answer. That to a greeting says the revision for further requests.
    fn is_answer(&self, message: &[u8], wanted: &WantedAnswer) -> bool {
        let Ok(parts) = serde_json::from_slice::<Incomplete>(message) else { return false };
        let id = parts.id.and_then(|id| id.as_u64());
        let is_answer = parts.method.is_none() && id == Some(wanted.id);
        if is_answer
            && wanted.is_greeting
            && let Ok(greeting) = serde_json::from_slice::<GreetingAnswer>(message)
            && let Ok(revision) = HeaderValue::from_str(&greeting.result.protocol_version)
        {
            self.headers().insert(REVISION, revision);
        }
        is_answer
    }

    fn headers(&self) -> MutexGuard<'_, HeaderMap> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request whose answer is waited for.
#[derive(Debug)]
struct WantedAnswer {
    id: u64,
    is_greeting: bool,
}

/// How the reading of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    Answer,
    End,
}

const SESSION_LOST: &str = "it has forgotten the session, so it has restarted";

/// What a response means that is no success.
fn refusal(status: StatusCode, body: &[u8], has_session: bool) -> NoAnswer {
    let error = serde_json::from_slice::<RefusalBody>(body).ok().map(|body| body.error);
    // Servers that follow an early example answer 400 where the protocol wants 404.
    let names_session = |error: &RefusalError| error.message.to_lowercase().contains("session");
    let is_lost = status == StatusCode::NOT_FOUND
        || status == StatusCode::BAD_REQUEST && error.as_ref().is_some_and(names_session);
    if has_session && is_lost {
        return NoAnswer::Gone(SESSION_LOST.to_owned());
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; look at the mount's headers",
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => "; look at the mount's url",
        _ if status.is_redirection() => "; only redirects to the same server are followed",
        _ => "",
    };
    let told = format!("HTTP {status}{hint}");
    match error {
        Some(error) => {
            let message = format!("{} ({told})", error.message);
            NoAnswer::Refused { code: error.code, message }
        }
        None if status.is_server_error() => lost(told),
        None => NoAnswer::Refused { code: REFUSED, message: told },
    }
}

fn is_of_type(response: &Response<Incoming>, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let given = given.and_then(|given| given.split(';').next()).unwrap_or_default();
    given.trim().eq_ignore_ascii_case(wanted)
}

/// A message as one line: its results go on as they are, to clients that read lines. In JSON, ends of lines are
/// nothing but space.
fn as_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    message
}

/// A message that came with the answer to a request.
fn within(request: u64, message: Vec<u8>) -> FromServer {
    FromServer::Within { request, line: as_line(message) }
}

/// The bytes of a body, if they are not too many. They are in its place.
async fn read_whole(
    mut body: Incoming,
    most: usize,
    place: &mut MessagePlace<'_>,
) -> Result<Vec<u8>, NoAnswer> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| lost(error.to_string()))?;
        let Some(part) = frame.data_ref() else { continue };
        if bytes.len() + part.len() > most {
            return Err(NoAnswer::Lost(LostAnswer::TooLong));
        }
        place.hold(bytes.len() + part.len()).await;
        bytes.extend_from_slice(part);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str, has_session: bool) -> NoAnswer {
        refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes(), has_session)
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(as_line(b"{\r\n \"a\": 1\n}".to_vec()), b"{   \"a\": 1 }");
    }

    #[test]
    fn a_forgotten_session_is_told_from_a_refusal() {
        let gone = NoAnswer::Gone(SESSION_LOST.to_owned());
        let unknown = r#"{"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}"#;
        assert_eq!(refused(404, "", true), gone);
        assert_eq!(refused(400, unknown, true), gone);
        assert_eq!(
            refused(404, "", false),
            NoAnswer::Refused {
                code: REFUSED,
                message: "HTTP 404 Not Found; look at the mount's url".to_owned()
            }
        );
        let other = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":null}"#;
        assert_eq!(
            refused(400, other, true),
            NoAnswer::Refused { code: -32600, message: "no (HTTP 400 Bad Request)".to_owned() }
        );
        assert_eq!(refused(502, "x", true), lost("HTTP 502 Bad Gateway"));
    }
}
