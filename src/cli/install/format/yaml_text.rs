//! An entry as YAML, for the user to paste: such files are never edited.
//!
//! No library that is kept up rewrites YAML with its comments, anchors and indents as they were.

use crate::cli::install::format::{Members, Spot};

/// The entry in its container, as a text of its own.
pub fn block(spot: Spot<'_>, members: &Members) -> String {
    // Values of JSON are values of YAML.
    let lines = members.iter().map(|(name, value)| format!("    {name}: {value}\n"));
    format!("{}:\n  {}:\n{}", spot.container, spot.name, lines.collect::<String>())
}
