//! An entry as YAML for the user to paste; termgate never edits YAML files.
//!
//! No maintained library rewrites YAML with its comments, anchors and indentation intact.

use crate::cli::install::format::{Members, Spot};

/// The entry in its container, as a separate text.
pub fn block(spot: Spot<'_>, members: &Members) -> String {
    // Every JSON value is a valid YAML value.
    let lines = members.iter().map(|(name, value)| format!("    {name}: {value}\n"));
    format!("{}:\n  {}:\n{}", spot.container, spot.name, lines.collect::<String>())
}
