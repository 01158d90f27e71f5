//! The state of a client that the bridge replays to the next daemon.
//!
//! It performs no I/O. It keeps the client's lasting settings and its unanswered requests. Only requests without
//! effects are kept for sending again.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use rmcp::model::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::core::code::Code;
use crate::transport::bridge::message::{BridgedMessage, failed};
use crate::transport::framing::to_line;

/// The maximum number of subscriptions, equal to a daemon's default limit for its own user.
const SUBSCRIPTIONS_MAX: usize = 4_096;

/// The longest request that is kept for sending again, in bytes.
const AGAIN_MAX: usize = 64 * 1024;

/// A line for the daemon.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) line: Bytes,
    pub(super) note: Remembered,
}

impl Outgoing {
    /// The id, if the line is a request.
    pub(super) fn request(&self) -> Option<&RequestId> {
        match &self.note {
            Remembered::Request(id, ..) => Some(id),
            Remembered::Initialized | Remembered::Cancelled(_) | Remembered::Nothing => None,
        }
    }
}

/// What to remember once a message of the client is sent.
#[derive(Clone, Debug)]
pub(super) enum Remembered {
    Request(RequestId, Effect, Loss),
    Initialized,
    Cancelled(RequestId),
    Nothing,
}

/// What to remember once a request succeeded.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    None,
    Greet(Box<RawValue>),
    SetLevel(Box<RawValue>),
    Subscribe(String),
    Unsubscribe(String),
}

/// What happens to a request whose daemon ends before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It is sent to the next daemon.
    SentAgain,
    /// The client receives an error, because the request may have had an effect.
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

impl Remembered {
    /// What to remember of a message.
    pub(super) fn of(message: &BridgedMessage<'_>) -> Self {
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
    fn of(message: &BridgedMessage<'_>) -> Self {
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
    /// Only requests without effects may be sent twice.
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

#[derive(Debug)]
struct SentRequest {
    /// The position among all requests.
    number: u64,
    effect: Effect,
    /// The line, if the request can be sent again.
    again: Option<Bytes>,
}

/// The requests in flight when a connection broke.
#[derive(Debug, Default)]
pub(super) struct Broken {
    /// The lines for the next daemon, in their original order.
    pub(super) again: Vec<Outgoing>,
    /// The error answers for all other requests.
    pub(super) lost: Vec<Bytes>,
}

/// The receiver of a daemon's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Client,
    Bridge,
}

#[derive(Debug)]
pub(super) struct ClientState {
    /// The prefix of the ids of the bridge's own requests.
    own: String,
    last_own: u64,
    greeting: Option<Box<RawValue>>,
    initialized: bool,
    level: Option<Box<RawValue>>,
    subscriptions: BTreeSet<String>,
    requests: u64,
    in_flight: HashMap<RequestId, SentRequest>,
}

impl ClientState {
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

    /// Records a message that was sent.
    pub(super) fn on_sent(&mut self, Outgoing { line, note }: Outgoing) {
        match note {
            Remembered::Request(id, effect, loss) => {
                self.requests += 1;
                let may_be_kept = loss == Loss::SentAgain && line.len() <= AGAIN_MAX;
                let again = may_be_kept.then_some(line);
                self.in_flight.insert(id, SentRequest { number: self.requests, effect, again });
            }
            Remembered::Initialized => self.initialized = true,
            // A cancelled request gets no answer.
            Remembered::Cancelled(id) => {
                self.in_flight.remove(&id);
            }
            Remembered::Nothing => {}
        }
    }

    /// Records an answer of the daemon and returns the receiver of the message.
    pub(super) fn on_received(&mut self, line: &[u8]) -> For {
        let Some(message) = BridgedMessage::read(line) else { return For::Client };
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

    /// Removes a request that no daemon has read.
    pub(super) fn on_unread(&mut self, id: &RequestId) {
        self.in_flight.remove(id);
    }

    /// Removes every request in flight and returns what to send again and what to answer.
    ///
    /// A request is sent again only once, so that one that crashes every daemon does not end them all.
    pub(super) fn on_break(&mut self) -> Broken {
        let mut unanswered: Vec<(RequestId, SentRequest)> = self.in_flight.drain().collect();
        unanswered.sort_unstable_by_key(|(_, request)| request.number);
        let mut broken = Broken::default();
        for (id, SentRequest { effect, again, .. }) in unanswered {
            let Some(line) = again else {
                broken.lost.push(failed(&id, Code::UpstreamRestarted));
                continue;
            };
            let greets = matches!(effect, Effect::Greet(_));
            broken.again.push(Outgoing { line, note: Remembered::Request(id, effect, Loss::Told) });
            if greets && self.initialized {
                // The client sent it without waiting for the answer.
                broken.again.push(initialized());
            }
        }
        broken
    }

    /// The requests that restore this client's state in the next daemon.
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

    /// The notifications for the client after a reconnect: everything it watches may have changed.
    ///
    /// Only clients of the older protocol era receive them.
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
        struct OwnRequest<'a, P> {
            jsonrpc: &'a str,
            id: String,
            method: &'a str,
            params: &'a P,
        }
        self.last_own += 1;
        let id = format!("{}{}", self.own, self.last_own);
        to_line(&OwnRequest { jsonrpc: "2.0", id, method, params })
            .expect("parameters that were JSON are JSON again")
    }
}

fn initialized() -> Outgoing {
    let line = notification("notifications/initialized", &json!({}));
    Outgoing { line, note: Remembered::Initialized }
}

fn notification(method: &str, params: &serde_json::Value) -> Bytes {
    to_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .expect("a value has nothing that JSON cannot say")
}

#[cfg(test)]
mod tests;
