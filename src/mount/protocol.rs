//! The messages between the daemon and a server: JSON-RPC, one message per line.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The method that calls a tool.
pub const TOOL_CALL: &str = "tools/call";

/// JSON-RPC's code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// An error that a server answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerRefusal {
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

/// What a server says.
#[derive(Debug)]
pub enum ServerMessage {
    Answer { id: u64, result: Result<Box<RawValue>, ServerRefusal> },
    Asks { id: Value, method: String },
    Tells { method: String, params: Option<Value> },
}

#[derive(Debug, Deserialize)]
struct AnyMessage {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
    result: Option<Box<RawValue>>,
    error: Option<ServerRefusal>,
}

/// Reads a line; `None` if it is no message.
pub fn parse(line: &[u8]) -> Option<ServerMessage> {
    let AnyMessage { id, method, params, result, error } = serde_json::from_slice(line).ok()?;
    match (method, id) {
        (Some(method), Some(id)) => Some(ServerMessage::Asks { id, method }),
        (Some(method), None) => Some(ServerMessage::Tells { method, params }),
        (None, id) => {
            let result = match (result, error) {
                (_, Some(error)) => Err(error),
                (Some(result), None) => Ok(result),
                (None, None) => return None,
            };
            Some(ServerMessage::Answer { id: id?.as_u64()?, result })
        }
    }
}

/// A request as a line.
pub fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": json!(params)}))
}

/// A notification as a line.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// The answer to what a server asks: it may ask whether the daemon is there, and nothing else.
pub fn answer_to(id: &Value, method: &str) -> Vec<u8> {
    if method == "ping" {
        return line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": format!("unknown method {method}")});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_keeps_its_bytes() {
        let parsed = parse(br#"{"jsonrpc":"2.0","id":7,"result":{"b":1.0,"a": 1e2 }}"#);
        let Some(ServerMessage::Answer { id: 7, result: Ok(result) }) = parsed else {
            panic!("{parsed:?}")
        };
        assert_eq!(result.get(), r#"{"b":1.0,"a": 1e2 }"#);
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        for line in ["", "hello", "[]", "{}", r#"{"id":1}"#, r#"{"id":"x","result":{}}"#, "\u{7f}"]
        {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn a_server_may_ask_whether_somebody_is_there_and_nothing_else() {
        let pong: Value = serde_json::from_slice(&answer_to(&json!("x"), "ping")).unwrap();
        assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
        let refused = answer_to(&json!(1), "sampling/createMessage");
        let refused: Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!(refused["error"]["code"], METHOD_NOT_FOUND);
    }
}
