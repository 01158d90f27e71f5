//! Mounts as their callers see them: their tools as entries beside the daemon's own, and their leases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::lease::view::HoldingView;
use crate::core::mount::{MountName, MountTrust};
use crate::core::policy::{Door, Reach, Standing};
use crate::mount::json::ExactJson;
use crate::mount::offered::offered_tool;
use crate::mount::registry::{MountedTool, Mounts};
use crate::mount::servers::Mount;
use crate::surface::call::Daemon;
use crate::surface::tool::ToolEntry;
use crate::surface::tool::relay::MountRequest;
use crate::surface::tool::untrusted::{shown, visible};
use crate::wire::lease::LeaseWire;
use crate::wire::mount::SeenMount;

/// All tools of all mounts, by the names that clients know.
pub type MountedEntries = BTreeMap<Arc<str>, Arc<ToolEntry>>;

/// Keeps the entries until clients are to see others.
#[derive(Debug, Default)]
pub struct MountedEntriesCache(Mutex<Option<(u64, Arc<MountedEntries>)>>);

impl MountedEntriesCache {
    /// The entries of these mounts as they are now.
    pub fn of(&self, mounts: &Mounts) -> Arc<MountedEntries> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What changes while the entries are made counts as a further change.
        let change = mounts.change();
        match &*kept {
            Some((of, entries)) if *of == change => Arc::clone(entries),
            Some(_) | None => {
                let tools = mounts.tools().into_iter();
                let made = tools.filter_map(|(name, tool)| {
                    Some((Arc::clone(&name), Arc::new(entry(name, tool)?)))
                });
                let entries = Arc::new(made.collect());
                *kept = Some((change, Arc::clone(&entries)));
                entries
            }
        }
    }
}

/// Who holds the lease of a mount, for those who may not know it.
const OTHER_TENANT: &str = "another tenant";

/// Whether any mount exists for a caller. Servers run as the daemon's user, so other tenants see only what their filter of
/// tools names.
pub fn sees_mounts(daemon: &Daemon, standing: &Standing) -> bool {
    let is_own = standing.caller.tenant == *daemon.sessions.own_tenant();
    let has_set = daemon.toolsets.mounts || standing.door == Door::Operator;
    has_set && standing.reach == Reach::Tenant && (is_own || standing.tools.is_some())
}

/// The mount of this name, if a caller may ask it for this beside tools.
pub fn content_mount(
    daemon: &Daemon,
    standing: &Standing,
    mount: &str,
    request: MountRequest,
) -> Option<Mount> {
    let mount = daemon.mounts.find(mount)?;
    let has = standing.has_tool(&request.known_as(mount.name()));
    (has && sees_mounts(daemon, standing)).then_some(mount)
}

/// The mounts of which a caller may ask for this beside tools.
pub fn content_mounts(daemon: &Daemon, standing: &Standing, request: MountRequest) -> Vec<Mount> {
    let mut mounts = daemon.mounts.all();
    mounts.retain(|it| content_mount(daemon, standing, it.name().as_str(), request).is_some());
    mounts
}

/// The mounts of which a caller sees a tool, by name, each with the names of these tools.
pub fn seen_mounts(daemon: &Daemon, standing: &Standing) -> Vec<(Mount, Vec<Arc<str>>)> {
    if !sees_mounts(daemon, standing) {
        return Vec::new();
    }
    let mut seen: BTreeMap<MountName, (Mount, Vec<Arc<str>>)> = BTreeMap::new();
    for (name, tool) in daemon.mounts.tools() {
        if standing.has_tool(&name) {
            let fresh = || (tool.mount.clone(), Vec::new());
            seen.entry(tool.mount.name().clone()).or_insert_with(fresh).1.push(name);
        }
    }
    seen.into_values().collect()
}

/// The mounts that a caller sees, for the resource `termgate://mounts`.
pub fn listed_mounts(daemon: &Daemon, standing: &Standing) -> Vec<SeenMount> {
    let seen = seen_mounts(daemon, standing).into_iter();
    let wire = seen.map(|(mount, tools)| {
        let (view, settings) = (mount.view(), mount.settings());
        let instructions = mount.tools().instructions;
        let as_trusted = |text: String| match settings.trust {
            MountTrust::Trusted => text,
            MountTrust::Untrusted | MountTrust::Sandboxed => shown(&text).into_owned(),
        };
        SeenMount {
            name: mount.name().to_string(),
            mode: settings.mode.to_string(),
            status: view.status.as_str().to_owned(),
            trust: settings.trust.as_str().to_owned(),
            lease: lease_of(daemon, &mount, standing),
            instructions: instructions.map(as_trusted),
            tools: tools.iter().map(ToString::to_string).collect(),
        }
    });
    wire.collect()
}

/// How the lease of a mount stands, if it has one. Of a holder of another tenant, a caller learns no more than that.
pub fn lease_of(daemon: &Daemon, mount: &Mount, standing: &Standing) -> Option<LeaseWire> {
    let (view, expires_at) = daemon.mount_leases.of(mount.name())?.view();
    let wire = LeaseWire::from(&view);
    let is_own = |it: &HoldingView| it.tenant == standing.caller.tenant || standing.is_operator();
    let told = match view.holding.as_ref().is_none_or(is_own) {
        true => wire,
        false => LeaseWire {
            held: true,
            by: Some(OTHER_TENANT.to_owned()),
            waiters: wire.waiters,
            ..LeaseWire::default()
        },
    };
    Some(told.expiring(expires_at, daemon.now()))
}

/// The entry of a tool; `None` if it cannot be offered.
fn entry(name: Arc<str>, tool: MountedTool) -> Option<ToolEntry> {
    let mut definition = offered_tool(&tool.definition).ok()?.definition;
    if tool.mount.settings().trust != MountTrust::Trusted {
        definition = visible(definition);
    }
    if let ExactJson::Object(members) = &mut definition {
        members.insert("name", ExactJson::of(&name));
    }
    Some(ToolEntry::mounted(name, &definition, tool))
}
