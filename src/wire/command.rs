//! Commands: how one ran, the list of them, and how one ended that a call followed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::CommandRecord;
use crate::wire::activity::{ActivityWire, EvidenceWord};
use crate::wire::is_zero;
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    Running,
    Completed,
    NotRun,
    Exited,
}

impl From<&CommandRecord> for CommandStatus {
    fn from(record: &CommandRecord) -> Self {
        match record.finish {
            None => Self::Running,
            Some(finish) if !finish.ran => Self::NotRun,
            Some(finish) => match finish.evidence {
                Evidence::Exit => Self::Exited,
                Evidence::Osc133 | Evidence::Kernel | Evidence::Pattern | Evidence::Idle => {
                    Self::Completed
                }
            },
        }
    }
}

/// One command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandWire {
    pub command_id: u64,
    /// What was sent, or what the shell read; at most 1 KB.
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    pub duration_ms: u64,
    pub status: CommandStatus,
    /// Null where it is unknown.
    pub exit_code: Option<i32>,
    /// How its end is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceWord>,
    /// It had the whole screen to itself for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_screen: bool,
    /// Of `command` or `cwd` only the beginning is given, and ends in `…`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The result of `read_commands`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandList {
    pub session: String,
    /// Oldest first.
    pub commands: Vec<CommandWire>,
    /// How many older ones are known; the first id listed is the `before` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_left_out: Option<u64>,
    /// Its first lines that are no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_trimmed: Option<u64>,
    /// The resource with all of the output, when some was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    // Rare, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    pub watermark: u64,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// The resource of a session's commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KnownCommands {
    pub session: String,
    /// How many older ones there is no room for.
    pub older: usize,
    pub commands: Vec<CommandWire>,
    pub watermark: u64,
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// What the resource of a command's output says beside the text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputFacts {
    pub status: CommandStatus,
    pub exit_code: Option<i32>,
    /// The line with which the next piece begins, from 0.
    pub next_line: u64,
    pub lines_left_out: u64,
    /// Lines before this piece that were asked for and are no longer kept.
    pub lines_trimmed: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Completed,
    Timeout,
    NeedsInput,
    Exited,
    // The shell could not read it as a command.
    NotRun,
    LeaseLost,
    // A person types.
    LeaseSuspended,
    // The next daemon knows how the command goes on.
    DaemonLeft,
}

/// The result of `run` and `follow_command`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Followed {
    pub session: String,
    pub command_id: u64,
    pub status: RunStatus,
    /// Null where it is unknown.
    pub exit_code: Option<i32>,
    /// How the status is known.
    pub evidence: EvidenceWord,
    /// What the command printed, head and tail.
    pub output: String,
    pub lines_total: u64,
    pub lines_left_out: u64,
    /// Its first lines that are no longer kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines_trimmed: u64,
    /// The resource with all of the output, when some was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    // Rare, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    /// What it asks for: the text before the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What ended the program of the session.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The beginning and the end of what a full-screen program shows.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
    /// It had the whole screen to itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_screen: bool,
    pub activity: ActivityWire,
    pub watermark: u64,
    pub elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}
