//! What servers ask of the clients whose calls they answer.
//!
//! A question belongs to a call, and its client is asked. If nothing says whose call it is, nobody is.

use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::core::ids::ConnectionId;
use crate::mount::json::{ExactJson, ExactObject};

/// How many questions of one call wait for their answers, and how many it may ask in all.
pub const OPEN_MAX: usize = 4;
pub const QUESTIONS_MAX: usize = 32;

/// The longest parameters of a question and the longest answer, in bytes of JSON.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024;
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// How long a call may take at least after it has asked.
pub const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// A method by which a server asks a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAsk {
    Elicitation,
    Sampling,
    Roots,
}

impl ServerAsk {
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    pub const fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    pub fn of(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.method() == method)
    }
}

/// What every server is told that it may ask. Whether a client answers depends on the client.
pub fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// The same for a server whose only client tells when its roots change.
pub fn capabilities_with_news() -> Value {
    let mut all = capabilities();
    all["roots"]["listChanged"] = json!(true);
    all
}

/// Why a question has no answer, as an error of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct AskRefusal {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ExactJson>,
}

impl AskRefusal {
    /// The client has no such capability.
    pub fn not_offered(message: impl Into<String>) -> Self {
        Self { code: -32601, message: message.into(), data: None }
    }

    /// The question is malformed, or of a kind that the client does not know.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into(), data: None }
    }

    /// Nobody is asked, or nobody answered.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: -32000, message: message.into(), data: None }
    }
}

/// What a client answered.
pub type AskAnswer = Result<Box<RawValue>, AskRefusal>;

/// A question of a server to the client of a call.
#[derive(Debug)]
pub struct ServerQuestion {
    pub ask: ServerAsk,
    pub params: ExactObject,
    /// Closed once no answer is needed any more.
    pub reply: oneshot::Sender<AskAnswer>,
    pub later: LaterNews,
}

/// What a server and its client tell each other after a question.
#[derive(Debug, Default)]
pub struct LaterNews {
    /// Of a link that a person is sent to: told when it was followed.
    pub followed: Option<LinkFollowed>,
    /// Of roots: told when they have changed, as long as the server runs.
    pub roots: Weak<RootsHearer>,
}

/// Where a running server hears that roots have changed.
#[derive(Debug, Default)]
pub struct RootsHearer {
    changed: Notify,
    asker: Mutex<Option<CallAsker>>,
}

impl RootsHearer {
    /// The roots of a client have changed, which the server may ask for once, also while it works on no call.
    pub fn tell(&self, asker: CallAsker) {
        *self.asker.lock().unwrap_or_else(PoisonError::into_inner) = Some(asker);
        self.changed.notify_one();
    }

    /// Waits until roots have changed. Cancelling this loses nothing.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The client whose roots have changed last, unless it was asked since.
    pub fn take_asker(&self) -> Option<CallAsker> {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Told when a link was followed; closed when nothing more is told.
pub type LinkFollowed = oneshot::Receiver<()>;

/// The member of a question, and of the news that its link was followed, that names the link.
pub const LINK_ID: &str = "elicitationId";

/// How the person is to be asked.
pub fn mode(params: &ExactObject) -> &str {
    params.get("mode").map_or("form", |mode| mode.as_text().unwrap_or_default())
}

/// Checks that the address of a link opens a page, and runs or reads nothing on the person's machine.
///
/// # Errors
/// What the server is told.
pub fn check_link(question: &ExactObject) -> Result<(), AskRefusal> {
    let url = question.text("url").unwrap_or_default();
    let has = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    // Browsers leave control characters out, so what they open would be another address.
    if !(has("http://") || has("https://")) || url.contains(char::is_control) {
        return Err(AskRefusal::malformed("the url must begin with http:// or https://"));
    }
    if host(url).is_empty() {
        return Err(AskRefusal::malformed("the url must name a host"));
    }
    Ok(())
}

/// The host of an address of the web.
fn host(url: &str) -> &str {
    let rest = url.split_once("//").map(|(_, rest)| rest).unwrap_or_default();
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit('@').next().unwrap_or_default();
    // Only the address of version 6 has colons.
    if place.starts_with('[') { place } else { place.split(':').next().unwrap_or_default() }
}

/// Checks that the name of a link is one, so that it can have that of its mount before it.
///
/// # Errors
/// What the server is told.
pub fn check_link_id(question: &ExactObject) -> Result<(), AskRefusal> {
    let is_name = question.get(LINK_ID).is_none_or(|id| id.as_text().is_some());
    if is_name { Ok(()) } else { Err(AskRefusal::malformed("the elicitationId must be a text")) }
}

/// Whom a server may ask during a call.
#[derive(Clone, Debug)]
pub struct CallAsker {
    pub client: ConnectionId,
    pub questions: mpsc::Sender<ServerQuestion>,
    /// Whether the client has declared to tell when its roots change.
    pub tells_roots: bool,
}

/// Finds the call that a question belongs to, among those that the server may be working on, which come with their
/// clients.
///
/// In the stream of a request it belongs to that request. Elsewhere nothing says whose it is, so all calls must be of one
/// client; it belongs to the last one.
///
/// # Errors
/// Why nobody can be asked.
pub fn asking_call(
    calls: impl IntoIterator<Item = (u64, Option<ConnectionId>)>,
    cancelled: impl IntoIterator<Item = Option<ConnectionId>>,
    within: Option<u64>,
) -> Result<u64, AskRefusal> {
    let nobody = || AskRefusal::refused("nobody can be asked during this request");
    let mut calls = calls.into_iter();
    if let Some(within) = within {
        let (_, client) = calls
            .find(|(id, _)| *id == within)
            .ok_or_else(|| AskRefusal::refused("this request is over"))?;
        return client.map(|_| within).ok_or_else(nobody);
    }
    let Some((first, client)) = calls.next() else {
        return Err(AskRefusal::refused("no call is open, so there is nobody to ask"));
    };
    let mut last = first;
    let mut is_one = true;
    for (id, other) in calls {
        is_one &= other == client;
        last = last.max(id);
    }
    if !(is_one && cancelled.into_iter().all(|other| other == client)) {
        let several = "calls of several clients are open, and nothing says whose this question is";
        return Err(AskRefusal::refused(several));
    }
    client.map(|_| last).ok_or_else(nobody)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Option<ConnectionId> = Some(ConnectionId(1));
    const BOB: Option<ConnectionId> = Some(ConnectionId(2));

    fn why(
        calls: &[(u64, Option<ConnectionId>)],
        cancelled: &[Option<ConnectionId>],
        within: Option<u64>,
    ) -> String {
        let found = asking_call(calls.iter().copied(), cancelled.iter().copied(), within);
        found.map_or_else(|refusal| refusal.message, |id| id.to_string())
    }

    #[test]
    fn a_question_in_the_stream_of_a_call_is_of_that_call_alone() {
        let calls = [(3, ADA), (4, BOB), (5, None)];
        assert_eq!(why(&calls, &[], Some(3)), "3");
        assert_eq!(why(&calls, &[BOB], Some(4)), "4");
        assert!(why(&calls, &[], Some(5)).contains("nobody"));
        assert!(why(&calls, &[], Some(6)).contains("over"));
    }

    #[test]
    fn elsewhere_all_that_the_server_works_on_must_be_of_one_client() {
        assert_eq!(why(&[(3, ADA), (7, ADA)], &[ADA], None), "7");
        assert!(why(&[], &[ADA], None).contains("no call"));
        for (calls, cancelled) in [
            (&[(3, ADA), (4, BOB)][..], &[][..]),
            (&[(3, BOB), (4, ADA), (5, ADA)], &[]),
            (&[(3, ADA), (4, None)], &[]),
            (&[(3, None), (4, ADA)], &[]),
            (&[(3, ADA)], &[BOB]),
            (&[(3, ADA)], &[None]),
        ] {
            let refused = why(calls, cancelled, None);
            assert!(refused.contains("several clients"), "{calls:?} {cancelled:?}: {refused}");
        }
        assert!(why(&[(3, None)], &[], None).contains("nobody"));
    }

    #[test]
    fn a_link_opens_a_page() {
        let code = |question: Value| {
            let question = ExactJson::of(&question).try_into().unwrap();
            check_link(&question).map_or_else(|refusal| refusal.code, |()| 0)
        };
        for url in [
            "https://a.example/x?y",
            "HTTP://a",
            "https://\u{e4}.example",
            "http://[::1]:80/",
            "http://a:b@c",
        ] {
            assert_eq!(code(json!({"url": url})), 0, "{url}");
        }
        for url in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            " https://a",
            "https:",
            "",
            "http://a\nb",
            "https:///x",
            "https://",
            "https://?x",
            "http://:80/",
            "http://a@:80",
            "http://\\x",
        ] {
            assert_eq!(code(json!({"url": url})), -32602, "{url}");
        }
        assert_eq!(code(json!({})), -32602);
    }

    #[test]
    fn each_method_is_known_by_its_name() {
        for ask in ServerAsk::ALL {
            assert_eq!(ServerAsk::of(ask.method()), Some(ask));
        }
        assert_eq!(ServerAsk::of("ping"), None);
    }
}
