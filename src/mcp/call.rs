//! Tool calls between the transport and their handler.
//!
//! Tool calls are the most frequent requests. They have a path of their own, without a task or queue between a line
//! and its answer.

use std::future::Future;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, ProtocolVersion, RequestMetaObject};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::request_order::RequestTurn;
use crate::wire::error::{ENVELOPE_KEY, Envelope};

pub const CALL_METHOD: &str = "tools/call";

#[derive(Debug, Deserialize)]
pub struct CallParams {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<JsonObject>,
    #[serde(default, rename = "_meta")]
    pub meta: Option<RequestMetaObject>,
}

/// A call before it reaches its tool.
#[derive(Debug)]
pub struct ToolCall {
    pub params: CallParams,
    /// Orders the effects of this connection's requests.
    pub turn: RequestTurn,
}

/// The answer to a call and the outbox space reserved for it.
#[derive(Debug)]
pub struct Reply {
    pub result: Result<ToolResult, ErrorData>,
    pub room: Option<ReservedSpace>,
}

impl From<Result<ToolResult, ErrorData>> for Reply {
    fn from(result: Result<ToolResult, ErrorData>) -> Self {
        Self { result, room: None }
    }
}

/// Answers the calls of a connection.
pub trait CallHandler {
    /// The protocol revision for a request with this `_meta`.
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData>;

    /// Answers one call. Dropping the future cancels the call, and nothing more is sent for it.
    fn answer(&self, call: ToolCall) -> impl Future<Output = Reply> + Send;
}

/// The generation of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// The client sent `initialize`, with a revision up to 2025-11-25.
    Legacy,
    /// The client names its revision in each request, 2026-07-28 or newer.
    Modern,
}

/// The result of a call, or its failure.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text; 1],
    structured_content: Structured,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}

/// What only programs read.
#[derive(Debug)]
struct ResultMeta(Envelope);

impl Serialize for ResultMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(ENVELOPE_KEY, &self.0)])
    }
}

#[derive(Debug, Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

/// The structured content of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Structured {
    Written(Box<RawValue>),
    Value(Value),
}

impl ToolResult {
    /// A successful result: text for models and the same as JSON for programs.
    pub fn success(era: Era, text: String, structured: Box<RawValue>) -> Self {
        Self::new(era, text, Structured::Written(structured), false)
    }

    /// A failed result.
    pub fn failure(era: Era, text: String, structured: Value) -> Self {
        Self::new(era, text, Structured::Value(structured), true)
    }

    fn new(era: Era, text: String, structured_content: Structured, is_error: bool) -> Self {
        Self {
            result_type: (era == Era::Modern).then_some("complete"),
            content: [Text { r#type: "text", text }],
            structured_content,
            is_error,
            meta: None,
        }
    }

    /// Adds metadata about the call for programs.
    #[must_use]
    pub fn in_envelope(mut self, envelope: Envelope) -> Self {
        self.meta = Some(ResultMeta(envelope));
        self
    }
}
