//! What a terminal is doing, and how that is known.

use crate::core::shell::kernel::Foreground;

/// What a terminal is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityState {
    /// A shell waits for a command.
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
    /// The program ended.
    Exit,
}

/// What a terminal is doing, how that is known, and what the kernel says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub state: ActivityState,
    pub evidence: Evidence,
    pub foreground: Option<Foreground>,
    /// The kernel collects input into lines.
    pub canonical: bool,
    /// The kernel shows what is typed.
    pub echo: bool,
}
