//! What mounted servers offer beside their tools, in protocol form: listed, read, filled in and completed.

use std::sync::Arc;

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::core::mount::naming::mount_of_address;
use crate::core::policy::Standing;
use crate::gateway::CallOutcome;
use crate::mcp::call::{CallHandler, InputResponses, WrittenParams};
use crate::mcp::call_result::{CallAnswer, CallError, CallResult};
use crate::mcp::elicitation::Returned;
use crate::mcp::era::Era;
use crate::mcp::error::mounts;
use crate::mcp::notifications::{ChangeNotices, mounted_updates};
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::server::Server;
use crate::mcp::server::counted::Counted;
use crate::mcp::server::mounted_call::{MountedAnswer, MountedEnd, MountedRequest};
use crate::mcp::server::request_meta::{approval_wait, meta_for_server};
use crate::mcp::shared::ServerShared;
use crate::mount::protocol::ServerParams;
use crate::mount::watches::ResourceWatch;
use crate::surface::call::{Call, Touched};
use crate::surface::call_arguments::{CallArguments, WrittenArguments};
use crate::surface::error::SurfaceError;
use crate::surface::mount_content::{ContentList, MountContent, mount_content};
use crate::surface::mounted::content_mounts;
use crate::surface::person::ClientPerson;
use crate::surface::tool::relay::MountRequest;
use crate::surface::tool::{ToolAnswer, ToolEntry};
use crate::wire::error::ErrorWire;

/// What of a request a server gets as its client wrote it.
#[derive(Debug, Default, Deserialize)]
struct WrittenRequest {
    arguments: Option<Box<RawValue>>,
    argument: Option<Box<RawValue>>,
    context: Option<Box<RawValue>>,
    #[serde(rename = "inputResponses")]
    answers: Option<InputResponses>,
}

impl WrittenRequest {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let params = context.extensions.get::<WrittenParams>();
        params.and_then(|it| serde_json::from_str(it.0.get()).ok()).unwrap_or_default()
    }
}

/// The arguments with which rules see that this address is read.
fn of_address(own: &str) -> CallArguments {
    CallArguments::Written(WrittenArguments::of(&json!({"uri": own})))
}

impl Server {
    /// Reads a resource of a mount; `None` if the address is that of none.
    ///
    /// The result stands for that of the server, which answers the request; so it is with all that follows here.
    pub(super) async fn read_mounted(
        &self,
        request: &ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<ReadResourceResponse, ErrorData>> {
        let (mount, own) = mount_of_address(&request.uri)?;
        let standing = self.standing(&context.meta);
        let asked = (MountRequest::Resource, own);
        let entry = self.shared.gateway.content_entry(&standing, mount, asked)?;
        let WrittenRequest { answers, .. } = WrittenRequest::of(context);
        let returned = Returned { answers, state: request.request_state.clone() };
        let arguments = of_address(own);
        let read = self.relayed(entry, (standing, arguments), returned, context).await;
        // Whether it may be read can change at any time.
        let answered = read.map(|it| self.answer(context, it.map(CallResult::uncached)));
        Some(answered.map(|()| ReadResourceResult::new(Vec::new()).into()))
    }

    /// Fills in a prompt of a mount; `None` if the name is that of none.
    pub(super) async fn fill_mounted(
        &self,
        request: &GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<GetPromptResponse, ErrorData>> {
        let standing = self.standing(&context.meta);
        let (mount, prompt) = self.mounted_prompt(&standing, &request.name).await?;
        let asked = (MountRequest::Prompt, &*prompt.own);
        let entry = self.shared.gateway.content_entry(&standing, &mount, asked)?;
        let WrittenRequest { arguments, answers, .. } = WrittenRequest::of(context);
        let arguments = arguments.map(CallArguments::from).unwrap_or_default();
        let returned = Returned { answers, state: request.request_state.clone() };
        let filled = self.relayed(entry, (standing, arguments), returned, context).await;
        let answered = filled.map(|it| self.answer(context, it));
        Some(answered.map(|()| GetPromptResult::new(Vec::new()).into()))
    }

    /// Completes an argument of a prompt or template of a mount; `None` if it is that of none.
    pub(super) async fn complete_mounted(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CompleteResult, ErrorData>> {
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
        let WrittenRequest { argument, context: more, .. } = WrittenRequest::of(context);
        let mut params = ServerParams::default();
        params.set("ref", &of);
        for (name, written) in [("argument", argument), ("context", more)] {
            if let Some(written) = written {
                params.set_text(name, written);
            }
        }
        let arguments = to_raw_value(&params).map(CallArguments::from).unwrap_or_default();
        let returned = Returned::default();
        let completed = self.relayed(entry, (standing, arguments), returned, context).await;
        let answered = completed.map(|it| self.answer(context, it));
        Some(answered.map(|()| CompleteResult::new(CompletionInfo::default())))
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
        let listed =
            mount_content(gateway.daemon(), mounts, &standing.caller, ContentList::Prompts).await;
        let prompt = listed.into_iter().find(|it| it.exposed == name)?;
        Some((mount.to_owned(), prompt))
    }

    /// Asks a server for this on the path of all calls.
    async fn relayed(
        &self,
        entry: ToolEntry,
        (standing, arguments): (Standing, CallArguments),
        returned: Returned,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallAnswer, ErrorData> {
        let no_mount = || ErrorData::internal_error("a mount offers what is no mount's", None);
        let tool = entry.mount().cloned().ok_or_else(no_mount)?;
        let era = Era::of(&self.revision(&context.meta)?);
        let arguments = CallArguments::Written(arguments.for_server()?);
        let request = MountedRequest {
            // Clients complete while a person types.
            may_ask: !entry.only_reads,
            entry: Arc::new(entry),
            tool,
            standing,
            arguments,
            era,
            capabilities: self.declared(era, &context.meta),
            person: ClientPerson::Absent,
            returned,
            approval_wait: approval_wait(&context.meta),
            progress: None,
            log: self.log_level(era, &context.meta),
            meta: meta_for_server(&context.meta),
            turn: None,
        };
        let end = tokio::select! {
            end = self.call_mount(request) => end,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
        };
        match end {
            MountedEnd::Links(error) => Ok(Err(CallError::Relayed(error))),
            MountedEnd::Asks { questions, state } => {
                Ok(Ok(CallResult::asking(era, &questions, state)))
            }
            MountedEnd::Ended(answer, mut counted) => {
                let relayed = answer.and_then(|MountedAnswer { answer, space }| match answer {
                    ToolAnswer::Relayed(result) => Ok((result, space)),
                    ToolAnswer::Own(_) | ToolAnswer::Watching(_) => {
                        Err(SurfaceError::Internal("a mount answers what is no mount's".to_owned()))
                    }
                });
                counted.outcome = match &relayed {
                    Ok(_) => CallOutcome::Done,
                    Err(error) => CallOutcome::Failed(ErrorWire::from(error).code()),
                };
                let (result, space) = relayed.map_err(|error| self.failed(context, error))?;
                self.connection.outbox.attach(&context.id, ReservedSpace::of_answer(space));
                Ok(Ok(CallResult::relayed(era, result)))
            }
        }
    }

    /// Answers a request as a server has.
    fn answer(&self, context: &RequestContext<RoleServer>, answer: CallAnswer) {
        self.connection.outbox.set_answer(&context.id, answer);
    }

    /// The error of a request for the library. That of a server answers the request as it is.
    pub(super) fn failed(
        &self,
        context: &RequestContext<RoleServer>,
        error: SurfaceError,
    ) -> ErrorData {
        if let Some(mut relayed) = mounts::relayed(&error) {
            let is_unknown = relayed.code == i64::from(ErrorCode::RESOURCE_NOT_FOUND.0);
            if is_unknown && Self::is_modern(context) {
                // The newer era has no code of its own for this.
                relayed.code = i64::from(ErrorCode::INVALID_PARAMS.0);
            }
            self.answer(context, Err(CallError::Relayed(relayed)));
        }
        error.into()
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
        let arguments = of_address(own);
        let (shared, touched) = (Arc::clone(&self.shared), Arc::clone(&self.touched));
        let (standing, uri) = (standing.clone(), uri.to_owned());
        Some(async move {
            let caller = (standing.clone(), touched);
            let watch = begin_watch(&shared, &entry, caller, arguments).await?;
            let daemon = Arc::clone(shared.gateway.daemon());
            Ok(mounted_updates(daemon, standing, watch, uri))
        })
    }
}

/// Makes a call that begins to watch a resource.
async fn begin_watch(
    shared: &Arc<ServerShared>,
    entry: &ToolEntry,
    (standing, touched): (Standing, Touched),
    arguments: CallArguments,
) -> Result<ResourceWatch, SurfaceError> {
    let gateway = &shared.gateway;
    let call = Call::new(Arc::clone(gateway.daemon()), standing, touched);
    let mut counted = Counted::of(shared, Arc::clone(&entry.name));
    let begun = match gateway.call(entry, call, arguments).await {
        Ok(ToolAnswer::Watching(watch)) => Ok(watch),
        Ok(ToolAnswer::Own(_) | ToolAnswer::Relayed(_)) => {
            Err(SurfaceError::Internal("a mount tells no changes".to_owned()))
        }
        Err(error) => Err(error),
    };
    counted.outcome = match &begun {
        Ok(_) => CallOutcome::Done,
        Err(error) => CallOutcome::Failed(ErrorWire::from(error).code()),
    };
    begun
}
