//! A call of a mounted tool, on its way to the server and back.

use rmcp::model::JsonObject;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::core::invisible::written_out;
use crate::core::mount::{MountMode, MountName, MountTrust};
use crate::core::policy::PermittedAct;
use crate::mount::error::MountError;
use crate::mount::protocol::TOOL_CALL;
use crate::mount::registry::MountedTool;
use crate::mount::watches::ResourceWatch;
use crate::surface::argument::lease_id;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::LeasedCall;
use crate::surface::tool::addresses::{exposed, of_prompt, of_resource, of_tool};
use crate::surface::tool::{ToolAccess, ToolBody, ToolEntry};

/// The member of `_meta` that marks the result of an untrusted server.
const UNTRUSTED_KEY: &str = "dev.termgate/untrusted";

/// The argument with the id of the lease of a mount.
const LEASE_ID: &str = "lease_id";

/// What a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountRequest {
    Tool,
    Resource,
    /// To tell the changes of a resource. It is allowed to those who may read it.
    Watch,
    Prompt,
    Completion,
}

impl MountRequest {
    /// The name by which rules and filters know it. It has a `/`, which no name of a tool has.
    pub fn known_as(self, mount: &MountName) -> String {
        format!("{mount}__{}", self.method())
    }

    /// The protocol's method, of a watch that of reading what it announces.
    fn method(self) -> &'static str {
        match self {
            Self::Tool => TOOL_CALL,
            Self::Resource | Self::Watch => "resources/read",
            Self::Prompt => "prompts/get",
            Self::Completion => "completion/complete",
        }
    }

    /// The parameters of the request for what the server itself calls `own`.
    fn params(self, own: &str, arguments: JsonObject) -> JsonObject {
        let params = match self {
            Self::Tool | Self::Prompt => {
                vec![("name", json!(own)), ("arguments", Value::Object(arguments))]
            }
            Self::Resource | Self::Watch => vec![("uri", json!(own))],
            Self::Completion => return arguments,
        };
        params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl ToolEntry {
    /// The server's own address of the resource of a mount that it reads, if it does.
    pub fn address(&self) -> Option<&str> {
        match &self.body {
            ToolBody::Mounted(tool, MountRequest::Resource | MountRequest::Watch) => {
                Some(&tool.tool)
            }
            ToolBody::Own { .. } | ToolBody::Mounted(..) | ToolBody::Question(_) => None,
        }
    }
}

/// Calls the tool, or asks for what else it is. Of the result of a trusted server, only addresses of resources change.
///
/// # Errors
/// [`SurfaceError::Mount`], [`SurfaceError::MountLease`] if it needs a lease that the caller does not have, or
/// [`SurfaceError::Denied`] if the right to write has ended meanwhile.
pub(super) async fn relay(
    access: ToolAccess,
    tool: &MountedTool,
    mut call: Call,
    (request, mut arguments): (MountRequest, JsonObject),
) -> Result<Box<RawValue>, SurfaceError> {
    let mut leased = None;
    if access != ToolAccess::ReadMount {
        call.take_permit()?.check(PermittedAct::CallMount, None, call.daemon.now())?;
        leased = begin_leased(tool, &call, &mut arguments)?;
    }
    // What this connection asks next need not wait for the server.
    call.accept();
    let channels = std::mem::take(&mut call.channels);
    let params = request.params(&tool.tool, arguments);
    let under = leased.as_ref().map(LeasedCall::under);
    let server = tool.mount.server_for(call.standing.caller.principal)?;
    let _place = server.place_for(&call.daemon.mount_client(&call.standing.caller))?;
    let calling = server.request(request.method(), params, channels, under);
    let ended = async {
        match under {
            Some(under) => tool.mount.fence().ended(under.epoch).await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        result = calling => result.map_err(|error| untrusted(tool, error))?,
        // This gives the call up, which cancels it at the server.
        () = ended => {
            let mount = tool.mount.name().clone();
            return Err(MountError::LeaseEnded { mount }.into());
        }
    };
    if let Some(leased) = &mut leased {
        leased.done();
    }
    checked(tool, request, result).ok_or_else(|| {
        let (code, message) = (0, "its result is malformed".to_owned());
        MountError::Refused { mount: tool.mount.name().clone(), code, message }.into()
    })
}

/// Has the server tell the changes of a resource.
///
/// # Errors
/// [`SurfaceError::Mount`].
pub(super) async fn watch(
    tool: &MountedTool,
    mut call: Call,
) -> Result<ResourceWatch, SurfaceError> {
    // As for a call.
    call.accept();
    let server = tool.mount.server_of_news(call.standing.caller.principal)?;
    let client = call.daemon.mount_client(&call.standing.caller);
    Ok(server.watch(&client, &tool.tool).await.map_err(|error| untrusted(tool, error))?)
}

/// Begins a call of a mount that has a lease.
fn begin_leased(
    tool: &MountedTool,
    call: &Call,
    arguments: &mut JsonObject,
) -> Result<Option<LeasedCall>, SurfaceError> {
    let Some(lease) = call.daemon.mount_leases.of(tool.mount.name()) else {
        let is_early = tool.mount.settings().mode == MountMode::Leased;
        let busy = || MountError::Busy { mount: tool.mount.name().clone() };
        // Its mode was just changed, and its lease comes at once.
        return if is_early { Err(busy().into()) } else { Ok(None) };
    };
    // The server is not told the id, unless it has an argument of this name itself.
    let is_servers = tool.definition["inputSchema"]["properties"].get(LEASE_ID).is_some();
    let presented = if is_servers { None } else { arguments.remove(LEASE_ID) };
    let presented = match presented {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(lease_id(&id)?),
        Some(_) => return Err(SurfaceError::argument(LEASE_ID, "must be a string")),
    };
    let caller = &call.standing.caller;
    let begun = lease.begin_call(caller, presented, call.take_rule());
    begun.map(Some).map_err(|error| lease.refusal(caller, error))
}

/// An error with all characters visible of what an untrusted server said.
fn untrusted(tool: &MountedTool, mut error: MountError) -> MountError {
    if tool.mount.settings().trust == MountTrust::Trusted {
        return error;
    }
    if let MountError::Refused { message: said, .. }
    | MountError::Unavailable { problem: said, .. } = &mut error
    {
        *said = shown(said);
    }
    error
}

/// The result for the client; `None` if it is no object.
fn checked(
    tool: &MountedTool,
    request: MountRequest,
    result: Box<RawValue>,
) -> Option<Box<RawValue>> {
    let result = match tool.mount.settings().trust {
        MountTrust::Trusted => result.get().starts_with('{').then_some(result),
        MountTrust::Untrusted | MountTrust::Sandboxed => marked(&result),
    }?;
    let find = match request {
        MountRequest::Tool => of_tool,
        MountRequest::Prompt => of_prompt,
        MountRequest::Resource => of_resource,
        MountRequest::Watch | MountRequest::Completion => return Some(result),
    };
    Some(exposed(tool.mount.name(), result, find))
}

/// A result with all characters visible and the mark of what is data and no instruction.
fn marked(result: &RawValue) -> Option<Box<RawValue>> {
    let parsed = serde_json::from_str(result.get())
        .or_else(|_| serde_json::from_str(&without_halves(result.get())));
    let Value::Object(mut members) = visible(parsed.ok()?) else {
        return None;
    };
    let meta = members.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    match meta {
        Value::Object(meta) => _ = meta.insert(UNTRUSTED_KEY.to_owned(), Value::Bool(true)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return None;
        }
    }
    to_raw_value(&members).ok()
}

/// JSON in which halves of characters that stand alone, as JavaScript makes them when it cuts a text, are U+FFFD.
fn without_halves(json: &str) -> String {
    let code = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut from, mut at) = (String::with_capacity(json.len()), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        // The character behind a backslash is none that begins another escape.
        at = json.ceil_char_boundary(escape + 2);
        match (code(escape), code(escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = escape + 12,
            (Some(0xD800..=0xDFFF), _) => {
                whole.push_str(&json[from..escape]);
                whole.push_str("\\ufffd");
                at = escape + 6;
                from = at;
            }
            (_, _) => {}
        }
    }
    whole.push_str(&json[from..]);
    whole
}

/// JSON in whose texts the characters are written out that nobody sees, or that terminals obey.
pub fn visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(&text)),
        Value::Array(values) => values.into_iter().map(visible).collect(),
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| (shown(&name), visible(value));
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// A text with the characters written out that nobody sees, or that terminals obey.
fn shown(text: &str) -> String {
    let is_obeyed = |it: char| it.is_control() && !matches!(it, '\n' | '\r' | '\t');
    written_out(text, is_obeyed).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marked_text(text: &str) -> Option<Value> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        Some(serde_json::from_str(marked(&raw)?.get()).unwrap())
    }

    #[test]
    fn a_result_of_an_untrusted_server_is_marked_and_its_own_meta_stays() {
        let marked = marked_text(r#"{"content":[],"_meta":{"a":1}}"#).unwrap();
        assert_eq!(marked["_meta"], serde_json::json!({"a": 1, "dev.termgate/untrusted": true}));
        assert_eq!(
            marked_text(r#"{"_meta":{"dev.termgate/untrusted":false}}"#).unwrap()["_meta"]
                [UNTRUSTED_KEY],
            true
        );
        assert_eq!(marked_text("[]"), None);
        assert_eq!(marked_text(r#"{"_meta":1}"#), None);
    }

    #[test]
    fn half_a_character_does_not_lose_a_result() {
        for (said, told) in [
            (r"a\ud800", "a\u{fffd}"),
            (r"\ud83d\ude00\ude00\ud83d", "\u{1f600}\u{fffd}\u{fffd}"),
            (r"\\ud800 \ud800\n\ud83d\u0041", "\\ud800 \u{fffd}\n\u{fffd}A"),
            (r"\ud83d\ud83d\ude00ä\ud83d", "\u{fffd}\u{1f600}ä\u{fffd}"),
        ] {
            let marked = marked_text(&format!(r#"{{"text":"{said}"}}"#)).unwrap();
            assert_eq!(marked["text"], told, "{said}");
        }
        assert_eq!(marked_text(r#"{"a":1e400}"#), None);
    }

    #[test]
    fn hidden_characters_are_shown_wherever_they_stand() {
        let hidden =
            json!({"a\u{200b}": ["x\u{e0041}y\r\n", {"b": "\u{202e}\u{1b}[2m", "n": 1.5}]});
        let shown =
            json!({"a\\u{200b}": ["x\\u{e0041}y\r\n", {"b": "\\u{202e}\\u{1b}[2m", "n": 1.5}]});
        assert_eq!(visible(hidden), shown);
    }
}
