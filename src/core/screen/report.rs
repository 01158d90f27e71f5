//! What a program reports of itself beside its text: directory, notifications, progress.
//!
//! These are claims of whatever runs in the terminal, an output file included; whoever acts on
//! them decides what to believe.

/// One report, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The working directory (OSC 7), an absolute path.
    Directory(String),
    /// A text for the person at the terminal (OSC 9 and 777).
    Notification { title: Option<String>, body: String },
    /// How far a task is (OSC 9;4).
    Progress(Progress),
}

impl Report {
    /// How many reports wait to be taken; of more the newest are kept.
    pub const QUEUED_MAX: usize = 256;
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is no task any more.
    Removed,
    /// This many per cent, 0 to 100, are done.
    Running(u8),
    /// It failed at this many per cent.
    Failed(u8),
    /// It runs, and nobody knows how far it is.
    Indeterminate,
    /// It waits at this many per cent.
    Paused(u8),
}
