//! What a search of the index finds.

use std::ops::Range;

use crate::core::ids::SessionId;

/// A command that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHit {
    pub number: u64,
    pub exit_code: Option<i32>,
    pub directory: Option<String>,
    pub by: Option<String>,
    pub duration_ms: u64,
}

/// A line or command that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHit {
    pub session: SessionId,
    pub name: String,
    pub row: u64,
    /// When it was indexed, or began, in milliseconds since 1970.
    pub at_ms: u64,
    pub text: String,
    /// The match in bytes of the text.
    pub found: Range<usize>,
    /// What is known of it if it is a command.
    pub command: Option<CommandHit>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexHits {
    /// Newest first.
    pub hits: Vec<IndexHit>,
    /// Whether the time or the budget was spent before all was searched.
    pub unfinished: bool,
}
