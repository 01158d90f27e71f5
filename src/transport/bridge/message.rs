//! The parts of a line that the bridge needs, and what it adds: its own directory and environment, to `create_session`
//! calls that leave them out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::core::code::Code;
use crate::session::pty::environment::ClientEnvironment;
use crate::transport::framing::{error_line, object, to_line};
use crate::wire::error::ErrorWire;

/// The JSON-RPC code of the bridge's own errors, from the range for implementations.
const UPSTREAM: ErrorCode = ErrorCode(-32010);

/// The top-level members of a message.
#[derive(Debug, Deserialize)]
pub(super) struct BridgedMessage<'a> {
    #[serde(default)]
    pub(super) id: Option<RequestId>,
    #[serde(default, borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) error: Option<IgnoredAny>,
}

impl<'a> BridgedMessage<'a> {
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

const TOOL: &str = "create_session";

/// The default arguments of a `create_session` call. All other values of a call keep their text.
#[derive(Clone, Debug, Default)]
pub struct CreationDefaults(Members);

/// The members of an object, each with its original text.
type Members = BTreeMap<String, Box<RawValue>>;

impl CreationDefaults {
    /// The defaults of a bridge started in this directory with this environment. Values that are not UTF-8 are left
    /// out.
    pub fn of(cwd: Option<&Path>, environment: &ClientEnvironment) -> Self {
        let vars = environment.vars().iter();
        let vars: BTreeMap<&str, &str> =
            vars.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?))).collect();
        let cwd = cwd.and_then(Path::to_str).map(|cwd| ("cwd", raw(&cwd)));
        let members = cwd.into_iter().chain([("env_client", raw(&vars))]);
        Self(members.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the line with the defaults added, `None` if nothing is to add.
    pub(super) fn fill(&self, line: &[u8], message: &BridgedMessage<'_>) -> Option<Bytes> {
        #[derive(Deserialize)]
        struct CalledTool<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        if message.method.as_deref() != Some("tools/call")
            || message.params::<CalledTool<'_>>()?.name != TOOL
        {
            return None;
        }
        let mut params: Members = message.params()?;
        let mut arguments = match params.get("arguments").filter(|given| !is_null(given)) {
            Some(given) => serde_json::from_str::<Members>(given.get()).ok()?,
            None => Members::new(),
        };
        arguments.retain(|_, value| !is_null(value));
        for (name, value) in &self.0 {
            arguments.entry(name.clone()).or_insert_with(|| value.clone());
        }
        params.insert("arguments".to_owned(), raw(&arguments));
        let mut whole: Members = serde_json::from_slice(line).ok()?;
        whole.insert("params".to_owned(), raw(&params));
        to_line(&whole).ok()
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("text and what was JSON before have a form in JSON")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::{Value, json};

    use super::*;

    fn filled(message: &str) -> Option<Value> {
        let vars = [("PATH", "/bin"), ("LANG", "C.UTF-8"), ("SECRET", "x")];
        let vars = vars.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let defaults = CreationDefaults::of(Some(Path::new("/work")), &ClientEnvironment::of(vars));
        let line = message.as_bytes();
        let filled = defaults.fill(line, &BridgedMessage::read(line).unwrap())?;
        assert_eq!(filled.last(), Some(&b'\n'));
        Some(serde_json::from_slice(&filled).unwrap())
    }

    fn call(tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"k": 1}});
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
    }

    #[test]
    fn a_session_starts_where_the_bridge_was_started() {
        for left_out in [json!({}), json!({"cwd": null}), json!(null)] {
            let filled = filled(&call("create_session", left_out)).unwrap();
            let expected =
                json!({"cwd": "/work", "env_client": {"PATH": "/bin", "LANG": "C.UTF-8"}});
            assert_eq!(filled["params"]["arguments"], expected);
            assert_eq!((&filled["id"], &filled["params"]["_meta"]), (&json!(7), &json!({"k": 1})));
        }
    }

    #[test]
    fn what_the_caller_says_wins() {
        let given = json!({"cwd": "/else", "env_client": {}, "rows": 9});
        let filled = filled(&call("create_session", given.clone())).unwrap();
        assert_eq!(filled["params"]["arguments"], given);
    }

    #[test]
    fn every_other_message_is_left_alone() {
        assert_eq!(filled(&call("send_text", json!({}))), None);
        assert_eq!(filled(&call("create_session", json!([]))), None);
        assert_eq!(filled(r#"{"id":1,"method":"tools/list"}"#), None);
        assert_eq!(filled(r#"{"id":1,"method":"tools/call","params":[]}"#), None);
        assert_eq!(filled(r#"{"id":1,"result":{"name":"create_session"}}"#), None);
    }
}
