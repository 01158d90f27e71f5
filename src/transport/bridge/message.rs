//! The parts of a line that the bridge needs: the method, id, parameters and error.

use std::borrow::Cow;

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use crate::core::code::Code;
use crate::transport::framing::{error_line, object};
use crate::wire::error::ErrorWire;

/// The JSON-RPC code of the bridge's own errors, from the range for implementations.
const UPSTREAM: ErrorCode = ErrorCode(-32010);

/// The top-level members of a message.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(default)]
    pub(super) id: Option<RequestId>,
    #[serde(default, borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) error: Option<IgnoredAny>,
}

impl<'a> Message<'a> {
    /// Reads a line. `None` when it is not a message.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        object(line).ok()
    }

    /// The id, if the message is an answer.
    pub(super) fn answered(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.method.is_none())
    }

    /// Reads the parameters. `None` when they do not match the type.
    pub(super) fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        object(self.params?.get().as_bytes()).ok()
    }
}

/// The error answer for a request that no daemon answers.
pub(super) fn failed(id: &RequestId, code: Code) -> Bytes {
    let text = format!("{}: {} {}", code.as_str(), code.meaning(), code.advice());
    error_line(Some(id), &ErrorData::new(UPSTREAM, text, Some(json!(ErrorWire::from(code)))))
}
