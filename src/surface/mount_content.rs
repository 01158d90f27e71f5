//! What mounted servers list beside their tools: resources, templates of addresses, and prompts.
//!
//! The lists are asked for each time, so that none is out of date.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::core::caller::Caller;
use crate::core::ids::PrincipalId;
use crate::core::invisible::with_invisible_shown;
use crate::core::mount::naming::{Exposed, ToolSource, exposed, exposed_address};
use crate::core::mount::{MountName, MountTrust};
use crate::mount::error::MountError;
use crate::mount::handle::CallChannels;
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::offered::offered_content;
use crate::mount::protocol::ServerParams;
use crate::mount::servers::Mount;
use crate::mount::shares::MountClient;
use crate::surface::answer::budget::json_bytes;
use crate::surface::call::Daemon;
use crate::surface::tool::untrusted::visible_members;

/// How long a list waits for one server.
const LIST_WAIT: Duration = Duration::from_secs(5);

/// How long it waits for one that did not answer a list in the last minute.
const LATE_WAIT: Duration = Duration::from_millis(100);
const LATE_FOR: Duration = Duration::from_secs(60);

/// The most pages of one list of a server.
const PAGES_MAX: usize = 16;

/// The most bytes of one list of a server, as JSON. What is behind them is left out.
const LIST_BYTES_MAX: usize = 64 * 1024;

/// The most bytes of one list of all servers.
pub const ALL_BYTES_MAX: usize = 256 * 1024;

/// A list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentList {
    Resources,
    Templates,
    Prompts,
}

impl ContentList {
    fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of a page with the list.
    pub fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The capability of servers that have the list.
    fn capability(self) -> &'static str {
        match self {
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The member of an entry by which the server knows it.
    fn key(self) -> &'static str {
        match self {
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
            Self::Prompts => "name",
        }
    }
}

/// An entry of a list of a mount.
#[derive(Clone, Debug)]
pub struct MountContent {
    /// The server's own name or address.
    pub own: Arc<str>,
    /// The name or address that clients know.
    pub exposed: String,
    /// The entry as clients see it.
    pub definition: ExactObject,
}

/// The list of all these mounts together, mount by mount. A server that has the list is started if need be. One that was
/// never started yet, fails or takes longer than five seconds leaves its part out.
pub async fn mount_content(
    daemon: &Daemon,
    mounts: Vec<Mount>,
    caller: &Caller,
    list: ContentList,
) -> Vec<MountContent> {
    let (principal, client) = (caller.principal, daemon.mount_client(caller));
    let mut asked = JoinSet::new();
    let now = daemon.now();
    for mount in mounts.into_iter().filter(|mount| mount.may_have_capability(list.capability())) {
        let (clock, client) = (daemon.sessions.clock().clone(), client.clone());
        let is_late = mount.is_late(list.method(), now);
        let until = now + if is_late { LATE_WAIT } else { LIST_WAIT };
        asked.spawn(async move {
            let found = tokio::select! {
                found = entries(&mount, (principal, client), list) => {
                    if found.is_some() {
                        mount.on_list(list.method());
                    }
                    found
                }
                () = clock.sleep_until(until) => {
                    if !is_late {
                        mount.on_late_list(list.method(), clock.now() + LATE_FOR);
                    }
                    None
                }
            };
            (mount.name().clone(), exposed_entries(&mount, found.unwrap_or_default(), list))
        });
    }
    let mut found: BTreeMap<MountName, Vec<MountContent>> = BTreeMap::new();
    while let Some(one) = asked.join_next().await {
        found.extend(one);
    }
    let mut bytes = 0;
    let fits = |it: &MountContent| {
        bytes += json_bytes(&it.definition);
        bytes <= ALL_BYTES_MAX
    };
    found.into_values().flatten().take_while(fits).collect()
}

/// What a server lists, page by page; `None` if it does not answer well.
async fn entries(
    mount: &Mount,
    (principal, client): (PrincipalId, MountClient),
    list: ContentList,
) -> Option<Vec<ExactJson>> {
    let server = mount.server_for(principal).ok()?;
    let _place = server.place_for(&client).ok()?;
    let (mut found, mut bytes, mut params) = (Vec::new(), 0, ServerParams::default());
    for _ in 0..PAGES_MAX {
        let page = server.request(list.method(), params, CallChannels::default(), None).await;
        let page = match page {
            Ok(page) => page,
            // That is an answer, too.
            Err(MountError::Refused { .. }) => return Some(Vec::new()),
            Err(_) => return None,
        };
        let mut page: ExactObject = serde_json::from_str(page.get()).ok()?;
        let Some(ExactJson::List(listed)) = page.remove(list.member()) else { return None };
        for entry in listed {
            bytes += json_bytes(&entry);
            if bytes > LIST_BYTES_MAX {
                return Some(found);
            }
            found.push(entry);
        }
        let Some(cursor) = page.text("nextCursor") else { return Some(found) };
        params = ServerParams::default();
        params.set("cursor", &cursor);
    }
    Some(found)
}

/// The entries as clients see them. Those without a name or address are left out, and prompts with one name for two.
fn exposed_entries(mount: &Mount, found: Vec<ExactJson>, list: ContentList) -> Vec<MountContent> {
    let name = mount.name();
    let own = |entry: &ExactJson| Some(Arc::<str>::from(entry.get(list.key())?.as_text()?));
    let source = |tool| ToolSource { mount: name.clone(), tool };
    let names: BTreeMap<Arc<str>, Arc<str>> = match list {
        ContentList::Resources | ContentList::Templates => BTreeMap::new(),
        ContentList::Prompts => exposed(found.iter().filter_map(own).map(source))
            .into_iter()
            .filter_map(|(name, exposed)| match exposed {
                Exposed::Tool(source) => Some((source.tool, name)),
                Exposed::Contested(_) => None,
            })
            .collect(),
    };
    let is_trusted = mount.settings().trust == MountTrust::Trusted;
    let content = |entry: ExactJson| {
        let own = own(&entry)?;
        // An address must stay as it is, and would carry what nobody sees.
        if !is_trusted && with_invisible_shown(&own) != *own {
            return None;
        }
        let exposed = match list {
            ContentList::Resources | ContentList::Templates => exposed_address(name, &own),
            ContentList::Prompts => names.get(&own)?.to_string(),
        };
        let entry = offered_content(entry.try_into().ok()?)?;
        let mut definition = if is_trusted { entry } else { visible_members(entry) };
        definition.insert(list.key(), ExactJson::of(&exposed));
        Some(MountContent { own, exposed, definition })
    };
    found.into_iter().filter_map(content).collect()
}
