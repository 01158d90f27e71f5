//! The tools of mounts as entries beside the daemon's own.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::core::invisible::with_invisible_shown;
use crate::core::mount::MountTrust;
use crate::mount::registry::{MountedTool, Mounts};
use crate::surface::tool::ToolEntry;

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
    if tool.mount.settings().trust == MountTrust::Untrusted {
        definition = visible(definition);
    }
    definition["name"] = Value::from(&*name);
    let described: Tool = serde_json::from_value(definition).ok()?;
    Some(ToolEntry::mounted(name, described, tool))
}

/// JSON in whose texts the characters are written out that nobody sees.
pub fn visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(with_invisible_shown(&text).into_owned()),
        Value::Array(values) => values.into_iter().map(visible).collect(),
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                (with_invisible_shown(&name).into_owned(), visible(value))
            };
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_shown_wherever_they_stand() {
        let hidden = json!({"a\u{200b}": ["x\u{e0041}y", {"b": "\u{202e}", "n": 1.5}]});
        let shown = json!({"a\\u{200b}": ["x\\u{e0041}y", {"b": "\\u{202e}", "n": 1.5}]});
        assert_eq!(visible(hidden), shown);
    }
}
