//! Recordings as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::untrusted::Untrusted;

/// The result of `record_session`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingList {
    /// Where the files are.
    pub directory: String,
    /// Whether this call began or ended a recording.
    pub changed: bool,
    /// Oldest first.
    pub recordings: Vec<RecordingWire>,
}

/// One recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingWire {
    pub session: String,
    /// The name of the session, unless it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub path: String,
    /// RFC 3339.
    pub begun_at: String,
    pub bytes: u64,
    /// Whether it goes on.
    pub running: bool,
}

/// A part of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingPart {
    #[serde(default)]
    #[schemars(skip)]
    pub untrusted: Untrusted,
    #[serde(flatten)]
    pub recording: RecordingWire,
    /// Where the text begins in the file, in bytes.
    pub offset: u64,
    /// Where the next part begins.
    pub next_offset: u64,
    /// Whole lines in asciicast format.
    pub text: String,
}
