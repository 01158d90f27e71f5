//! Surfaces: what termgate offers as tools, one file per tool and one list per family.
//!
//! A surface knows sessions and the shapes on the wire; which door a call came through and whether
//! it may run was settled before it got here.

pub mod answer;
pub mod argument;
pub mod call;
pub mod control;
pub mod error;
pub mod schema;
pub mod switchboard;
pub mod terminal;
pub mod tool;
pub mod turns;

use crate::surface::tool::ToolEntry;

/// Every tool of every family, in the order of the contract.
pub fn entries() -> Vec<ToolEntry> {
    let mut entries = terminal::entries();
    entries.extend(control::entries());
    entries
}
