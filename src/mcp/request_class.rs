//! Classifies requests as short or long, and answers long ones beyond the limit.
//!
//! Long requests are counted separately, so that they never block the cancel that ends them.

use rmcp::ErrorData;
use rmcp::model::{ClientRequest, ErrorCode};
use serde_json::{Value, json};

use crate::core::mount::naming::mount_of_address;
use crate::mcp::call::{CallParams, is_of_mount};
use crate::mcp::call_result::CallResult;
use crate::mcp::era::Era;

use crate::mcp::attach::ATTACH_METHOD;

/// The request that opens pushed deltas.
pub const OBSERVE_METHOD: &str = "termgate/observe";

/// The request that stops the daemon, for operators only.
pub const STOP_METHOD: &str = "termgate/stop";

/// Tools that may wait with any arguments.
const WAITING_TOOLS: [&str; 3] = ["wait_for", "run", "follow_command"];

/// The JSON-RPC code of a request beyond the limit, from the range for implementations.
pub const BUSY: ErrorCode = ErrorCode(-32000);

/// The suggested delay before a retry.
const RETRY_AFTER_MS: u64 = 1000;

/// How long a request can stay open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// It is answered as soon as it is done.
    Short,
    /// It waits for something, up to its own timeout.
    Wait,
    /// It stays open until it is cancelled or the client's input ends.
    Standing,
}

impl RequestClass {
    /// Classifies a request other than a tool call by its method.
    pub fn of(request: &ClientRequest) -> Self {
        let standing = matches!(request, ClientRequest::SubscriptionsListenRequest(_))
            || matches!(request.method(), OBSERVE_METHOD | ATTACH_METHOD);
        let waits = if let ClientRequest::ReadResourceRequest(read) = request {
            mount_of_address(&read.params.uri).is_some()
        } else if let ClientRequest::SubscribeRequest(subscribe) = request {
            mount_of_address(&subscribe.params.uri).is_some()
        } else if let ClientRequest::GetPromptRequest(get) = request {
            always_waits(&get.params.name)
        } else {
            false
        };
        match (standing, waits) {
            (true, _) => Self::Standing,
            (false, true) => Self::Wait,
            (false, false) => Self::Short,
        }
    }

    /// Classifies a tool call by its name and arguments.
    pub fn of_call(call: &CallParams) -> Self {
        let given = |name: &str| call.arguments.as_ref().and_then(|arguments| arguments.get(name));
        let waits = always_waits(&call.name)
            || given("wait_ms").is_some_and(|wait| wait.as_f64() != Some(0.0) && !wait.is_null())
            || given("until").is_some_and(|until| !until.is_null());
        if waits { Self::Wait } else { Self::Short }
    }

    /// Whether requests of this class count towards the limit of long ones.
    pub fn is_long(self) -> bool {
        match self {
            Self::Short => false,
            Self::Wait | Self::Standing => true,
        }
    }
}

/// Whether a tool may wait with any arguments. All tools of mounts may.
pub fn always_waits(tool: &str) -> bool {
    WAITING_TOOLS.contains(&tool) || is_of_mount(tool)
}

/// The answer to a call beyond the limit, as a tool result, which models read.
pub fn busy_call(call: &CallParams) -> CallResult {
    // Only requests of the 2026-07-28 era name their version.
    let named = call.meta.as_ref().and_then(|meta| meta.protocol_version());
    let era = if named.is_some() { Era::Modern } else { Era::Legacy };
    let (text, details) = busy();
    CallResult::failure(era, text, Box::new(details))
}

/// The answer to any other long request beyond the limit.
pub fn busy_request() -> ErrorData {
    let (text, details) = busy();
    ErrorData::new(BUSY, text, Some(details))
}

fn busy() -> (String, Value) {
    let message = "this connection has too many long requests open";
    let hint = "cancel one of them or wait until one ends";
    let details = json!({
        "error_code": "busy",
        "message": message,
        "hint": hint,
        "retry_after_ms": RETRY_AFTER_MS,
    });
    (format!("busy: {message}. {hint}"), details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ClientJsonRpcMessage;
    use serde_json::Value;

    fn request(method: &str, params: Value) -> ClientRequest {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let message = serde_json::from_value(message).unwrap();
        let ClientJsonRpcMessage::Request(request) = message else { panic!("no request") };
        request.request
    }

    fn call(name: &str, arguments: Value) -> CallParams {
        let params = json!({"name": name, "arguments": arguments});
        serde_json::from_str(&params.to_string()).unwrap()
    }

    #[test]
    fn observers_and_listeners_stand_until_they_are_cancelled() {
        let listen = json!({"notifications": {}, "_meta": {}});
        for standing in
            [request("termgate/observe", json!({})), request("subscriptions/listen", listen)]
        {
            assert_eq!(RequestClass::of(&standing), RequestClass::Standing, "{standing:?}");
        }
    }

    #[test]
    fn calls_that_wait_are_long() {
        for waiting in [
            call("wait_for", json!({})),
            call("follow_command", json!({"id": 1})),
            call("acquire_lease", json!({"wait_ms": 1})),
            call("send_text", json!({"text": "x", "until": {"idle_ms": 5}})),
        ] {
            assert_eq!(RequestClass::of_call(&waiting), RequestClass::Wait, "{waiting:?}");
        }
    }

    #[test]
    fn calls_that_do_not_wait_are_short() {
        for short in [
            call("acquire_lease", json!({})),
            call("acquire_lease", json!({"wait_ms": 0})),
            call("send_text", json!({"text": "x", "until": null})),
            call("read_screen", json!({})),
        ] {
            assert_eq!(RequestClass::of_call(&short), RequestClass::Short, "{short:?}");
        }
    }

    #[test]
    fn other_requests_are_short() {
        for short in [request("tools/list", json!({})), request("termgate/who", json!({}))] {
            assert_eq!(RequestClass::of(&short), RequestClass::Short, "{short:?}");
        }
    }
}
