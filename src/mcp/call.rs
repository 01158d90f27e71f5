//! Tool calls between the transport and their handler.
//!
//! Tool calls are the most frequent requests. They have a path of their own, without a task or queue between a line
//! and its answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject, ProtocolVersion, RequestMetaObject};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::outbox::budget::ReservedSpace;
use crate::mount::json::ExactObject;
use crate::session::request_order::RequestTurn;
use crate::surface::call_arguments::CallArguments;
use crate::surface::tool::StructuredContent;
use crate::wire::error::{ENVELOPE_KEY, Envelope};

pub const CALL_METHOD: &str = "tools/call";

/// More than follows a result in its line.
const LINE_END_BYTES: usize = 8;

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
    pub result: Result<ToolResult, CallError>,
    pub room: Option<ReservedSpace>,
}

impl From<Result<ToolResult, ErrorData>> for Reply {
    fn from(result: Result<ToolResult, ErrorData>) -> Self {
        Self { result: result.map_err(CallError::Own), room: None }
    }
}

impl From<RelayedError> for Reply {
    fn from(error: RelayedError) -> Self {
        Self { result: Err(CallError::Relayed(error)), room: None }
    }
}

/// The error of the protocol that answers a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CallError {
    Own(ErrorData),
    Relayed(RelayedError),
}

/// The error of a mounted server that clients get as it was written.
#[derive(Debug, Serialize)]
pub struct RelayedError {
    pub code: i64,
    pub message: String,
    pub data: ExactObject,
}

impl From<RelayedError> for ErrorData {
    /// As the library writes it, which rounds numbers.
    fn from(error: RelayedError) -> Self {
        let RelayedError { code, message, data } = error;
        match serde_json::from_str(&data.to_string()) {
            Ok(data) => Self::new(ErrorCode(code as i32), message, Some(data)),
            Err(error) => {
                Self::internal_error(format!("the error of the server is malformed: {error}"), None)
            }
        }
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

impl Era {
    /// The era of a revision. Revisions are dates, so their names compare like dates.
    pub fn of(version: &ProtocolVersion) -> Self {
        if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() {
            Self::Modern
        } else {
            Self::Legacy
        }
    }
}

/// The result of a call, its failure, or a question.
#[derive(Debug)]
pub struct ToolResult {
    era: Era,
    body: ResultBody,
    envelope: Option<Envelope>,
}

#[derive(Debug)]
enum ResultBody {
    Own {
        text: String,
        structured: Box<dyn StructuredContent>,
        is_error: bool,
    },
    /// The result of a mounted server, an object.
    Relayed(Box<RawValue>),
    /// What the client is to ask before it makes the call again, and to bring back then.
    Asking {
        /// As JSON.
        questions: String,
        state: String,
    },
}

/// What kind of result it is, as those of the newer era say.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultKind {
    #[serde(default, deserialize_with = "given")]
    result_type: Option<Value>,
}

/// Also a null is given.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl ToolResult {
    /// A successful result: text for models and the same as JSON for programs.
    pub fn success(era: Era, text: String, structured: Box<dyn StructuredContent>) -> Self {
        Self::own(era, text, structured, false)
    }

    /// A failed result.
    pub fn failure(era: Era, text: String, structured: Value) -> Self {
        Self::own(era, text, Box::new(structured), true)
    }

    /// A result that has the client answer questions, bring back `state`, and make the call again.
    pub fn asking(era: Era, questions: &impl fmt::Display, state: String) -> Self {
        let questions = questions.to_string();
        Self { era, body: ResultBody::Asking { questions, state }, envelope: None }
    }

    /// The result of a mounted server, which is written unchanged but for what the client's era needs.
    pub fn relayed(era: Era, result: Box<RawValue>) -> Self {
        Self { era, body: ResultBody::Relayed(result), envelope: None }
    }

    fn own(era: Era, text: String, structured: Box<dyn StructuredContent>, is_error: bool) -> Self {
        Self { era, body: ResultBody::Own { text, structured, is_error }, envelope: None }
    }

    /// Adds metadata about the call for programs.
    #[must_use]
    pub fn in_envelope(mut self, envelope: Envelope) -> Self {
        self.envelope = Some(envelope);
        self
    }

    /// Writes the result as JSON.
    ///
    /// # Errors
    /// When the structured content has no JSON form.
    pub fn write_json(&self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        let (text, structured, is_error) = match &self.body {
            ResultBody::Own { text, structured, is_error } => (text, structured, is_error),
            ResultBody::Relayed(result) => return self.write_relayed(result.get(), to),
            ResultBody::Asking { questions, state } => {
                to.extend_from_slice(br#"{"resultType":"input_required","inputRequests":"#);
                to.extend_from_slice(questions.as_bytes());
                to.extend_from_slice(br#","requestState":"#);
                serde_json::to_writer(&mut *to, state)?;
                to.push(b'}');
                return Ok(());
            }
        };
        to.push(b'{');
        if self.era == Era::Modern {
            to.extend_from_slice(br#""resultType":"complete","#);
        }
        to.extend_from_slice(br#""content":[{"type":"text","text":"#);
        serde_json::to_writer(&mut *to, text)?;
        to.extend_from_slice(br#"}],"structuredContent":"#);
        structured.write_json(to)?;
        to.extend_from_slice(br#","isError":"#);
        serde_json::to_writer(&mut *to, is_error)?;
        if let Some(envelope) = &self.envelope {
            to.extend_from_slice(br#","_meta":{"#);
            serde_json::to_writer(&mut *to, ENVELOPE_KEY)?;
            to.push(b':');
            serde_json::to_writer(&mut *to, envelope)?;
            to.push(b'}');
        }
        to.push(b'}');
        Ok(())
    }

    /// Whatever its server says, the result is complete: only the daemon asks clients, by its rules.
    fn write_relayed(&self, result: &str, to: &mut Vec<u8>) -> serde_json::Result<()> {
        const OPENED: &[u8] = br#"{"resultType":"complete""#;
        let kind: ResultKind = serde_json::from_str(result)?;
        let is_as_wanted = match self.era {
            Era::Modern => kind.result_type.as_ref().is_some_and(|it| it == "complete"),
            // Only the newer era has this member.
            Era::Legacy => kind.result_type.is_none(),
        };
        let bare = match kind.result_type {
            Some(_) if !is_as_wanted => {
                let mut members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(result)?;
                members.remove("resultType");
                Cow::Owned(serde_json::to_string(&members)?)
            }
            Some(_) | None => Cow::Borrowed(result),
        };
        // A long one waits in no more memory than it needs.
        to.reserve_exact(OPENED.len() + bare.len() + LINE_END_BYTES);
        let is_marked = self.era == Era::Modern && !is_as_wanted;
        let Some(members) = bare.strip_prefix('{').filter(|_| is_marked) else {
            to.extend_from_slice(bare.as_bytes());
            return Ok(());
        };
        let is_empty = members.trim_start().starts_with('}');
        to.extend_from_slice(OPENED);
        to.extend_from_slice(if is_empty { b"" } else { b"," });
        to.extend_from_slice(members.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn relayed(era: Era, result: &str) -> Value {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        let mut line = Vec::new();
        ToolResult::relayed(era, result).write_json(&mut line).unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_server_cannot_have_its_result_be_of_another_kind() {
        for kind in [
            "",
            r#""resultType":"complete","#,
            r#""resultType":"input_required","inputRequests":{},"#,
            r#""result\u0054ype":"input_required","#,
            r#""resultType":"task","#,
            r#""resultType":null,"#,
            r#""resultType":5,"#,
        ] {
            let result = format!("{{{kind}\"content\":[]}}");
            let newer = relayed(Era::Modern, &result);
            assert_eq!(newer["resultType"], "complete", "{result}");
            assert_eq!(newer["content"], json!([]));
            assert_eq!(relayed(Era::Legacy, &result).get("resultType"), None, "{result}");
        }
        assert_eq!(relayed(Era::Modern, "{ }"), json!({"resultType": "complete"}));
    }
}
