//! Sessions as lists show them, how their programs ended, and output that was lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::counted::counted;
use crate::core::frame::Exit;
use crate::wire::activity::ActivityWire;
use crate::wire::lease::{GrantWire, LeaseWire};
use crate::wire::untrusted::Untrusted;

/// How a program ended; without code and signal when that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExitWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<ExitCause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    ShimLost,
}

impl From<Exit> for ExitWire {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self { code: Some(code), ..Self::default() },
            Exit::Signal(signal) => Self { signal: Some(signal), ..Self::default() },
            Exit::Unknown => Self::default(),
            Exit::Lost => Self { cause: Some(ExitCause::ShimLost), ..Self::default() },
        }
    }
}

/// Output that no reader will see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GapWire {
    /// What is missing came before this row ends.
    pub row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Everything after this moment is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl GapWire {
    /// One remark a line, each after a line end.
    pub fn summary(gaps: &[Self]) -> String {
        gaps.iter().map(|gap| format!("\n{}", gap.remark())).collect()
    }

    /// The gap in brackets, for people and models.
    pub fn remark(&self) -> String {
        match (&self.since, self.bytes) {
            (Some(since), _) => {
                format!("[this is how it was kept at {since}; all after it is lost]")
            }
            (None, Some(bytes)) => {
                let (lost, are) = (counted(bytes, "byte"), if bytes == 1 { "is" } else { "are" });
                format!("[{lost} of output {are} lost, about where row {} begins]", self.row)
            }
            (None, None) => format!("[output is lost, about where row {} begins]", self.row),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    Running,
    Exited,
}

/// One session of a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionWire {
    pub id: String,
    pub name: String,
    pub title: String,
    pub command: String,
    pub pid: i32,
    pub cwd: String,
    pub rows: u16,
    pub cols: u16,
    pub state: SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitWire>,
    pub activity: ActivityWire,
    /// How long the state of its activity lasts; unknown if it may have begun before a restart of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub state_ms: Option<u64>,
    pub idle_ms: u64,
    pub last_line: String,
    pub watermark: u64,
    pub lease: LeaseWire,
    pub observers: usize,
    pub history_rows: usize,
    /// What its program wrote so far, in bytes.
    pub output_bytes: u64,
    /// The newest losses last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    pub write_allowed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Where it is not the caller's. The list of tools has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub tenant: Option<String>,
    /// Its programs run in a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(skip)]
    pub sandbox: bool,
    /// The number of the user whom its programs run as, where it is not the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub user: Option<u32>,
    /// Of `title`, `command` or `cwd` only the beginning is given, and ends in `…`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The result of `list_sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionWire>,
    pub write_allowed: bool,
    /// How many more there are; the last name listed is the `after` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Of other tenants, which let their names be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub listed: Vec<ListedSession>,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// A session of which a caller knows that it is there, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedSession {
    pub name: String,
    pub tenant: String,
}

/// The result of `create_session`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Created {
    pub session: SessionWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<GrantWire>,
    /// The file that it is recorded to. The list of tools has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub recording: Option<String>,
}

/// The result of `manage_session`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Managed {
    pub session: String,
    pub name: String,
    pub done: Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    Killed,
    Removed,
    Renamed,
    Signalled,
    Detached,
    HistoryCleared,
}

/// The result of `resize`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resized {
    pub session: String,
    pub cols: u16,
    pub rows: u16,
    pub watermark: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SessionWire {
        /// A session that runs, for tests to change.
        pub(crate) fn example() -> Self {
            Self {
                id: "0123456789ab".to_owned(),
                name: "build".to_owned(),
                title: String::new(),
                command: "make -j2".to_owned(),
                pid: 7,
                cwd: "/src".to_owned(),
                rows: 40,
                cols: 120,
                state: SessionState::Running,
                exit: None,
                activity: ActivityWire {
                    state: crate::wire::activity::ActivityWord::Running,
                    evidence: crate::wire::activity::EvidenceWord::Kernel,
                    ..ActivityWire::silent()
                },
                state_ms: Some(90_000),
                idle_ms: 61_000,
                last_line: String::new(),
                watermark: 1,
                lease: LeaseWire::default(),
                observers: 0,
                history_rows: 0,
                output_bytes: 0,
                lost_output: Vec::new(),
                write_allowed: true,
                tags: Vec::new(),
                tenant: None,
                sandbox: false,
                user: None,
                cut: false,
            }
        }
    }

    #[test]
    fn a_reader_ignores_unknown_members_and_needs_no_optional_one() {
        let mut written = serde_json::to_value(SessionWire::example()).unwrap();
        assert!(written.get("lost_output").is_none() && written.get("exit").is_none());
        written["from_the_future"] = serde_json::json!({"a": 1});
        let read: SessionWire = serde_json::from_value(written).unwrap();
        assert_eq!((read.lost_output, read.exit), (Vec::new(), None));
    }
}
