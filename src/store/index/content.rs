//! What goes into the index: lines of one session and commands that ended, in the order of their numbers.

use std::sync::Arc;

use crate::core::ids::{SessionId, TenantId};

/// A line of a terminal: one row, or several that wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedLine {
    /// The absolute number of its first row.
    pub row: u64,
    /// Without a line end.
    pub text: String,
}

/// A command that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedCommand {
    pub number: u64,
    pub text: String,
    pub directory: Option<String>,
    pub by: Option<String>,
    /// In milliseconds since 1970.
    pub started_ms: u64,
    pub duration_ms: u64,
    /// `None` where it is unknown.
    pub exit_code: Option<i32>,
    /// The row on which its output begins.
    pub row: u64,
}

/// The session that text is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSession {
    pub id: SessionId,
    pub tenant: TenantId,
    pub name: Arc<str>,
}

/// The next rows of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBatch {
    pub session: IndexedSession,
    /// Up to which row the index is expected to have all rows, without that row.
    pub from_row: u64,
    /// Up to which row it has them after this batch.
    pub next_row: u64,
    /// The rows of these that are missing, because they were trimmed before they were read.
    pub skipped: u64,
    pub lines: Vec<IndexedLine>,
    /// Commands that the index has already are ignored.
    pub commands: Vec<IndexedCommand>,
    /// When the batch was read, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether the session ended, so that no rows follow.
    pub ended: bool,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    Stored,
    /// Nothing was stored: the index has the rows up to this one.
    Expected {
        from_row: u64,
    },
    /// The index cannot be written now. The same rows can be read again later.
    Refused,
}
