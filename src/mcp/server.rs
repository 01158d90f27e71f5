//! Handles the protocol's requests for one connection.
//!
//! Each handler determines the caller, calls the gateway and builds the protocol's result.

mod after_questions;
mod attaching;
mod call_lane;
mod calling;
mod counted;
mod listing;
mod logging;
mod malformed;
mod mounted;
mod mounted_call;
mod operating;
mod prompting;
mod questions;
mod reading;
mod request_meta;
mod roots_news;

use std::sync::{Arc, OnceLock};

#[allow(deprecated)] // Clients of the older era still use them.
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    ClientCapabilities, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, RequestMetaObject, ServerCapabilities,
    ServerConfig, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::core::caller::Caller;
use crate::core::policy::{Door, Standing, decide_operate};
use crate::mcp::attach::{self, People};
use crate::mcp::connection::Connection;
use crate::mcp::era::Era;
use crate::mcp::listen::{Acknowledged, Subscriptions};
use crate::mcp::notifications::NoticeLane;
use crate::mcp::observe;
use crate::mcp::outbox::PushLane;
use crate::mcp::prompt::INSTRUCTIONS;
use crate::mcp::request_class::OBSERVE_METHOD;
use crate::mcp::server::after_questions::AfterQuestions;
use crate::mcp::server::logging::WantedLevel;
use crate::mcp::server::malformed::malformed;
use crate::mcp::server::mounted_call::ParkedCalls;
use crate::mcp::server::prompting::{filled, listed_prompts};
use crate::mcp::server::reading::listed_templates;
use crate::mcp::shared::ServerShared;
use crate::mount::log::LogLevel;
use crate::session::request_order::{RequestTurn, TurnSlot};
use crate::surface::call::Touched;
use crate::surface::mount_content::ContentList;
use crate::surface::tool::relay::MountRequest;

/// The outbox space reserved for the answer of a reading tool, in bytes.
const READ_ROOM: usize = 64 * 1024;
/// The same for a large answer.
const LARGE_READ_ROOM: usize = 512 * 1024;

#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerShared>,
    connection: Arc<Connection>,
    standing: Standing,
    /// The caller's name: of its token, or from the client's own information.
    label: OnceLock<Arc<str>>,
    /// The revision that `initialize` agreed on.
    agreed: OnceLock<ProtocolVersion>,
    /// What the client declared when it sent `initialize`.
    declared: OnceLock<Arc<ClientCapabilities>>,
    wanted_level: WantedLevel,
    /// The calls of mounts that wait until the client makes them again.
    parked: ParkedCalls,
    after_questions: Arc<AfterQuestions>,
    subscriptions: Subscriptions,
    acknowledged: Acknowledged,
    touched: Touched,
    people: People,
}

impl Server {
    pub fn new(
        shared: Arc<ServerShared>,
        connection: Arc<Connection>,
        mut standing: Standing,
    ) -> Self {
        standing.sessions =
            shared.gateway.daemon().toolsets.core || standing.door == Door::Operator;
        let subscriptions = Subscriptions::new(shared.subscriptions.clone());
        // The token's name replaces the client's own.
        let label = standing.token.map(|_| Arc::clone(&standing.caller.label));
        Self {
            shared,
            connection,
            standing,
            label: label.map_or_else(OnceLock::new, OnceLock::from),
            agreed: OnceLock::new(),
            declared: OnceLock::new(),
            wanted_level: WantedLevel::default(),
            parked: ParkedCalls::default(),
            after_questions: Arc::default(),
            subscriptions,
            acknowledged: Acknowledged::default(),
            touched: Touched::default(),
            people: People::default(),
        }
    }

    /// The sessions to notify when the connection has ended.
    pub fn touched(&self) -> Touched {
        Arc::clone(&self.touched)
    }

    /// The caller, with its name as an attached person, or else the name that its client gave first.
    fn standing(&self, meta: &RequestMetaObject) -> Standing {
        let mut standing = self.standing.clone();
        let label = self.label.get().or_else(|| meta.client_info().map(|it| self.name(&it)));
        let attached = self.people.label_of(standing.caller.principal);
        if let Some(label) = attached.or_else(|| label.cloned()) {
            standing.caller.label = label;
        }
        standing
    }

    fn name(&self, client: &Implementation) -> &Arc<str> {
        self.label.get_or_init(|| {
            let label = Caller::clean_label(&client.name);
            let principal = self.standing.caller.principal;
            self.shared.gateway.daemon().principals.rename(principal, &label);
            label
        })
    }

    /// The lane of a request's pushes. The transport closes it when it reads the cancel.
    fn lane(&self, extensions: &rmcp::model::Extensions) -> PushLane {
        extensions.get::<PushLane>().cloned().unwrap_or_else(|| self.connection.outbox.lane())
    }

    /// Takes the turn of a request; the next one need not wait once it is dropped.
    fn turn(context: &RequestContext<RoleServer>) -> Option<RequestTurn> {
        context.extensions.get::<TurnSlot>().and_then(TurnSlot::take)
    }

    /// Takes the turn of a request once it has come.
    async fn turn_come(context: &RequestContext<RoleServer>) -> Option<RequestTurn> {
        let turn = Self::turn(context)?;
        turn.wait().await;
        Some(turn)
    }

    /// What a client of this era has declared that it answers.
    fn declared(&self, era: Era, meta: &RequestMetaObject) -> Arc<ClientCapabilities> {
        let declared = match era {
            Era::Legacy => self.declared.get().cloned(),
            Era::Modern => meta.client_capabilities().map(Arc::new),
        };
        declared.unwrap_or_default()
    }

    fn is_modern(context: &RequestContext<RoleServer>) -> bool {
        context.meta.protocol_version().is_some()
    }
}

#[allow(deprecated)] // The older era has no other notification that may come unasked.
fn capabilities(standing: &Standing) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_resources_list_changed()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_logging()
        .build();
    let mut extensions = vec![(observe::EXTENSION.to_owned(), JsonObject::new())];
    if decide_operate(standing).is_ok() {
        extensions.push((attach::EXTENSION.to_owned(), JsonObject::new()));
    }
    capabilities.experimental = Some(extensions.clone().into_iter().collect());
    capabilities.extensions = Some(extensions.into_iter().collect());
    capabilities
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lease_notices.remove(self.connection.id);
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("termgate", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities(&self.standing))
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?;
        self.name(&request.client_info);
        // A second `initialize` keeps the first agreement.
        let _ = self.agreed.set(agreed.protocol_version.clone());
        let _ = self.declared.set(Arc::new(request.capabilities.clone()));
        request.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(agreed)
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        let daemon = self.shared.gateway.daemon();
        self.subscriptions.tell_lists(daemon, &self.standing, &self.connection);
        self.shared.lease_notices.add(&self.connection);
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.tell_roots_changed();
    }

    #[allow(deprecated)] // As in the capabilities.
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let level = LogLevel::from(request.level);
        self.wanted_level.set(level);
        // Lease notices are warnings.
        if level <= LogLevel::Warning {
            self.shared.lease_notices.add(&self.connection);
        } else {
            self.shared.lease_notices.remove(self.connection.id);
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.listed_tools(&context)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let standing = self.standing(&context.meta);
        let page = self.listed_resources(&standing, cursor.as_deref());
        if page.next_cursor.is_none() {
            let asked = (ContentList::Resources, MountRequest::Resource);
            self.add_mounts(&page, asked, &context).await?;
        }
        Ok(page)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let standing = self.standing(&context.meta);
        let listed = listed_templates(standing.sessions);
        let asked = (ContentList::Templates, MountRequest::Resource);
        self.add_mounts(&listed, asked, &context).await?;
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(read) = self.read_mounted(&request, &context).await {
            return read;
        }
        self.read(request, context).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let standing = self.standing(&context.meta);
        let listed = listed_prompts(standing.sessions);
        let asked = (ContentList::Prompts, MountRequest::Prompt);
        self.add_mounts(&listed, asked, &context).await?;
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(filled) = self.fill_mounted(&request, &context).await {
            return filled;
        }
        Ok(filled(&request, &self.standing(&context.meta))?.into())
    }

    #[allow(deprecated)] // Clients of the older era have no other way to subscribe.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let standing = self.standing(&context.meta);
        let daemon = self.shared.gateway.daemon();
        let Some(watching) = self.watching(&request.uri, &standing) else {
            let Self { subscriptions, connection, .. } = self;
            return Ok(subscriptions.subscribe(daemon, &standing, connection, &request.uri)?);
        };
        let subscribed =
            self.subscriptions.watch(&standing, &self.connection, &request.uri, watching);
        tokio::select! {
            subscribed = subscribed => subscribed.map_err(|error| self.failed(&context, error)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    #[allow(deprecated)] // As above.
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        filter: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let ServerShared { gateway, subscriptions, .. } = &*self.shared;
        Some(self.acknowledged.accept(gateway.daemon(), &self.standing, subscriptions, filter))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        // Other requests need not wait for a subscription.
        drop(Self::turn(request));
        let lane = self.lane(&request.extensions);
        let wire = NoticeLane {
            connection: Arc::clone(&self.connection),
            lane,
            subscription: Some(request.id.clone()),
        };
        let standing = self.standing(&request.meta);
        let watching = |uri: &str| self.watching(uri, &standing);
        let listened = self.acknowledged.listen(wire, &context, watching).await;
        listened.map_err(|error| self.failed(request, error))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if let Some(completed) = self.complete_mounted(&request, &context).await {
            return completed;
        }
        let standing = self.standing(&context.meta);
        let completion = self
            .completed(&request, &standing)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            OBSERVE_METHOD => self.observe(request.params, context).await,
            method => match malformed(method, request.params.as_ref()) {
                Some(error) => Err(error),
                None => self.for_operators(request, context).await,
            },
        }
    }
}
