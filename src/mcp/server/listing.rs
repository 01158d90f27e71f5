//! Lists of the daemon's own with the entries of mounts behind them, as their servers wrote these.

use std::collections::BTreeMap;

use rmcp::model::{CacheScope, ListToolsResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::mcp::call::CallHandler;
use crate::mcp::call_result::CallResult;
use crate::mcp::era::Era;
use crate::mcp::server::Server;
use crate::surface::mount_content::{ContentList, mount_content};
use crate::surface::mounted::content_mounts;
use crate::surface::tool::relay::MountRequest;

impl Server {
    /// The daemon's own tools. If there are tools of mounts, the whole list answers the request.
    pub(super) fn listed_tools(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let standing = self.standing(&context.meta);
        let listed = self.shared.gateway.listed(&standing);
        let one = standing.bound_session().is_some();
        let own = listed.iter().filter_map(|entry| entry.listed(one)).collect();
        let own = ListToolsResult::with_all_items(own)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private);
        let mounted: Vec<_> = listed.iter().filter_map(|entry| entry.definition()).collect();
        if !mounted.is_empty() {
            self.add_entries(&own, ("tools", &mounted), context)?;
        }
        Ok(own)
    }

    /// Adds the lists of all mounts that the caller sees to an answer with a list of the daemon's own.
    pub(super) async fn add_mounts(
        &self,
        own: &impl Serialize,
        (list, request): (ContentList, MountRequest),
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (gateway, standing) = (&self.shared.gateway, self.standing(&context.meta));
        let mounts = content_mounts(gateway.daemon(), &standing, request);
        if mounts.is_empty() {
            return Ok(());
        }
        gateway.admit(&standing)?;
        let found = mount_content(gateway.daemon(), mounts, &standing.caller, list).await;
        let definitions = found.into_iter().filter_map(|it| to_raw_value(&it.definition).ok());
        let definitions: Vec<_> = definitions.collect();
        let entries: Vec<&RawValue> = definitions.iter().map(|it| &**it).collect();
        self.add_entries(own, (list.member(), &entries), context)
    }

    /// Answers a request with a list of the daemon's own and these entries of servers, as they wrote them.
    fn add_entries(
        &self,
        own: &impl Serialize,
        (list, entries): (&str, &[&RawValue]),
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let era = Era::of(&self.revision(&context.meta)?);
        let listed = with_entries(own, (list, entries));
        let no_form = |error| ErrorData::internal_error(format!("no list: {error}"), None);
        let listed = CallResult::relayed(era, listed.map_err(no_form)?);
        self.connection.outbox.set_answer(&context.id, Ok(listed));
        Ok(())
    }
}

/// A list of the daemon's own with these entries behind it.
fn with_entries(
    own: &impl Serialize,
    (list, entries): (&str, &[&RawValue]),
) -> serde_json::Result<Box<RawValue>> {
    let own = to_raw_value(own)?;
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(own.get())?;
    let mut all: Vec<&RawValue> = match members.get(list) {
        Some(listed) => serde_json::from_str(listed.get())?,
        None => Vec::new(),
    };
    all.extend(entries);
    let all = to_raw_value(&all)?;
    members.insert(list, &all);
    to_raw_value(&members)
}
