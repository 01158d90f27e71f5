//! What the kernel knows of a terminal and of its programs.

use std::sync::Arc;

/// The process group that may read the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreground {
    /// Its number.
    pub group: i32,
    /// The name of its leader's program as the kernel has it, at most 15 bytes.
    pub program: Option<Arc<str>>,
}

/// What the kernel knew of a terminal when it was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelView {
    pub foreground: Option<Foreground>,
    /// The session was started with an interactive shell, which is in front.
    pub shell_in_front: bool,
    /// The kernel collects input into lines.
    pub canonical: bool,
    /// The kernel shows what is typed.
    pub echo: bool,
    /// Whether a process in front waits for the terminal in a read; none if it was not looked for, or the
    /// kernel does not say.
    pub reading: Option<bool>,
    /// A process in front may pass on what is typed, as to another machine, so that its waiting says
    /// nothing of the program that gets it.
    pub relaying: bool,
}

/// What the session's shell does about what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderRest {
    /// It is in front, has read all of it, and waits for more.
    Waits,
    /// The same, but it may wait for a part of itself, for a moment.
    Pauses,
    /// Some of it is unread.
    Unread,
    /// It has read all of it, and works or is not in front.
    Works,
    /// It has read all of it; the kernel does not say what it does.
    Unknown,
}
