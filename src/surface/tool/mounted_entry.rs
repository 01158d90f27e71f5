//! The entries of what mounted servers offer and ask.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};

use crate::core::mount::MountTrust;
use crate::mount::asking::ServerAsk;
use crate::mount::json::ExactJson;
use crate::mount::registry::MountedTool;
use crate::mount::servers::Mount;
use crate::surface::tool::relay::MountRequest;
use crate::surface::tool::{ToolAccess, ToolBody, ToolEntry, ToolRuns};

impl ToolEntry {
    /// The entry of a tool of a mount, which clients know by this name and definition.
    pub fn mounted(name: Arc<str>, definition: &ExactJson, tool: MountedTool) -> Self {
        let hint = definition.get("annotations").and_then(|it| it.get("readOnlyHint"));
        let says_reads = hint.and_then(ExactJson::as_literal) == Some("true");
        let settings = tool.mount.settings();
        let as_said = settings.trust == MountTrust::Trusted && says_reads;
        let only_reads = settings.reads.as_ref().map_or(as_said, |it| it.matches(&tool.tool));
        Self {
            name,
            access: if only_reads { ToolAccess::ReadMount } else { ToolAccess::WriteMount },
            runs: ToolRuns::Nothing,
            only_reads: false,
            reads_if: None,
            definition: to_raw_value(definition).ok(),
            body: ToolBody::Mounted(tool, MountRequest::Tool),
        }
    }

    /// The entry of something else that a server offers, by the server's own name for it. It only reads. Its name has a
    /// `/`, which no name of a tool has.
    pub fn of_mount(mount: Mount, own: &str, request: MountRequest) -> Self {
        let name = request.known_as(mount.name());
        let tool = MountedTool::undefined(mount, own);
        // Clients complete while a person types.
        let only_reads = request == MountRequest::Completion;
        Self { only_reads, ..Self::beside_tools(name, ToolBody::Mounted(tool, request)) }
    }

    /// What a server asks during a call of this tool of it, for those who judge it.
    pub fn question(tool: &MountedTool, ask: ServerAsk) -> Self {
        let name = format!("{}__{}", tool.mount.name(), ask.method());
        Self::beside_tools(name, ToolBody::Question(tool.clone()))
    }

    fn beside_tools(name: String, body: ToolBody) -> Self {
        Self {
            name: Arc::from(&*name),
            access: ToolAccess::ReadMount,
            runs: ToolRuns::Nothing,
            only_reads: false,
            reads_if: None,
            definition: None,
            body,
        }
    }

    /// Whether it is what a server asks.
    pub fn is_question(&self) -> bool {
        match &self.body {
            ToolBody::Question(_) => true,
            ToolBody::Own { .. } | ToolBody::Mounted(..) => false,
        }
    }

    /// The tool of a mount that it is, if it is one.
    pub fn mount(&self) -> Option<&MountedTool> {
        match &self.body {
            ToolBody::Own { .. } => None,
            ToolBody::Mounted(tool, _) | ToolBody::Question(tool) => Some(tool),
        }
    }

    /// A tool of a mount as clients are told of it.
    pub fn definition(&self) -> Option<&RawValue> {
        self.definition.as_deref()
    }
}
