//! The result of a search: lines and commands of sessions, also of those that ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::counted::counted;
use crate::wire::untrusted::Untrusted;

/// A command that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommand {
    pub command_id: u64,
    /// Null where it is unknown.
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A line or command that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub session: String,
    pub name: String,
    /// Its first row, or the one on which the output of the command begins.
    pub row: u64,
    /// About when it was printed, or when the command began, in milliseconds since 1970.
    pub at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<FoundCommand>,
    /// The session is no more: its rows cannot be read, only searched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// The result of `search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResults {
    /// Newest first.
    // Of no use to models before they see one, and the list of tools is as long as it may be.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub hits: Vec<SearchHit>,
    /// There are more.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// How many rows of these sessions went by too fast to be indexed.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "crate::wire::is_zero")]
    pub rows_skipped: u64,
    /// What was not searched, and why.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}

impl SearchResults {
    /// What to say beside the hits.
    ///
    /// `limit` is what the caller writes for the number of hits.
    pub fn remarks(&self, limit: &str) -> Vec<String> {
        let more = self.more.then(|| format!("there are more; raise `{limit}` or add words"));
        let skipped = (self.rows_skipped > 0)
            .then(|| format!("up to {} not indexed", counted(self.rows_skipped, "row")));
        more.into_iter().chain(skipped).chain(self.incomplete.clone()).collect()
    }
}
