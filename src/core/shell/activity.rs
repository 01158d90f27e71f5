//! What a terminal is doing, how that is known, and what the kernel says of it.

use std::sync::Arc;

use crate::core::command_line::is_shell;

/// Shells that never mark their prompts, whatever they were started with.
const UNMARKING: [&str; 11] =
    ["ash", "busybox", "dash", "ksh", "ksh2020", "ksh93", "lksh", "mksh", "oksh", "sh", "yash"];

/// What a terminal is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityState {
    Prompt,
    /// A program works.
    #[default]
    Running,
    /// A program, or a shell within a command, waits for input.
    NeedsInput,
    /// A program waits for a line that it does not show, such as a password.
    SecretPrompt,
    /// A program has the whole screen to itself and takes keys.
    FullScreen,
    /// The program that the session was started with has ended.
    Exited,
    /// A program is silent, and the kernel does not say whether it works or waits for input.
    Unknown,
}

impl ActivityState {
    /// The word for it in the protocol and in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Running => "running",
            Self::NeedsInput => "needs_input",
            Self::SecretPrompt => "secret_prompt",
            Self::FullScreen => "full_screen",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        }
    }
}

/// How something is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// The shell marked it (OSC 133).
    Osc133,
    /// The kernel says so: foreground group, modes of the terminal, who reads from it.
    Kernel,
    /// The text before the cursor looks like it.
    Pattern,
    /// Nothing has been written for a while.
    #[default]
    Idle,
    Exit,
}

/// What a terminal is doing, how that is known, and what the kernel says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub state: ActivityState,
    pub evidence: Evidence,
    pub foreground: Option<Foreground>,
    pub canonical: bool,
    pub echo: bool,
}

/// The process group that may read the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreground {
    pub group: i32,
    /// The name of its leader's program as the kernel has it, at most 15 bytes.
    pub program: Option<Arc<str>>,
}

impl Foreground {
    /// Whether its program is a shell, by its name.
    pub fn is_shell(&self) -> bool {
        self.program.as_deref().is_some_and(is_shell)
    }
}

/// What the kernel knew of a terminal when it was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelView {
    pub foreground: Option<Foreground>,
    /// The session was started with an interactive shell, which is in front.
    pub shell_in_front: bool,
    pub canonical: bool,
    pub echo: bool,
    /// Whether a process in front waits for the terminal in a read; none if it was not looked for, or the
    /// kernel does not say.
    pub reading: Option<bool>,
    /// A process in front waits for the terminal and nothing else, for a time.
    pub selects: bool,
    /// A process in front was running just then; false if it was not looked for.
    pub works: bool,
    /// A process in front may pass on what is typed, as to another machine, so that its waiting says
    /// nothing of the program that gets it.
    pub relaying: bool,
}

impl KernelView {
    /// Whether the session's shell is in front, and is one that never marks its prompts.
    pub(super) fn has_unmarking_shell(&self) -> bool {
        let program = self.foreground.as_ref().and_then(|group| group.program.as_deref());
        self.shell_in_front && program.is_some_and(|program| UNMARKING.contains(&program))
    }

    /// Whether the session's shell is in front, or another one.
    pub(super) fn has_shell_in_front(&self) -> bool {
        self.shell_in_front || self.foreground.as_ref().is_some_and(Foreground::is_shell)
    }
}

/// Whether the program in front has done all that it does about what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idleness {
    /// It has read all of it, and waits for more input and nothing else.
    Waits,
    /// The same, but it may wait for other events too, or for a part of itself.
    Sleeps,
    /// It runs, or has not read all, or the kernel does not say.
    Works,
}

/// What the session's shell does about what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderRest {
    /// It is in front, has read all of it, and waits for more.
    Waits,
    /// The same, but it may wait for a part of itself, for a moment.
    Pauses,
    Unread,
    /// It has read all of it, and works or is not in front.
    Works,
    /// It has read all of it; the kernel does not say what it does.
    Unknown,
}
