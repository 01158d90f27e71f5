//! Sorts a client's lines into tool calls, which the connection runs, and messages for the library.
//!
//! Parsing the head first avoids the library's types for tool calls.

use std::borrow::Cow;

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::call::{CALL_METHOD, CallParams};
use crate::transport::framing::{self, Refusal};

#[derive(Debug)]
pub(super) enum Incoming {
    Call { id: RequestId, params: CallParams },
    Other(Box<ClientJsonRpcMessage>),
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Reads a line of at most `tokens_max` structural tokens.
///
/// # Errors
///
/// Returns the refusal to send when the line is not a valid message.
pub(super) fn read(line: &[u8], tokens_max: usize) -> Result<Incoming, Refusal> {
    framing::check(line, tokens_max)?;
    match framing::object(line) {
        Ok(Head { jsonrpc, id, method, params }) if jsonrpc == "2.0" && method == CALL_METHOD => {
            let params = params.map(|params| framing::object(params.get().as_bytes()));
            match params {
                Some(Ok(params)) => Ok(Incoming::Call { id, params }),
                Some(Err(_)) | None => Err(Refusal::BadParams { id, method: method.into_owned() }),
            }
        }
        Ok(_) | Err(_) => framing::parse(line).map(Box::new).map(Incoming::Other),
    }
}
