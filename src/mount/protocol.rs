//! The messages between the daemon and a server: JSON-RPC, one message per line.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::mount::asking::{AskAnswer, AskRefusal};
use crate::mount::json::reading::RepeatedNames;
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::long_message::LongMessage;

/// The method that calls a tool.
pub const TOOL_CALL: &str = "tools/call";

/// An error that a server answers. What is no error of the protocol is one nevertheless: it ends the request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Box<RawValue>")]
pub struct ServerRefusal {
    pub code: Option<i64>,
    pub message: String,
    pub data: Option<ExactJson>,
}

impl ServerRefusal {
    /// The answer is not of the protocol.
    pub fn malformed(problem: impl Into<String>) -> Self {
        Self { code: None, message: problem.into(), data: None }
    }
}

impl From<Box<RawValue>> for ServerRefusal {
    fn from(error: Box<RawValue>) -> Self {
        let mut read = match ExactJson::read(&error, RepeatedNames::LeftOut) {
            Ok(read) => read,
            Err(fault) => return Self::malformed(format!("its error cannot be read: {fault}")),
        };
        let code = read.get("code").and_then(ExactJson::as_literal);
        // Libraries of clients read no larger ones.
        let code = code.and_then(|code| code.parse::<i32>().ok()).map(i64::from);
        let message = read.get("message").and_then(ExactJson::as_text).map(str::to_owned);
        let message = message.unwrap_or_else(|| read.to_string());
        let data = match &mut read {
            ExactJson::Object(members) => code.and_then(|_| members.remove("data")),
            ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_) => None,
        };
        Self { code, message, data }
    }
}

/// What a server says.
#[derive(Debug)]
pub enum ServerMessage {
    Answer { id: u64, result: Result<Box<RawValue>, ServerRefusal> },
    Asks(ServerRequest),
    Tells { method: String, params: Option<ExactJson> },
}

/// A request of a server.
#[derive(Debug)]
pub struct ServerRequest {
    pub id: ExactJson,
    pub method: String,
    /// Empty if they are no object.
    pub params: ExactObject,
}

#[derive(Debug, Deserialize)]
struct AnyMessage {
    id: Option<ExactJson>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<ServerRefusal>,
}

/// Reads a line; `None` if it is no message.
pub fn parse(line: &[u8]) -> Option<ServerMessage> {
    let AnyMessage { id, method, params, result, error } = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => return unreadable(line, &error),
    };
    match (method, id) {
        (Some(method), Some(id)) => {
            let params = params.map(|it| ExactJson::read(&it, RepeatedNames::LeftOut)).transpose();
            let params = params.ok()?.and_then(|it| it.try_into().ok()).unwrap_or_default();
            Some(ServerMessage::Asks(ServerRequest { id, method, params }))
        }
        (Some(method), None) => {
            let params = params.and_then(|it| ExactJson::read(&it, RepeatedNames::LeftOut).ok());
            Some(ServerMessage::Tells { method, params })
        }
        (None, id) => {
            let result = match (result, error) {
                (_, Some(error)) => Err(error),
                (Some(result), None) => Ok(result),
                (None, None) => {
                    Err(ServerRefusal::malformed("its answer has neither a result nor an error"))
                }
            };
            Some(ServerMessage::Answer { id: id?.as_literal()?.parse().ok()?, result })
        }
    }
}

/// An answer that is no JSON, such as one with `NaN` or in another encoding. Its request has no other.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Option<ServerMessage> {
    let mut message = LongMessage::default();
    message.feed(line);
    let id = message.answered()?;
    let problem = match str::from_utf8(line) {
        Ok(_) => format!("its answer is no JSON: {error}"),
        Err(error) => format!("its answer is not UTF-8: {error}"),
    };
    Some(ServerMessage::Answer { id, result: Err(ServerRefusal::malformed(problem)) })
}

/// The parameters of a request to a server, each as JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerParams(BTreeMap<String, Box<RawValue>>);

impl ServerParams {
    /// The members of an object that is known to be one.
    pub fn of(object: &RawValue) -> Self {
        Self(serde_json::from_str(object.get()).unwrap_or_default())
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|it| &**it)
    }

    /// The text of this parameter, if it is one.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Sets one to a value of ours.
    pub fn set(&mut self, name: &str, value: &impl Serialize) {
        self.set_text(name, to_raw_value(value).unwrap_or_default());
    }

    /// Sets one to what is written, which has no line ends.
    pub fn set_text(&mut self, name: &str, json: Box<RawValue>) {
        self.0.insert(name.to_owned(), json);
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A request as a line.
pub fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct RequestLine<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    let request = RequestLine { jsonrpc: "2.0", id, method, params };
    let mut line = serde_json::to_vec(&request).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A notification as a line.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// The answer of the daemon itself, which only says that it is there.
pub fn answer_to(id: &ExactJson, method: &str) -> Vec<u8> {
    if method == "ping" {
        return answer(id, &to_raw_value(&json!({})).map_err(|_| AskRefusal::refused("no pong")));
    }
    answer(id, &Err(AskRefusal::not_offered(format!("unknown method {method}"))))
}

/// The answer of a client to the request with this id, which is written as JSON. A result keeps its bytes.
pub fn answer(id: impl Display, answer: &AskAnswer) -> Vec<u8> {
    let (member, value) = match answer {
        Ok(result) => ("result", result.get().replace(['\n', '\r'], " ")),
        Err(refusal) => ("error", ExactJson::of(refusal).to_string()),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}\n").into_bytes()
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
        for line in ["", "hello", "[]", "{}", r#"{"id":"x","result":{}}"#, "\u{7f}"] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn whatever_answers_a_request_ends_it() {
        for (members, code, message) in [
            (r#""error":{"code":-1,"message":"no"}"#, Some(-1), "no"),
            (r#""error":{"code":"-1","message":"no"}"#, None, "no"),
            (r#""error":{"code":1.0}"#, None, r#"{"code":1.0}"#),
            (r#""error":"no""#, None, r#""no""#),
            (r#""result":null"#, None, "its answer has neither a result nor an error"),
            (r#""more":1"#, None, "its answer has neither a result nor an error"),
        ] {
            let parsed = parse(format!(r#"{{"jsonrpc":"2.0","id":7,{members}}}"#).as_bytes());
            let Some(ServerMessage::Answer { id: 7, result: Err(refusal) }) = parsed else {
                panic!("{members}: {parsed:?}")
            };
            assert_eq!((refusal.code, refusal.message.as_str()), (code, message), "{members}");
        }
    }

    #[test]
    fn an_answer_that_is_no_json_ends_its_request() {
        for (line, problem) in [
            (&b"{\"id\":7,\"result\":{\"a\":\"\xe9\"}}"[..], "its answer is not UTF-8"),
            (br#"{"id":7,"result":{"a":NaN}}"#, "its answer is no JSON"),
            (br#"{"id":7,"result":{"id":8}"#, "its answer is no JSON"),
        ] {
            let parsed = parse(line);
            let message = match parsed {
                Some(ServerMessage::Answer { id: 7, result: Err(refusal) }) => refusal.message,
                other => format!("{other:?}"),
            };
            assert!(message.starts_with(problem), "{message}");
        }
        assert!(parse(b"{\"id\":7,\"method\":\"\xe9\"}").is_none());
    }

    #[test]
    fn half_a_character_does_not_lose_a_message() {
        let refused = parse(br#"{"id":7,"error":{"code":-1,"message":"no \ud800","data":1e400}}"#);
        let Some(ServerMessage::Answer { id: 7, result: Err(refusal) }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((refusal.code, refusal.message.as_str()), (Some(-1), "no \u{fffd}"));
        assert_eq!(refusal.data.unwrap().to_string(), "1e400");
        let asks = parse(br#"{"id":"a","method":"x","params":{"z":1e2,"a":"\udc00"}}"#);
        let Some(ServerMessage::Asks(request)) = asks else { panic!("{asks:?}") };
        assert_eq!(request.params.to_string(), "{\"z\":1e2,\"a\":\"\u{fffd}\"}");
        let tells = parse(br#"{"method":"x","params":{"a":"\udc00"}}"#);
        let Some(ServerMessage::Tells { params: Some(params), .. }) = tells else {
            panic!("{tells:?}")
        };
        assert_eq!(params.to_string(), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn the_daemon_itself_answers_only_that_it_is_there() {
        let pong: Value = serde_json::from_slice(&answer_to(&ExactJson::of(&"x"), "ping")).unwrap();
        assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
        let refused: Value =
            serde_json::from_slice(&answer_to(&ExactJson::of(&1), "tasks/list")).unwrap();
        assert_eq!(refused["error"]["code"], -32601);
    }

    #[test]
    fn an_answer_of_a_client_keeps_its_bytes_on_one_line() {
        let said = RawValue::from_string("{\"a\":\n 1.0}".to_owned()).unwrap();
        let line = answer(json!("x"), &Ok(said));
        assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"a\":  1.0}}\n");
    }
}
