//! Resources in protocol form: listed, and read in the turn of the request.
//!
//! Their content is in [`crate::mcp::resource`].

use rmcp::model::{
    CacheScope, JsonObject, ListResourceTemplatesResult, ListResourcesResult, MetaObject,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource as ListedResource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::core::policy::Standing;
use crate::mcp::error::said;
use crate::mcp::prompt::{Prompt, prompts};
use crate::mcp::resource::listed::{JSON, LISTS, MARKDOWN, OF_OPERATORS, OUTPUT, PARTS, Template};
use crate::mcp::resource::{Resource, seen, uri_of, uri_of_skill};
use crate::mcp::server::{LARGE_READ_ROOM, Server};
use crate::session::handle::Session;
use crate::surface::answer::budget::{fitting, json_bytes, room_left};

/// The `_meta` key with the metadata of an output.
const FACTS_KEY: &str = "dev.termgate/output";

/// The templates of the parts of sessions, for a caller for whom there are any.
pub(super) fn listed_templates(has_sessions: bool) -> ListResourceTemplatesResult {
    let listed = |template: Template| {
        ResourceTemplate::new(template.uri, template.name)
            .with_description(template.what)
            .with_mime_type(template.mime_type)
    };
    let templates = PARTS.into_iter().chain([OUTPUT]).filter(|_| has_sessions);
    let templates = templates.map(listed).collect();
    ListResourceTemplatesResult::with_all_items(templates)
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private)
}

fn of_no_session(standing: &Standing) -> Vec<ListedResource> {
    let list = |(uri, name, what): (&str, &str, &str)| {
        ListedResource::new(uri, name).with_description(what).with_mime_type(JSON)
    };
    let skill = |prompt: &Prompt| {
        ListedResource::new(uri_of_skill(prompt), prompt.skill_name())
            .with_description(prompt.description)
            .with_mime_type(MARKDOWN)
    };
    let mut resources: Vec<ListedResource> = LISTS.into_iter().map(list).collect();
    resources.extend(OF_OPERATORS.into_iter().filter(|_| standing.is_operator()).map(list));
    resources.extend(prompts().iter().map(skill));
    let is_told = |uri: &str| {
        Resource::parse(uri).is_ok_and(|it| it.is_some_and(|it| it.is_told_to(standing)))
    };
    resources.retain(|resource| is_told(&resource.uri));
    resources
}

fn parts_of(session: &Session) -> Vec<ListedResource> {
    let listed = |part: Template| {
        let name = format!("{} {}", session.name(), part.name);
        ListedResource::new(uri_of(session.id(), part.name), name)
            .with_description(part.what)
            .with_mime_type(part.mime_type)
    };
    PARTS.into_iter().map(listed).collect()
}

impl Server {
    /// The resources that this caller may read, in pages.
    ///
    /// The first page includes those of no session. Each page contains all resources of some sessions; its cursor is
    /// the last session's name.
    pub(super) fn listed_resources(
        &self,
        standing: &Standing,
        cursor: Option<&str>,
    ) -> ListResourcesResult {
        let mut resources = if cursor.is_none() { of_no_session(standing) } else { Vec::new() };
        let mut sessions = seen(self.shared.gateway.daemon(), standing);
        sessions.retain(|session| cursor.is_none_or(|after| *session.name() > *after));
        let bytes = sessions.iter().map(|session| json_bytes(&parts_of(session)));
        let fits = fitting(bytes, room_left(&resources, "")).count.max(1);
        let more = fits < sessions.len();
        resources.extend(sessions.iter().take(fits).flat_map(parts_of));
        let mut page = ListResourcesResult::with_all_items(resources);
        page.next_cursor = more.then(|| sessions[fits - 1].name().to_string());
        page.with_ttl_ms(0).with_cache_scope(CacheScope::Private)
    }

    /// Reads a resource once the outbox has space for it.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        drop(Self::turn_come(&context).await);
        let standing = self.standing(&context.meta);
        self.shared.gateway.admit(&standing)?;
        let room = self.connection.outbox.room(LARGE_READ_ROOM).await;
        self.connection.outbox.attach(&context.id, room);
        let unknown = || {
            let message = said(format!("no resource is named `{}`", request.uri));
            ErrorData::resource_not_found(message, Some(json!({"uri": said(&request.uri)})))
        };
        let resource = Resource::parse(&request.uri)?;
        let resource = resource.filter(|it| it.is_told_to(&standing)).ok_or_else(unknown)?;
        let content = resource.read(&self.shared, &standing).await?;
        let mime_type = content.mime_type();
        let (text, facts) = content.into_parts();
        let mut contents =
            ResourceContents::text(text, request.uri.clone()).with_mime_type(mime_type);
        if let Some(facts) = facts {
            let meta = JsonObject::from_iter([(FACTS_KEY.to_owned(), facts)]);
            contents = contents.with_meta(MetaObject(meta));
        }
        Ok(ReadResourceResult::new(vec![contents])
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
            .into())
    }
}
