//! What mounted servers offer beside their tools, in protocol form: listed, read, filled in and completed.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CompleteRequestParams, CompletionInfo, GetPromptRequestParams, GetPromptResult,
    JsonObject, ReadResourceResult, Reference, ResourceContents,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::mount::naming::{exposed_address, mount_of_address};
use crate::core::policy::Standing;
use crate::gateway::{CallOutcome, Gateway};
use crate::mcp::notifications::{ChangeNotices, mounted_updates};
use crate::mcp::server::calling::Counted;
use crate::mcp::server::{LARGE_READ_ROOM, Server};
use crate::mount::error::MountError;
use crate::mount::watches::ResourceWatch;
use crate::session::command::Accepted;
use crate::surface::call::{Call, Touched};
use crate::surface::error::SurfaceError;
use crate::surface::mount_content::{ContentList, MountContent, mount_content};
use crate::surface::mounted::content_mounts;
use crate::surface::person::ClientPerson;
use crate::surface::tool::relay::MountRequest;
use crate::surface::tool::{ToolAnswer, ToolEntry};
use crate::wire::error::ErrorWire;

/// What a server answers to `completion/complete`.
#[derive(Debug, Deserialize)]
struct Completed {
    completion: CompletionInfo,
}

impl Server {
    /// The lists of all mounts that the caller sees. What is not of the protocol is left out.
    pub(super) async fn mount_list<T: DeserializeOwned>(
        &self,
        standing: &Standing,
        (list, request): (ContentList, MountRequest),
    ) -> Result<Vec<T>, ErrorData> {
        let gateway = &self.shared.gateway;
        let mounts = content_mounts(gateway.daemon(), standing, request);
        if mounts.is_empty() {
            return Ok(Vec::new());
        }
        gateway.admit(standing)?;
        let client = standing.caller.principal;
        let found = mount_content(gateway.daemon(), mounts, client, list).await;
        let listed = found.into_iter().map(|it| serde_json::from_value(it.definition));
        Ok(listed.filter_map(Result::ok).collect())
    }

    /// Reads a resource of a mount; `None` if the address is that of none.
    pub(super) async fn read_mounted(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<ReadResourceResult, ErrorData>> {
        let (mount, own) = mount_of_address(uri)?;
        let standing = self.standing(&context.meta);
        let asked = (MountRequest::Resource, own);
        let entry = self.shared.gateway.content_entry(&standing, mount, asked)?;
        Some(self.read_entry(&entry, standing, own, context).await)
    }

    async fn read_entry(
        &self,
        entry: &ToolEntry,
        standing: Standing,
        own: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let arguments = JsonObject::from_iter([("uri".to_owned(), Value::from(own))]);
        let mut result: ReadResourceResult =
            self.relayed(entry, standing, arguments, context).await?;
        let room = self.connection.outbox.room(LARGE_READ_ROOM).await;
        self.connection.outbox.attach(&context.id, room);
        let name = entry.mount().map(|it| it.mount.name().clone());
        for content in &mut result.contents {
            if let (
                Some(name),
                ResourceContents::TextResourceContents { uri, .. }
                | ResourceContents::BlobResourceContents { uri, .. },
            ) = (&name, content)
            {
                *uri = exposed_address(name, uri);
            }
        }
        Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    /// Fills in a prompt of a mount; `None` if the name is that of none.
    pub(super) async fn fill_mounted(
        &self,
        request: &GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let standing = self.standing(&context.meta);
        let (mount, prompt) = self.mounted_prompt(&standing, &request.name).await?;
        let asked = (MountRequest::Prompt, &*prompt.own);
        let entry = self.shared.gateway.content_entry(&standing, &mount, asked)?;
        let arguments = request.arguments.clone().unwrap_or_default();
        Some(self.relayed(&entry, standing, arguments, context).await)
    }

    /// Completes an argument of a prompt or template of a mount; `None` if it is that of none.
    pub(super) async fn complete_mounted(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CompletionInfo, ErrorData>> {
        let standing = self.standing(&context.meta);
        let (mount, own, of) = match &request.r#ref {
            Reference::Resource(template) => {
                let (mount, own) = mount_of_address(&template.uri)?;
                (mount.to_owned(), own.to_owned(), json!({"type": "ref/resource", "uri": own}))
            }
            Reference::Prompt(prompt) => {
                let (mount, prompt) = self.mounted_prompt(&standing, &prompt.name).await?;
                let of = json!({"type": "ref/prompt", "name": prompt.own});
                (mount, prompt.own.to_string(), of)
            }
            _ => return None,
        };
        let asked = (MountRequest::Completion, own.as_str());
        let entry = self.shared.gateway.content_entry(&standing, &mount, asked)?;
        let mut arguments = JsonObject::new();
        arguments.insert("ref".to_owned(), of);
        arguments.insert("argument".to_owned(), json!(request.argument));
        if let Some(context) = &request.context {
            arguments.insert("context".to_owned(), json!(context));
        }
        let completed = self.relayed::<Completed>(&entry, standing, arguments, context).await;
        Some(completed.map(|it| it.completion))
    }

    /// The mount of a prompt that clients know by this name, and the prompt. Names of mounts have no `_`, so that the
    /// name says which server is asked for its list.
    async fn mounted_prompt(
        &self,
        standing: &Standing,
        name: &str,
    ) -> Option<(String, MountContent)> {
        let (mount, _) = name.split_once("__")?;
        let gateway = &self.shared.gateway;
        let mut mounts = content_mounts(gateway.daemon(), standing, MountRequest::Prompt);
        mounts.retain(|it| it.name().as_str() == mount);
        let client = standing.caller.principal;
        let listed = mount_content(gateway.daemon(), mounts, client, ContentList::Prompts).await;
        let prompt = listed.into_iter().find(|it| it.exposed == name)?;
        Some((mount.to_owned(), prompt))
    }

    /// Asks a server for this on the path of all calls.
    async fn relayed<T: DeserializeOwned>(
        &self,
        entry: &ToolEntry,
        standing: Standing,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<T, ErrorData> {
        let (gateway, touched) = (&self.shared.gateway, Arc::clone(&self.touched));
        tokio::select! {
            asked = ask(gateway, entry, (standing, touched), arguments, read) => Ok(asked?),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    /// Has the server of a mount tell the changes of a resource, on the path of all calls; `None` if the address is that
    /// of no mount.
    pub(super) fn watching(
        &self,
        uri: &str,
        standing: &Standing,
    ) -> Option<impl Future<Output = Result<ChangeNotices, SurfaceError>> + Send + use<>> {
        let (mount, own) = mount_of_address(uri)?;
        let asked = (MountRequest::Watch, own);
        let entry = self.shared.gateway.content_entry(standing, mount, asked)?;
        let arguments = JsonObject::from_iter([("uri".to_owned(), Value::from(own))]);
        let (shared, touched) = (Arc::clone(&self.shared), Arc::clone(&self.touched));
        let (standing, uri) = (standing.clone(), uri.to_owned());
        Some(async move {
            let caller = (standing.clone(), touched);
            let watch = ask(&shared.gateway, &entry, caller, arguments, watch).await?;
            let daemon = Arc::clone(shared.gateway.daemon());
            Ok(mounted_updates(daemon, standing, watch, uri))
        })
    }
}

/// Makes a call for what a mount offers beside tools, and reads its answer.
async fn ask<T>(
    gateway: &Gateway,
    entry: &ToolEntry,
    (standing, touched): (Standing, Touched),
    arguments: JsonObject,
    read: fn(&ToolEntry, ToolAnswer) -> Result<T, SurfaceError>,
) -> Result<T, SurfaceError> {
    let call = Call {
        daemon: Arc::clone(gateway.daemon()),
        standing,
        accepted: Accepted::nothing(),
        target: None,
        permit: None,
        touched,
        mount_lease: None,
        creates: None,
        person: ClientPerson::Absent,
        progress: None,
    };
    let mut counted = Counted::of(gateway.calls(), Arc::clone(&entry.name));
    let answer = gateway.call(entry, call, arguments).await;
    let read = answer.and_then(|answer| read(entry, answer));
    counted.outcome = match &read {
        Ok(_) => CallOutcome::Done,
        Err(error) => CallOutcome::Failed(ErrorWire::from(error).code()),
    };
    read
}

/// The watch that a call has begun.
fn watch(_entry: &ToolEntry, answer: ToolAnswer) -> Result<ResourceWatch, SurfaceError> {
    match answer {
        ToolAnswer::Watching(watch) => Ok(watch),
        ToolAnswer::Own(_) | ToolAnswer::Relayed(_) => {
            Err(SurfaceError::Internal("a mount tells no changes".to_owned()))
        }
    }
}

/// The result of a server as the protocol has it.
fn read<T: DeserializeOwned>(entry: &ToolEntry, answer: ToolAnswer) -> Result<T, SurfaceError> {
    let (ToolAnswer::Relayed(result), Some(tool)) = (answer, entry.mount()) else {
        return Err(SurfaceError::Internal("a mount answers what is no mount's".to_owned()));
    };
    serde_json::from_str(result.get()).map_err(|error| {
        let (mount, message) =
            (tool.mount.name().clone(), format!("its result is malformed: {error}"));
        MountError::Refused { mount, code: 0, message }.into()
    })
}
