//! Requests of the protocol whose parameters are not of its form. The library takes them for requests of others.

use rmcp::ErrorData;
#[allow(deprecated)] // Clients of the older era still use them.
use rmcp::model::{
    CompleteRequestParams, GetPromptRequestParams, InitializeRequestParams, PaginatedRequestParams,
    ReadResourceRequestParams, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionsListenRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::mcp::error::said;
use crate::surface::argument::read;

/// The error of a request of the protocol with these parameters; `None` if it has no such method.
#[allow(deprecated)] // As above.
pub(super) fn malformed(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let problem = match method {
        "initialize" => problem::<InitializeRequestParams>,
        "completion/complete" => problem::<CompleteRequestParams>,
        "logging/setLevel" => problem::<SetLevelRequestParams>,
        "prompts/get" => problem::<GetPromptRequestParams>,
        "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list" => {
            problem::<PaginatedRequestParams>
        }
        "resources/read" => problem::<ReadResourceRequestParams>,
        "resources/subscribe" => problem::<SubscribeRequestParams>,
        "resources/unsubscribe" => problem::<UnsubscribeRequestParams>,
        "subscriptions/listen" => problem::<SubscriptionsListenRequestParams>,
        _ => return None,
    };
    let problem = problem(params.cloned().unwrap_or_default());
    let message = said(format!("invalid params for {method}: {problem}"));
    Some(ErrorData::invalid_params(message, None))
}

/// Why a value is not of this type.
fn problem<T: DeserializeOwned>(params: Value) -> String {
    let problem = match params {
        // It names the parameter.
        Value::Object(params) => read::<T>(params).err().map(|error| error.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            serde_json::from_value::<T>(params).err().map(|error| error.to_string())
        }
    };
    problem.unwrap_or_else(|| "they are of another form".to_owned())
}
