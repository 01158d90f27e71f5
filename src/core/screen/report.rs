//! What a program reports beside its text: directory, notifications, progress.
//!
//! Reports are unverified: any output can contain them, even a printed file.

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
    /// The most reports that wait in the queue; the oldest are dropped first.
    pub const QUEUED_MAX: usize = 256;
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The task is finished or removed.
    Removed,
    /// The task is running, 0 to 100 per cent done.
    Running(u8),
    /// The task failed at this percentage.
    Failed(u8),
    /// The task is running without a known percentage.
    Indeterminate,
    /// The task is paused at this percentage.
    Paused(u8),
}
