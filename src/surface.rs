//! Surfaces: what termgate offers as tools, with one list per family.
//!
//! The gateway has checked before whether a call may run.

pub mod answer;
pub mod argument;
pub mod call;
pub mod call_arguments;
pub mod control;
pub mod error;
pub mod judge;
pub mod mount_content;
pub mod mount_lease;
pub mod mount_leases;
pub mod mounted;
pub mod person;
pub mod schema;
pub mod switchboard;
pub mod terminal;
pub mod tool;
pub mod turns;

use crate::core::policy::rules::tools::{KnownTool, ToolNames};
use crate::surface::tool::ToolEntry;

/// Every tool of every family, in the order of the contract.
pub fn entries() -> Vec<ToolEntry> {
    let mut entries = terminal::entries();
    entries.extend(control::entries());
    entries
}

/// The names of all tools and of their arguments, for rules.
pub const TOOL_NAMES: ToolNames = ToolNames(known_tools);

fn known_tools() -> Vec<KnownTool> {
    entries().iter().map(ToolEntry::known).collect()
}
