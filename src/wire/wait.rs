//! What became of a wait or a write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::core::wait::look::Which;
use crate::wire::activity::ActivityWire;
use crate::wire::command::CommandWire;
use crate::wire::delta::DeltaWire;
use crate::wire::is_zero;
use crate::wire::lease::LeaseLeft;
use crate::wire::session::ExitWire;
use crate::wire::untrusted::Untrusted;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitOutcome {
    Matched,
    Stopped,
    Changed,
    Idle,
    CommandDone,
    NeedsInput,
    Exited,
    Timeout,
    LeaseLost,
    // A person types.
    LeaseSuspended,
    PatternTooCostly,
    // The next daemon can be asked with the watermark.
    DaemonLeft,
}

/// The parameter that held a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternName {
    Text,
    Pattern,
    StopText,
    StopPattern,
}

impl From<Which> for PatternName {
    fn from(which: Which) -> Self {
        match which {
            Which::Text => Self::Text,
            Which::Pattern => Self::Pattern,
            Which::StopText => Self::StopText,
            Which::StopPattern => Self::StopPattern,
        }
    }
}

/// The result of `wait_for`, and of a write that waited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    pub outcome: WaitOutcome,
    /// The session that ended the wait. It is missing, and so is what is known of it, when a wait on several
    /// sessions ended in none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    // The list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_matches: Vec<MatchWire>,
    /// Matches below those, for which there was no room.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub matches_left_out: u64,
    /// After a timeout: a line that matches and was on the screen before the wait.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_before: Option<MatchWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitWire>,
    /// The command that ended, where the shell marks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityWire>,
    pub last_rows: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<u64>,
    /// Rows that were trimmed before the wait could look at them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_rows: u64,
    pub elapsed_ms: u64,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// Another line that matched by the `watermark` of the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatchWire {
    pub pattern: PatternName,
    pub row: u64,
    pub text: String,
}

/// The result of every write.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    pub session: Arc<str>,
    pub written: usize,
    pub queued_bytes: usize,
    pub discarded: usize,
    pub watermark: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseLeft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The same call was made before, and this one had no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Waited>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<DeltaWire>,
}
