//! Events as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::one_line::one_line;
use crate::wire::untrusted::Untrusted;

/// Events in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    #[serde(default)]
    #[schemars(skip)]
    pub untrusted: Untrusted,
    pub events: Vec<EventWire>,
    /// Everything up to this number is answered or did not match.
    pub next_since: u64,
    /// More follow at once after `next_since`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Events after `since` were removed to make room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// One event; its other members are by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventWire {
    pub seq: u64,
    /// RFC 3339.
    pub at: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl EventWire {
    /// What happened, in a few words.
    pub fn summary(&self) -> String {
        let text = |name: &str| self.details.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = match self.kind.as_str() {
            "needs_input" => "needs input".to_owned(),
            "notification" if text("title").is_empty() => text("body").to_owned(),
            "notification" => format!("{}: {}", text("title"), text("body")),
            "command_started" => text("command").to_owned(),
            "command_ended" | "session_ended" => {
                let code = self.details.get("exit_code").map(|code| format!(", exit code {code}"));
                format!("{}{}", self.kind.replace('_', " "), code.unwrap_or_default())
            }
            kind => {
                let by = self.by.as_ref().map(|by| format!(" by {by}"));
                format!("{}{}", kind.replace('_', " "), by.unwrap_or_default())
            }
        };
        one_line(&words).into_owned()
    }

    /// The event on one line, for people and models.
    pub fn line(&self) -> String {
        let Self { seq, at, kind, session, by, epoch, details } = self;
        let mut line = format!("{seq} {at} {kind}");
        let mut add = |name: &str, value: &str| line += &format!(" {name}={value}");
        session.iter().for_each(|session| add("session", session));
        by.iter().for_each(|by| add("by", by));
        epoch.iter().for_each(|epoch| add("epoch", &epoch.to_string()));
        details.iter().for_each(|(name, value)| add(name, &value.to_string()));
        one_line(&line).into_owned()
    }
}
