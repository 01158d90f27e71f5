//! A call of a mounted tool, on its way to the server and back.

use serde_json::value::RawValue;

use crate::core::mount::{MountMode, MountName, MountTrust};
use crate::core::policy::PermittedAct;
use crate::mount::error::MountError;
use crate::mount::json::ExactJson;
use crate::mount::protocol::{ServerParams, TOOL_CALL};
use crate::mount::registry::MountedTool;
use crate::mount::watches::ResourceWatch;
use crate::surface::argument::lease_id;
use crate::surface::call::Call;
use crate::surface::call_arguments::WrittenArguments;
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::LeasedCall;
use crate::surface::tool::addresses::{exposed, of_prompt, of_resource, of_tool};
use crate::surface::tool::untrusted::{marked, shown, visible, visible_members};
use crate::surface::tool::{ToolAccess, ToolBody, ToolEntry};

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
    fn params(self, own: &str, arguments: WrittenArguments) -> ServerParams {
        let mut params = ServerParams::default();
        match self {
            Self::Tool | Self::Prompt => {
                params.set("name", &own);
                params.set_text("arguments", arguments.into_text());
            }
            Self::Resource | Self::Watch => params.set("uri", &own),
            Self::Completion => return ServerParams::of(&arguments.into_text()),
        }
        params
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
    (request, mut arguments): (MountRequest, WrittenArguments),
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
    // Its holder learns from any call that the server has lost its state, also from one that only reads.
    let held = || call.daemon.mount_leases.of(tool.mount.name())?.held_by(&call.standing.caller);
    let under = match &leased {
        Some(leased) => Some(leased.under()),
        None if request == MountRequest::Tool => held(),
        None => None,
    };
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
        let problem = "its result is malformed".to_owned();
        MountError::Malformed { mount: tool.mount.name().clone(), problem }.into()
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
    arguments: &mut WrittenArguments,
) -> Result<Option<LeasedCall>, SurfaceError> {
    let Some(lease) = call.daemon.mount_leases.of(tool.mount.name()) else {
        let is_early = tool.mount.settings().mode == MountMode::Leased;
        let busy = || MountError::Busy { mount: tool.mount.name().clone() };
        // Its mode was just changed, and its lease comes at once.
        return if is_early { Err(busy().into()) } else { Ok(None) };
    };
    // The server is not told the id, unless it has an argument of this name itself.
    let presented = if has_own_lease_id(tool) { None } else { arguments.take(LEASE_ID) };
    let presented = match presented.filter(|it| it.as_literal() != Some("null")) {
        None => None,
        Some(ExactJson::Text(id)) => Some(lease_id(&id)?),
        Some(ExactJson::Literal(_) | ExactJson::List(_) | ExactJson::Object(_)) => {
            return Err(SurfaceError::argument(LEASE_ID, "must be a string"));
        }
    };
    let caller = &call.standing.caller;
    let begun = lease.begin_call(caller, presented, call.take_rule());
    begun.map(Some).map_err(|error| lease.refusal(caller, error))
}

/// Whether the server has an argument of this name itself.
pub fn has_own_lease_id(tool: &MountedTool) -> bool {
    let properties = tool.definition.get("inputSchema").and_then(|schema| schema.get("properties"));
    properties.is_some_and(|properties| properties.get(LEASE_ID).is_some())
}

/// An error with all characters visible of what an untrusted server said.
fn untrusted(tool: &MountedTool, mut error: MountError) -> MountError {
    if tool.mount.settings().trust == MountTrust::Trusted {
        return error;
    }
    if let MountError::Refused { message: said, .. }
    | MountError::LinkNeeded { message: said, .. }
    | MountError::Malformed { problem: said, .. }
    | MountError::Unavailable { problem: said, .. } = &mut error
    {
        *said = shown(said).into_owned();
    }
    if let MountError::LinkNeeded { data, .. } = &mut error {
        *data = visible_members(std::mem::take(data));
    }
    if let MountError::Refused { data, .. } = &mut error {
        *data = data.take().map(visible);
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
