//! Resources as the protocol has them: listed, and read in the turn of the request.
//!
//! What each gives is in [`crate::mcp::resource`].

use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource as ListedResource, ResourceContents,
    ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::core::policy::Standing;
use crate::mcp::prompt::{Prompt, prompts};
use crate::mcp::resource::{DAEMON, LISTS, Resource, TEMPLATES, seen, uri_of, uri_of_skill};
use crate::mcp::server::{LARGE_READ_ROOM, Server, protocol_error};
use crate::mcp::turn::TurnSlot;

const JSON: &str = "application/json";

/// Every template, as it is listed.
pub(super) fn listed_templates() -> ListResourceTemplatesResult {
    let template = |(uri, name, what): (&str, &str, &str)| {
        ResourceTemplate::new(uri, name).with_description(what).with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(TEMPLATES.into_iter().map(template).collect())
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private)
}

impl Server {
    /// The resources that this caller may read.
    pub(super) fn listed_resources(&self, standing: &Standing) -> ListResourcesResult {
        let list = |(uri, name, what): (&str, &str, &str)| {
            ListedResource::new(uri, name).with_description(what).with_mime_type(JSON)
        };
        let skill = |prompt: &Prompt| {
            ListedResource::new(uri_of_skill(prompt), prompt.skill_name())
                .with_description(prompt.description)
                .with_mime_type("text/markdown")
        };
        let mut resources: Vec<ListedResource> = LISTS.into_iter().map(list).collect();
        resources.extend(standing.is_operator().then(|| list(DAEMON)));
        resources.extend(prompts().iter().map(skill));
        for session in seen(self.shared.gateway.daemon(), standing) {
            for (_, part, what) in TEMPLATES {
                let name = format!("{} {part}", session.name());
                let resource = ListedResource::new(uri_of(session.id(), part), name);
                resources.push(resource.with_description(what).with_mime_type(JSON));
            }
        }
        ListResourcesResult::with_all_items(resources)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
    }

    /// Reads a resource once there is room for it.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let turn = context.extensions.get::<TurnSlot>().and_then(TurnSlot::take);
        if let Some(turn) = turn {
            turn.wait().await;
        }
        let standing = self.standing(&context.meta);
        self.shared.gateway.admit(&standing).map_err(|error| protocol_error(&error))?;
        let room = self.connection.outbox.room(LARGE_READ_ROOM).await;
        self.connection.outbox.attach(&context.id, room);
        let unknown = || {
            let message = format!("no resource is named `{}`", request.uri);
            ErrorData::resource_not_found(message, Some(json!({"uri": request.uri})))
        };
        let resource = Resource::parse(&request.uri).map_err(|error| protocol_error(&error))?;
        let resource = resource.filter(|it| it.is_told_to(&standing)).ok_or_else(unknown)?;
        let content =
            resource.read(&self.shared, &standing).map_err(|error| protocol_error(&error))?;
        let mime_type = content.mime_type();
        let text = ResourceContents::text(content.into_text(), request.uri.clone())
            .with_mime_type(mime_type);
        Ok(ReadResourceResult::new(vec![text])
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
            .into())
    }
}
