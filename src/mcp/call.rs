//! Tool calls between the transport that reads them and whoever answers them.
//!
//! It must not know tools or sockets. CallHandler are what clients send all day, so they have a path of
//! their own, with no task and no queue between the line that asks and the line that answers.

use std::collections::BTreeMap;
use std::future::Future;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, ProtocolVersion, RequestMetaObject};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::outbox::budget::Room;
use crate::mcp::request_order::Turn;
use crate::wire::envelope::{Envelope, KEY};

/// The method of a call.
pub const CALL_METHOD: &str = "tools/call";

/// What a call says.
#[derive(Debug, Deserialize)]
pub struct CallParams {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<JsonObject>,
    #[serde(default, rename = "_meta")]
    pub meta: Option<RequestMetaObject>,
}

/// A call on its way to its tool.
#[derive(Debug)]
pub struct ToolCall {
    pub params: CallParams,
    /// When it may take effect, among the requests of its connection.
    pub turn: Turn,
}

/// The answer to a call, and the room in the outbox that it was made under.
#[derive(Debug)]
pub struct Reply {
    pub result: Result<ToolResult, ErrorData>,
    pub room: Option<Room>,
}

impl From<Result<ToolResult, ErrorData>> for Reply {
    fn from(result: Result<ToolResult, ErrorData>) -> Self {
        Self { result, room: None }
    }
}

/// Who answers the calls of a connection.
pub trait CallHandler {
    /// The revision of the protocol that a request with these words about it is answered for.
    ///
    /// # Errors
    /// What its client has to say first.
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData>;

    /// Answers one call. Dropping the future gives the call up, and nothing is sent for it any more.
    fn answer(&self, call: ToolCall) -> impl Future<Output = Reply> + Send;
}

/// Which results a client understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// It has greeted, with a revision up to 2025-11-25.
    Legacy,
    /// It names its revision with each request, 2026-07-28 or newer.
    Modern,
}

/// The result of a call, whether the tool did what it was asked or says why not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text; 1],
    structured_content: Structured,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'static str, Envelope>,
}

#[derive(Debug, Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

/// What programs read of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Structured {
    Written(Box<RawValue>),
    Value(Value),
}

impl ToolResult {
    /// What a tool answered: what a model reads, and the same for programs.
    pub fn success(era: Era, text: String, structured: Box<RawValue>) -> Self {
        Self::new(era, text, Structured::Written(structured), false)
    }

    /// Why a tool did not do what it was asked.
    pub fn failure(era: Era, text: String, structured: Value) -> Self {
        Self::new(era, text, Structured::Value(structured), true)
    }

    fn new(era: Era, text: String, structured_content: Structured, is_error: bool) -> Self {
        Self {
            result_type: (era == Era::Modern).then_some("complete"),
            content: [Text { r#type: "text", text }],
            structured_content,
            is_error,
            meta: BTreeMap::new(),
        }
    }

    /// Adds what programs around a model may want to know of the call.
    #[must_use]
    pub fn in_envelope(mut self, envelope: Envelope) -> Self {
        self.meta.insert(KEY, envelope);
        self
    }
}
