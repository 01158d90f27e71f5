//! Surfaces: what termgate offers as tools, with one list per family.
//!
//! The gateway has checked before whether a call may run.

pub mod answer;
pub mod argument;
pub mod call;
pub mod control;
pub mod error;
pub mod judge;
pub mod mounted;
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
