//! What mounted servers offer beside their tools, in protocol form: listed, read, filled in and completed.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CompleteRequestParams, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequiredResult, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, ResultType,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::core::mount::MountName;
use crate::core::mount::naming::mount_of_address;
use crate::core::policy::Standing;
use crate::gateway::CallOutcome;
use crate::mcp::answer_memory::AnswerSpace;
use crate::mcp::call::{CallHandler, Era, InputResponses, WrittenParams};
use crate::mcp::elicitation::Returned;
use crate::mcp::notifications::{ChangeNotices, mounted_updates};
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::server::counted::Counted;
use crate::mcp::server::mounted_call::{MountedAnswer, MountedEnd, MountedRequest};
use crate::mcp::server::request_meta::{approval_wait, meta_for_server};
use crate::mcp::server::{LARGE_READ_ROOM, Server};
use crate::mcp::shared::ServerShared;
use crate::mount::error::MountError;
use crate::mount::json::reading::read_whole;
use crate::mount::json::{ExactJson, ExactObject};
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

/// What a server answers to `completion/complete`.
#[derive(Debug, Deserialize)]
struct Completed {
    completion: CompletionInfo,
}

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

/// How a server answers for a client.
enum RelayedContent<T> {
    /// With the memory for the answer.
    Done(T, AnswerSpace),
    /// The client is to ask again with its answers.
    Asks(InputRequiredResult),
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
        let found = mount_content(gateway.daemon(), mounts, &standing.caller, list).await;
        let listed = found.into_iter().map(|it| serde_json::from_str(&it.definition.to_string()));
        Ok(listed.filter_map(Result::ok).collect())
    }

    /// Reads a resource of a mount; `None` if the address is that of none.
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
        let relayed =
            self.relayed::<ReadResourceResult>(entry, (standing, arguments), returned, context);
        Some(match relayed.await {
            Ok(RelayedContent::Done(mut result, space)) => {
                // The library takes it out for clients of the older era.
                result.result_type = Some(ResultType::COMPLETE);
                let room = self.connection.outbox.room(LARGE_READ_ROOM).await;
                self.connection.outbox.attach(&context.id, room.with_answer(space));
                Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
            }
            Ok(RelayedContent::Asks(result)) => Ok(ReadResourceResponse::InputRequired(result)),
            Err(error) => Err(error),
        })
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
        let relayed =
            self.relayed::<GetPromptResult>(entry, (standing, arguments), returned, context);
        Some(relayed.await.map(|relayed| match relayed {
            RelayedContent::Done(mut result, space) => {
                let room = ReservedSpace::of_answer(space);
                self.connection.outbox.attach(&context.id, room);
                // As above.
                result.result_type = Some(ResultType::COMPLETE);
                GetPromptResponse::Complete(result)
            }
            RelayedContent::Asks(result) => GetPromptResponse::InputRequired(result),
        }))
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
        let WrittenRequest { argument, context: more, .. } = WrittenRequest::of(context);
        let mut params = ServerParams::default();
        params.set("ref", &of);
        for (name, written) in [("argument", argument), ("context", more)] {
            if let Some(written) = written {
                params.set_text(name, written);
            }
        }
        let arguments = to_raw_value(&params).map(CallArguments::from).unwrap_or_default();
        let asked = (standing, arguments);
        Some(match self.relayed::<Completed>(entry, asked, Returned::default(), context).await {
            Ok(RelayedContent::Done(it, _)) => Ok(it.completion),
            // While a person types, no server asks.
            Ok(RelayedContent::Asks(_)) => {
                Err(ErrorData::internal_error("a completion asks", None))
            }
            Err(error) => Err(error),
        })
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
    async fn relayed<T: DeserializeOwned>(
        &self,
        entry: ToolEntry,
        (standing, arguments): (Standing, CallArguments),
        returned: Returned,
        context: &RequestContext<RoleServer>,
    ) -> Result<RelayedContent<T>, ErrorData> {
        let no_mount = || ErrorData::internal_error("a mount offers what is no mount's", None);
        let tool = entry.mount().cloned().ok_or_else(no_mount)?;
        let era = Era::of(&self.revision(&context.meta)?);
        let mount = tool.mount.name().clone();
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
            MountedEnd::Links(error) => Err(error.into()),
            MountedEnd::Ended(answer, mut counted) => {
                let read = answer.and_then(|MountedAnswer { answer, space }| {
                    Ok((read::<T>(mount, answer)?, space))
                });
                counted.outcome = match &read {
                    Ok(_) => CallOutcome::Done,
                    Err(error) => CallOutcome::Failed(ErrorWire::from(error).code()),
                };
                let (content, space) = read?;
                Ok(RelayedContent::Done(content, space))
            }
            MountedEnd::Asks { questions, state, number } => {
                let mut asking = ExactObject::default();
                asking.insert("resultType", ExactJson::of(&"input_required"));
                asking.insert("inputRequests", ExactJson::Object(questions));
                asking.insert("requestState", ExactJson::Text(state));
                serde_json::from_str(&asking.to_string()).map(RelayedContent::Asks).map_err(
                    |error| {
                        self.parked.forget(number);
                        let problem = format!("the server asks what is malformed: {error}");
                        ErrorData::internal_error(problem, None)
                    },
                )
            }
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

/// The result of a server as the protocol has it.
fn read<T: DeserializeOwned>(mount: MountName, answer: ToolAnswer) -> Result<T, SurfaceError> {
    let ToolAnswer::Relayed(result) = answer else {
        return Err(SurfaceError::Internal("a mount answers what is no mount's".to_owned()));
    };
    read_whole(result.get()).map_err(|error| {
        let problem = format!("its result is malformed: {error}");
        MountError::Malformed { mount, problem }.into()
    })
}
