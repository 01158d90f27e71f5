//! What a bridge remembers of its client, so that another daemon can take the place of the first.
//!
//! Values in, values out: it reads and writes nothing. It keeps what a client says once and relies
//! on ever after, and the requests that are not answered; only those that ask what there is are kept
//! to be sent again.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use rmcp::model::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::core::code::Code;
use crate::transport::bridge::message::{Message, failed};
use crate::transport::framing::to_line;

/// Subscriptions that are remembered; a daemon allows no more of its own user by default.
const SUBSCRIPTIONS_MAX: usize = 4_096;

/// Longest request that is kept to be sent again, in bytes.
const AGAIN_MAX: usize = 64 * 1024;

/// A line on its way to the daemon.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) line: Bytes,
    pub(super) note: Note,
}

impl Outgoing {
    /// The id, if somebody waits for an answer.
    pub(super) fn request(&self) -> Option<&RequestId> {
        match &self.note {
            Note::Request(id, ..) => Some(id),
            Note::Initialized | Note::Cancelled(_) | Note::Nothing => None,
        }
    }
}

/// What a message of the client changes once it was sent.
#[derive(Clone, Debug)]
pub(super) enum Note {
    Request(RequestId, Effect, Loss),
    Initialized,
    Cancelled(RequestId),
    /// Nothing that anybody must remember.
    Nothing,
}

/// What a request changes once it was answered well.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    None,
    Greet(Box<RawValue>),
    SetLevel(Box<RawValue>),
    Subscribe(String),
    Unsubscribe(String),
}

/// What becomes of a request whose daemon ends before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Another daemon may answer it as well.
    SentAgain,
    /// Nobody knows whether it took effect.
    Told,
}

#[derive(Deserialize)]
struct OfResource {
    uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfCancel {
    request_id: RequestId,
}

impl Note {
    /// What there is to remember of a message.
    pub(super) fn of(message: &Message<'_>) -> Self {
        match (message.method.as_deref(), &message.id) {
            (Some(method), Some(id)) => {
                Self::Request(id.clone(), Effect::of(message), Loss::of(method))
            }
            (Some("notifications/initialized"), None) => Self::Initialized,
            (Some("notifications/cancelled"), None) => match message.params::<OfCancel>() {
                Some(cancel) => Self::Cancelled(cancel.request_id),
                None => Self::Nothing,
            },
            (Some(_), None) | (None, _) => Self::Nothing,
        }
    }
}

impl Effect {
    fn of(message: &Message<'_>) -> Self {
        let uri = || message.params::<OfResource>().map(|resource| resource.uri);
        let params = || message.params.map(RawValue::to_owned);
        let effect = match message.method.as_deref() {
            Some("initialize") => params().map(Self::Greet),
            Some("logging/setLevel") => params().map(Self::SetLevel),
            Some("resources/subscribe") => uri().map(Self::Subscribe),
            Some("resources/unsubscribe") => uri().map(Self::Unsubscribe),
            Some(_) | None => None,
        };
        effect.unwrap_or(Self::None)
    }
}

impl Loss {
    /// What a client asks before it does anything can be asked twice.
    fn of(method: &str) -> Self {
        const ASKING: [&str; 7] = [
            "initialize",
            "ping",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "server/discover",
            "tools/list",
        ];
        if ASKING.contains(&method) { Self::SentAgain } else { Self::Told }
    }
}

/// A request that is not answered.
#[derive(Debug)]
struct Unanswered {
    /// Its place among all requests.
    number: u64,
    effect: Effect,
    /// What is sent again, where that does no harm.
    again: Option<Bytes>,
}

/// What is left of a connection that broke.
#[derive(Debug, Default)]
pub(super) struct Broken {
    /// What another daemon is to hear, in the order it was sent.
    pub(super) again: Vec<Outgoing>,
    /// What the callers of all other requests are answered.
    pub(super) lost: Vec<Bytes>,
}

/// Whom a message of the daemon's is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Client,
    Bridge,
}

/// What a bridge remembers of its client.
#[derive(Debug)]
pub(super) struct Memory {
    /// What the ids of the bridge's own requests begin with.
    own: String,
    last_own: u64,
    greeting: Option<Box<RawValue>>,
    initialized: bool,
    level: Option<Box<RawValue>>,
    subscriptions: BTreeSet<String>,
    requests: u64,
    in_flight: HashMap<RequestId, Unanswered>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            own: format!("termgate-mcp-{}-", Uuid::new_v4()),
            last_own: 0,
            greeting: None,
            initialized: false,
            level: None,
            subscriptions: BTreeSet::new(),
            requests: 0,
            in_flight: HashMap::new(),
        }
    }

    /// Remembers a message that was sent.
    pub(super) fn on_sent(&mut self, Outgoing { line, note }: Outgoing) {
        match note {
            Note::Request(id, effect, loss) => {
                self.requests += 1;
                let may_be_kept = loss == Loss::SentAgain && line.len() <= AGAIN_MAX;
                let again = may_be_kept.then_some(line);
                self.in_flight.insert(id, Unanswered { number: self.requests, effect, again });
            }
            Note::Initialized => self.initialized = true,
            // It is not answered any more.
            Note::Cancelled(id) => {
                self.in_flight.remove(&id);
            }
            Note::Nothing => {}
        }
    }

    /// Remembers what a message of the daemon's settles, and says whom it is for.
    pub(super) fn on_received(&mut self, line: &[u8]) -> For {
        let Some(message) = Message::read(line) else { return For::Client };
        let Some(id) = message.answered() else { return For::Client };
        if let RequestId::String(text) = id
            && text.starts_with(&self.own)
        {
            return For::Bridge;
        }
        let answered = self.in_flight.remove(id);
        if let Some(answered) = answered.filter(|_| message.error.is_none()) {
            self.settle(answered.effect);
        }
        For::Client
    }

    fn settle(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Greet(params) => self.greeting = Some(params),
            Effect::SetLevel(params) => self.level = Some(params),
            Effect::Subscribe(uri) if self.subscriptions.len() < SUBSCRIPTIONS_MAX => {
                self.subscriptions.insert(uri);
            }
            Effect::Subscribe(_) => {}
            Effect::Unsubscribe(uri) => {
                self.subscriptions.remove(&uri);
            }
        }
    }

    /// Forgets a request that no daemon has read.
    pub(super) fn on_unread(&mut self, id: &RequestId) {
        self.in_flight.remove(id);
    }

    /// Gives up every request in flight, and says what becomes of them.
    ///
    /// Each is sent again once at most, lest one that no daemon survives ends them all.
    pub(super) fn on_break(&mut self) -> Broken {
        let mut unanswered: Vec<(RequestId, Unanswered)> = self.in_flight.drain().collect();
        unanswered.sort_unstable_by_key(|(_, request)| request.number);
        let mut broken = Broken::default();
        for (id, Unanswered { effect, again, .. }) in unanswered {
            let Some(line) = again else {
                broken.lost.push(failed(&id, Code::UpstreamRestarted));
                continue;
            };
            let greets = matches!(effect, Effect::Greet(_));
            broken.again.push(Outgoing { line, note: Note::Request(id, effect, Loss::Told) });
            if greets && self.initialized {
                // It was said without waiting for the answer.
                broken.again.push(initialized());
            }
        }
        broken
    }

    /// What another daemon must hear before it can go on with this client.
    pub(super) fn replay(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        if let Some(params) = self.greeting.clone() {
            lines.push(self.own_request("initialize", &params));
            if self.initialized {
                lines.push(initialized().line);
            }
        }
        if let Some(params) = self.level.clone() {
            lines.push(self.own_request("logging/setLevel", &params));
        }
        let uris: Vec<String> = self.subscriptions.iter().cloned().collect();
        for uri in uris {
            lines.push(self.own_request("resources/subscribe", &json!({"uri": uri})));
        }
        lines
    }

    /// What the client must hear once another daemon goes on: whatever it may look at has changed.
    ///
    /// Only clients of the older era are told anything unasked.
    pub(super) fn catch_up(&self) -> Vec<Bytes> {
        if self.greeting.is_none() || !self.initialized {
            return Vec::new();
        }
        let lists = ["notifications/tools/list_changed", "notifications/resources/list_changed"];
        let lists = lists.into_iter().map(|method| notification(method, &json!({})));
        let update = |uri| notification("notifications/resources/updated", &json!({"uri": uri}));
        lists.chain(self.subscriptions.iter().map(update)).collect()
    }

    fn own_request(&mut self, method: &str, params: &impl Serialize) -> Bytes {
        #[derive(Serialize)]
        struct Request<'a, P> {
            jsonrpc: &'a str,
            id: String,
            method: &'a str,
            params: &'a P,
        }
        self.last_own += 1;
        let id = format!("{}{}", self.own, self.last_own);
        to_line(&Request { jsonrpc: "2.0", id, method, params })
            .expect("parameters that were JSON are JSON again")
    }
}

fn initialized() -> Outgoing {
    let line = notification("notifications/initialized", &json!({}));
    Outgoing { line, note: Note::Initialized }
}

fn notification(method: &str, params: &serde_json::Value) -> Bytes {
    to_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .expect("a value has nothing that JSON cannot say")
}

#[cfg(test)]
mod tests;
