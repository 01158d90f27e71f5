//! The tools of mounts as entries beside the daemon's own.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::Value;

use crate::core::mount::MountTrust;
use crate::mount::registry::{MountedTool, Mounts};
use crate::surface::tool::ToolEntry;
use crate::surface::tool::relay::visible;

/// The tool that clients know by this name.
pub fn mounted_entry(mounts: &Mounts, name: &str) -> Option<ToolEntry> {
    entry(Arc::from(name), mounts.tool(name)?)
}

/// All tools of all mounts, by name.
pub fn mounted_entries(mounts: &Mounts) -> Vec<ToolEntry> {
    let tools = mounts.tools().into_iter();
    tools.filter_map(|(name, tool)| entry(name, tool)).collect()
}

/// The entry of a tool; `None` if its definition is not one of the protocol.
fn entry(name: Arc<str>, tool: MountedTool) -> Option<ToolEntry> {
    let mut definition = (*tool.definition).clone();
    if tool.mount.settings().trust != MountTrust::Trusted {
        definition = visible(definition);
    }
    definition["name"] = Value::from(&*name);
    let described: Tool = serde_json::from_value(definition).ok()?;
    Some(ToolEntry::mounted(name, described, tool))
}
