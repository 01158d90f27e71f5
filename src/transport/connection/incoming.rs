//! What a line of a client is: a tool call, which is dealt with here, or a message for the library.
//!
//! It must not know what is in flight. A call is recognised by its head alone and its parameters are
//! read once, without the detour of the library's types over all messages there are.

use std::borrow::Cow;

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::call::{CALL_METHOD, CallParams};
use crate::transport::framing::{self, Refusal};

/// A message of a client.
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

/// Reads a line, which may have so many structural tokens.
///
/// # Errors
///
/// What to answer when the line is no message, or one that asks for too much.
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
