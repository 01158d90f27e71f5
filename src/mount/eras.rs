//! The two generations of the protocol that servers speak.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mount::asking::capabilities;
use crate::mount::json::ExactJson;
use crate::mount::log::LogLevel;
use crate::mount::protocol::{ServerParams, request};
use crate::mount::tasks::TASKS_EXTENSION;

/// The revision of the older era that every server of it knows, and the one of the newer era.
pub const OLDER_REVISION: &str = "2025-11-25";
pub const NEWER_REVISION: &str = "2026-07-28";

/// What the members of `_meta` begin with that the protocol reserves.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Where a request of the newer era says from which level on log messages are wanted, and that which is kept of all.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const LOGGED_FROM: LogLevel = LogLevel::Info;

/// The era of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerEra {
    /// It is greeted with `initialize`, and keeps a session.
    #[default]
    Older,
    /// Each request says what the client is.
    Newer,
}

impl ServerEra {
    /// A request as a line. The parameters get what the era wants beside them.
    pub fn request(self, id: u64, method: &str, params: &mut ServerParams) -> Vec<u8> {
        match self {
            Self::Older => {}
            Self::Newer => {
                let meta = params.get("_meta").and_then(|it| serde_json::from_str(it.get()).ok());
                let mut meta: Value = meta.unwrap_or_else(|| json!({}));
                meta[format!("{RESERVED}protocolVersion")] = json!(NEWER_REVISION);
                meta[format!("{RESERVED}clientCapabilities")] = newer_capabilities();
                meta[format!("{RESERVED}clientInfo")] = client_info();
                if meta.get(LOG_LEVEL).is_none() {
                    // Without it, a server says nothing for its log.
                    meta[LOG_LEVEL] = json!(LOGGED_FROM);
                }
                params.set("_meta", &meta);
            }
        }
        request(id, method, params)
    }
}

/// What servers of the newer era are told that they may do.
fn newer_capabilities() -> Value {
    let mut all = capabilities();
    all["extensions"] = json!({TASKS_EXTENSION: {}});
    all
}

/// How the daemon calls itself.
pub fn client_info() -> Value {
    json!({"name": "termgate", "version": env!("CARGO_PKG_VERSION")})
}

/// The revision that a request names, if it is one of the newer era.
pub fn named_revision(meta: &Value) -> Option<&str> {
    meta.get(format!("{RESERVED}protocolVersion"))?.as_str()
}

/// What a result of the newer era is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    Final,
    /// The server asks, and the request is to be made again with the answers.
    InputRequired,
    /// The server has begun a task, whose result is the result.
    Task,
}

impl ResultKind {
    pub fn of(result: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind<'a> {
            #[serde(borrow)]
            result_type: Option<Cow<'a, str>>,
        }
        let kind =
            serde_json::from_str::<Kind<'_>>(result.get()).ok().and_then(|it| it.result_type);
        match kind.as_deref() {
            Some("input_required") => Self::InputRequired,
            Some("task") => Self::Task,
            Some(_) | None => Self::Final,
        }
    }
}

/// The request that opened the subscription to which a notification belongs.
pub fn subscription(params: &ExactJson) -> Option<u64> {
    let id = params.get("_meta")?.get(&format!("{RESERVED}subscriptionId"))?;
    id.as_literal()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_the_newer_era_say_what_the_client_is_beside_what_they_have() {
        let params = json!({"name": "a", "_meta": {"progressToken": 7}});
        let of = |era: ServerEra| -> Value {
            let text = RawValue::from_string(params.to_string()).unwrap();
            let mut params = ServerParams::of(&text);
            serde_json::from_slice(&era.request(1, "tools/call", &mut params)).unwrap()
        };
        assert_eq!(of(ServerEra::Older)["params"], json!(params));
        let newer = of(ServerEra::Newer);
        let meta = &newer["params"]["_meta"];
        assert_eq!(meta["progressToken"], 7);
        assert_eq!(named_revision(meta), Some(NEWER_REVISION));
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], newer_capabilities());
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "termgate");
        assert_eq!(meta[LOG_LEVEL], "info");
        let mut wanted = ServerParams::default();
        wanted.set("_meta", &json!({LOG_LEVEL: "debug"}));
        let line = ServerEra::Newer.request(1, "tools/call", &mut wanted);
        let line: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line["params"]["_meta"][LOG_LEVEL], "debug");
    }
}
