//! Tool calls between the transport and their handler.
//!
//! Tool calls are the most frequent requests. They have a path of their own, without a task or queue between a line
//! and its answer.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, ProtocolVersion, RequestMetaObject};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::mcp::call_result::{CallAnswer, CallError, CallResult, RelayedError};
use crate::mcp::outbox::budget::ReservedSpace;
use crate::session::request_order::RequestTurn;
use crate::surface::call_arguments::CallArguments;

pub const CALL_METHOD: &str = "tools/call";

#[derive(Debug, Default)]
pub struct CallParams {
    pub name: String,
    pub arguments: Option<CallArguments>,
    pub meta: Option<RequestMetaObject>,
    /// Answers to the questions of an earlier result, by their names.
    pub answers: Option<InputResponses>,
    /// What that result said to bring back.
    pub state: Option<String>,
}

/// What a client answers to the questions of a result, by their names. Each keeps its bytes.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// The parameters of another request that a server may get, as its client wrote them.
#[derive(Clone, Debug)]
pub struct WrittenParams(pub Box<RawValue>);

/// The methods of such requests.
pub const WRITTEN_METHODS: [&str; 3] = ["completion/complete", "prompts/get", "resources/read"];

/// A member of the parameters of a call.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
enum CallMember {
    #[serde(rename = "name")]
    Name,
    #[serde(rename = "arguments")]
    Arguments,
    #[serde(rename = "_meta")]
    Meta,
    #[serde(rename = "inputResponses")]
    Answers,
    #[serde(rename = "requestState")]
    State,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for CallParams {
    fn deserialize<D: Deserializer<'de>>(params: D) -> Result<Self, D::Error> {
        params.deserialize_map(CallParamsVisitor)
    }
}

/// Reads the arguments as values of the daemon's own tools, or keeps their text for a server. Clients write the name
/// first; before it is known, all are kept as text.
struct CallParamsVisitor;

impl<'de> Visitor<'de> for CallParamsVisitor {
    type Value = CallParams;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<CallParams, A::Error> {
        let (mut params, mut name) = (CallParams::default(), None);
        let mut early: Option<Option<Box<RawValue>>> = None;
        let mut has_arguments = false;
        while let Some(member) = members.next_key::<CallMember>()? {
            let is_repeated = match member {
                CallMember::Name => name.replace(members.next_value::<String>()?).is_some(),
                CallMember::Arguments => {
                    match &name {
                        Some(name) if !is_of_mount(name) => {
                            let values: Option<JsonObject> = members.next_value()?;
                            params.arguments = values.map(CallArguments::Values);
                        }
                        Some(_) | None => early = Some(members.next_value()?),
                    }
                    std::mem::replace(&mut has_arguments, true)
                }
                CallMember::Meta => {
                    params.meta = members.next_value()?;
                    false
                }
                CallMember::Answers => {
                    params.answers = members.next_value()?;
                    false
                }
                CallMember::State => {
                    params.state = members.next_value()?;
                    false
                }
                CallMember::Other => {
                    members.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if is_repeated {
                return Err(A::Error::custom("`name` or `arguments` is there twice"));
            }
        }
        params.name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        if let Some(text) = early.flatten() {
            params.arguments = Some(match is_of_mount(&params.name) {
                true => CallArguments::from(text),
                false => {
                    let values = serde_json::from_str(text.get()).map_err(A::Error::custom)?;
                    CallArguments::Values(values)
                }
            });
        }
        Ok(params)
    }
}

/// Whether a tool is one of a mount, which have `__` in their names.
pub fn is_of_mount(tool: &str) -> bool {
    tool.contains("__")
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
    pub result: CallAnswer,
    pub room: Option<ReservedSpace>,
}

impl From<Result<CallResult, ErrorData>> for Reply {
    fn from(result: Result<CallResult, ErrorData>) -> Self {
        Self { result: result.map_err(CallError::Own), room: None }
    }
}

impl From<RelayedError> for Reply {
    fn from(error: RelayedError) -> Self {
        Self { result: Err(CallError::Relayed(error)), room: None }
    }
}

/// Answers the calls of a connection.
pub trait CallHandler {
    /// The protocol revision for a request with this `_meta`.
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData>;

    /// Answers one call. Dropping the future cancels the call, and nothing more is sent for it.
    fn answer(&self, call: ToolCall) -> impl Future<Output = Reply> + Send;
}
