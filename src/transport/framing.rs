//! Messages as lines of JSON: checks, parsing, and the error answers.
//!
//! Any input gets a JSON-RPC error of bounded cost and leaves the connection open.

pub mod lines;

use std::borrow::Cow;
use std::mem;

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::{DeserializeOwned, Error, IgnoredAny, Unexpected};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::core::code::Code;
use crate::mcp::call::CALL_METHOD;
use crate::mcp::call_result::{CallAnswer, CallResult};
use crate::mcp::client_requests::ID_PREFIX;
use crate::mcp::request_class::BUSY;
use crate::mount::asking::{AskAnswer, AskRefusal};
use crate::mount::json::reading::read_whole;
use crate::transport::limits::{DEPTH_MAX, LINE_SHORT};
use crate::wire::error::ErrorWire;

/// The request that shows a token.
pub const AUTHENTICATE_METHOD: &str = "termgate/authenticate";

/// Most lines are shorter, and need no second allocation.
const LINE_BYTES: usize = 2 * 1024;

/// Why a message is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MessageRefusal {
    #[error("message too large: the limit is {}. Nothing was done.", size(*bytes_max))]
    TooLarge { id: Option<RequestId>, bytes_max: usize },
    #[error(
        "message too complex: it may have {tokens_max} braces, brackets, commas and colons, and \
         {DEPTH_MAX} levels, and nothing was done; send less at once"
    )]
    TooComplex { id: Option<RequestId>, tokens_max: usize },
    /// Newer lines took the memory of this incomplete one.
    #[error(
        "message dropped before it was whole: other messages of your user that are coming in need \
         the memory, and nothing was done; send it again"
    )]
    GaveWay(Option<RequestId>),
    #[error("parse error")]
    NotJson,
    /// The line is JSON, but not a message.
    #[error("invalid request")]
    NotAMessage(Option<RequestId>),
    /// A tool call has invalid parameters.
    #[error("invalid params for {CALL_METHOD}: {problem}")]
    BadParams { id: RequestId, problem: String },
    /// A token is shown too late, or on a transport that takes none.
    #[error(
        "{AUTHENTICATE_METHOD} is taken as the first line at a socket, of {LINE_SHORT} bytes at most, \
         and nowhere else"
    )]
    NotFirst(RequestId),
    /// Another request with the same id is in flight.
    #[error("request id {0} is in flight already")]
    IdInUse(RequestId),
}

impl MessageRefusal {
    /// The structured details of errors that have a termgate code.
    fn details(&self) -> Option<Value> {
        let code = match self {
            Self::TooLarge { .. } | Self::TooComplex { .. } => Code::TooLarge,
            Self::GaveWay(_) => Code::Busy,
            Self::NotJson
            | Self::NotAMessage(_)
            | Self::BadParams { .. }
            | Self::NotFirst(_)
            | Self::IdInUse(_) => return None,
        };
        Some(json!(ErrorWire::from(code)))
    }

    /// The id of the message.
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::TooLarge { id, .. }
            | Self::TooComplex { id, .. }
            | Self::GaveWay(id)
            | Self::NotAMessage(id) => id.as_ref(),
            Self::BadParams { id, .. } | Self::NotFirst(id) | Self::IdInUse(id) => Some(id),
            Self::NotJson => None,
        }
    }

    /// The JSON-RPC error line for the client.
    pub fn to_line(&self) -> Bytes {
        let code = match self {
            Self::NotJson => ErrorCode::PARSE_ERROR,
            Self::TooLarge { .. }
            | Self::TooComplex { .. }
            | Self::NotAMessage(_)
            | Self::IdInUse(_)
            | Self::NotFirst(_) => ErrorCode::INVALID_REQUEST,
            Self::GaveWay(_) => BUSY,
            Self::BadParams { .. } => ErrorCode::INVALID_PARAMS,
        };
        error_line(self.id(), &ErrorData::new(code, self.to_string(), self.details()))
    }
}

/// The line of an error. Unlike the library, it writes a missing id as `null`.
pub fn error_line<E: Serialize>(id: Option<&RequestId>, error: &E) -> Bytes {
    #[derive(Serialize)]
    struct ErrorMessage<'a, E> {
        jsonrpc: &'a str,
        id: Option<&'a RequestId>,
        error: &'a E,
    }
    to_line(&ErrorMessage { jsonrpc: "2.0", id, error })
        .expect("an error has nothing that JSON cannot say")
}

/// The line that answers a request with a result or an error.
pub fn answer_line<T: Serialize>(id: &RequestId, answer: Result<&T, &ErrorData>) -> Bytes {
    #[derive(Serialize)]
    struct ResultMessage<'a, T> {
        jsonrpc: &'a str,
        id: &'a RequestId,
        result: &'a T,
    }
    match answer {
        Ok(result) => message_line(&ResultMessage { jsonrpc: "2.0", id, result }, Some(id)),
        Err(error) => error_line(Some(id), error),
    }
}

/// The line that answers a call, or another request that a mounted server answers. A connection keeps the buffer that it
/// is written into.
pub fn call_line(buffer: &mut Vec<u8>, id: &RequestId, answer: &CallAnswer) -> Bytes {
    match answer {
        Ok(result) => result_line(buffer, id, result),
        Err(error) => error_line(Some(id), error),
    }
}

fn result_line(buffer: &mut Vec<u8>, id: &RequestId, result: &CallResult) -> Bytes {
    /// A connection keeps no larger buffer.
    const KEPT_MAX: usize = 16 * 1024;
    buffer.reserve(LINE_BYTES);
    let line = match write_result(buffer, id, result) {
        Ok(()) if buffer.len() > KEPT_MAX => mem::take(buffer).into(),
        Ok(()) => Bytes::copy_from_slice(buffer),
        Err(_) => without_json_form(Some(id)),
    };
    buffer.clear();
    line
}

/// Writes pieces into memory of a known kind: behind `dyn Write`, each piece costs a call and a loop.
fn write_result(line: &mut Vec<u8>, id: &RequestId, result: &CallResult) -> serde_json::Result<()> {
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    serde_json::to_writer(&mut *line, id)?;
    line.extend_from_slice(br#","result":"#);
    result.write_json(line)?;
    line.extend_from_slice(b"}\n");
    Ok(())
}

/// The line of a message. `id` is the request that it answers, if any.
pub fn message_line(message: &impl Serialize, id: Option<&RequestId>) -> Bytes {
    to_line(message).unwrap_or_else(|_| without_json_form(id))
}

fn without_json_form(id: Option<&RequestId>) -> Bytes {
    error_line(id, &ErrorData::internal_error("the answer has no JSON form", None))
}

/// Writes a message as one line, including the line end.
pub fn to_line<M: Serialize>(message: &M) -> serde_json::Result<Bytes> {
    let mut line = Vec::with_capacity(LINE_BYTES);
    serde_json::to_writer(&mut line, message)?;
    line.push(b'\n');
    Ok(line.into())
}

/// Checks that a line has at most `tokens_max` structural tokens.
pub fn check(line: &[u8], tokens_max: usize) -> Result<(), MessageRefusal> {
    if is_excessive(line, tokens_max) {
        return Err(MessageRefusal::TooComplex {
            id: find_id(line).unwrap_or_default(),
            tokens_max,
        });
    }
    Ok(())
}

/// A request whose parameters are not parsed yet.
#[derive(Debug, Deserialize)]
pub struct RawRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    pub id: RequestId,
    #[serde(default, borrow)]
    pub params: Option<&'a RawValue>,
}

impl<'a> RawRequest<'a> {
    /// Reads a checked line. `None` unless it is a request.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let request: Self = object(line).ok()?;
        (request.jsonrpc == "2.0").then_some(request)
    }

    /// Parses the parameters.
    ///
    /// # Errors
    /// They do not match the type.
    pub fn params<T: Deserialize<'a>>(&self) -> serde_json::Result<T> {
        object(self.params.map_or("null", RawValue::get).as_bytes())
    }
}

/// An answer of a client to a request of the daemon.
#[derive(Debug)]
pub struct ClientAnswer {
    pub id: String,
    /// A result keeps its bytes.
    pub answer: AskAnswer,
}

impl ClientAnswer {
    /// Reads a checked line. `None` unless it is an answer to a request of the daemon itself.
    pub fn read(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct AnswerMessage<'a> {
            #[serde(borrow)]
            jsonrpc: Cow<'a, str>,
            #[serde(borrow)]
            id: Cow<'a, str>,
            method: Option<IgnoredAny>,
            result: Option<Box<RawValue>>,
            error: Option<Box<RawValue>>,
        }
        let AnswerMessage { jsonrpc, id, method, result, error } = object(line).ok()?;
        if jsonrpc != "2.0" || method.is_some() || !id.starts_with(ID_PREFIX) {
            return None;
        }
        let malformed = || AskRefusal::refused("the client's answer is malformed");
        let answer = match (result, error) {
            (Some(result), None) if is_object(result.get().as_bytes()) => Ok(result),
            (None, Some(error)) => Err(read_whole(error.get()).unwrap_or_else(|_| malformed())),
            // Whoever asked would wait for another one.
            (_, _) => Err(malformed()),
        };
        Some(Self { id: id.into_owned(), answer })
    }
}

/// Parses a message from a checked line.
pub fn parse<M: DeserializeOwned + Serialize>(line: &[u8]) -> Result<M, MessageRefusal> {
    #[derive(Deserialize)]
    struct OnlyParams<'a> {
        #[serde(default, borrow)]
        params: Option<&'a RawValue>,
    }
    if let Ok(OnlyParams { params: Some(params) }) = object::<OnlyParams<'_>>(line)
        && !is_object(params.get().as_bytes())
    {
        return Err(MessageRefusal::NotAMessage(find_id(line).unwrap_or_default()));
    }
    let message = object(line).map_err(|error| match find_id(line) {
        Ok(id) if error.is_data() => MessageRefusal::NotAMessage(id),
        Ok(_) | Err(_) => MessageRefusal::NotJson,
    })?;
    if line.contains(&b'[') && takes_array_for_object(line, &message) {
        return Err(MessageRefusal::NotAMessage(find_id(line).unwrap_or_default()));
    }
    Ok(message)
}

/// Whether an array in the line was parsed as an object. The library's types accept an array of their members in
/// order. Serializing the message shows it.
fn takes_array_for_object(line: &[u8], message: &impl Serialize) -> bool {
    match (serde_json::from_slice(line), serde_json::to_value(message)) {
        (Ok(given), Ok(read)) => has_become_object(&given, &read),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn has_become_object(given: &Value, read: &Value) -> bool {
    if let (Some(given), Some(read)) = (given.as_array(), read.as_array()) {
        return given.iter().zip(read).any(|(given, read)| has_become_object(given, read));
    }
    if let (Some(given), Some(read)) = (given.as_object(), read.as_object()) {
        let mut both = given.iter().filter_map(|(name, given)| Some((given, read.get(name)?)));
        return both.any(|(given, read)| has_become_object(given, read));
    }
    given.is_array() && read.is_object()
}

/// Parses a JSON object. Rejects an array, which serde would accept as the members in order.
pub fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    if is_object(text) {
        return serde_json::from_slice(text);
    }
    let _: &RawValue = serde_json::from_slice(text)?;
    Err(serde_json::Error::invalid_type(Unexpected::Other("no object"), &"an object"))
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'{')
}

/// Finds the id in a line of JSON without building other values.
///
/// # Errors
/// The line is not JSON.
pub fn find_id(line: &[u8]) -> serde_json::Result<Option<RequestId>> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(default, borrow)]
        id: Option<&'a RawValue>,
    }
    match object::<OnlyId<'_>>(line) {
        Ok(OnlyId { id }) => Ok(id.and_then(|id| serde_json::from_str(id.get()).ok())),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a line has too many structural tokens or levels: a megabyte of commas needs a hundred times as much memory
/// once parsed.
///
/// Characters inside strings do not count. Invalid JSON is counted, too.
fn is_excessive(line: &[u8], tokens_max: usize) -> bool {
    let mut bytes = line.iter();
    let (mut tokens, mut depth) = (0usize, 0usize);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                tokens += 1;
                depth += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' => tokens += 1,
            _ => {}
        }
        if tokens > tokens_max || depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// A number of bytes for people, exact.
fn size(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    match (bytes % MIB, bytes % KIB) {
        (0, _) => format!("{} MiB", bytes / MIB),
        (_, 0) => format!("{} KiB", bytes / KIB),
        (_, _) => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests;
