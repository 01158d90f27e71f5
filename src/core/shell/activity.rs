//! What a terminal is doing, judged from what is known about it.
//!
//! The kernel's view comes first wherever it decides; then what the shell says of itself; what the
//! screen shows comes last. It reads no kernel and no clock: whoever looks says what it saw.

use std::sync::Arc;

/// What a terminal is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityState {
    /// A shell waits for a command.
    Prompt,
    /// A program works.
    #[default]
    Running,
    /// A program waits for something to be typed.
    NeedsInput,
    /// A program waits for a line that it does not show, such as a password.
    SecretPrompt,
    /// A program has the whole screen to itself and takes keys.
    FullScreen,
    /// The program that the session was started with has ended.
    Exited,
}

impl ActivityState {
    /// Whether a program waits for somebody to type.
    pub fn wants_input(self) -> bool {
        match self {
            Self::NeedsInput | Self::SecretPrompt | Self::FullScreen => true,
            Self::Prompt | Self::Running | Self::Exited => false,
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
    /// What the screen shows looks like it.
    Pattern,
    /// Nothing has been written for a while.
    #[default]
    Idle,
    /// The program ended.
    Exit,
}

/// The process group that may read the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreground {
    /// Its number.
    pub group: i32,
    /// The name of its leader's program as the kernel has it, at most 15 bytes.
    pub program: Option<Arc<str>>,
}

/// What the kernel knew of a terminal when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelView {
    pub foreground: Option<Foreground>,
    /// The session was started with an interactive shell, and that one is in front.
    pub shell_in_front: bool,
    /// The kernel collects input into lines.
    pub canonical: bool,
    /// The kernel shows what is typed.
    pub echo: bool,
    /// Whether somebody in front waits for the terminal in a read; none where nobody looked or the
    /// kernel does not say.
    pub reading: Option<bool>,
    /// Somebody in front may hand on what is typed, as to another machine or another terminal, so that
    /// its waiting says nothing of whoever gets it.
    pub relaying: bool,
}

/// Where a shell is between its prompts, as it marked it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellPhase {
    /// It marks nothing, has not yet, or does not any more.
    #[default]
    Unmarked,
    /// It writes its prompt, or is about to.
    Prompting,
    /// It reads a command line.
    Reading,
    /// A command runs.
    Running,
}

/// What a terminal is doing, and how that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub state: ActivityState,
    pub evidence: Evidence,
    pub foreground: Option<Foreground>,
    /// The session was started with an interactive shell, and that one is in front.
    pub shell_in_front: bool,
    /// The kernel collects input into lines.
    pub canonical: bool,
    /// The kernel shows what is typed.
    pub echo: bool,
}

/// All that an activity is judged from.
#[derive(Clone, Copy, Debug)]
pub struct Signs<'a> {
    /// None when the kernel could not be asked.
    pub kernel: Option<&'a KernelView>,
    pub shell: ShellPhase,
    /// The alternate screen is shown.
    pub alternate: bool,
    pub exited: bool,
    /// Nothing was written or typed for long enough that a program that wants input has said so.
    pub quiet: bool,
    /// All was looked at since something was written or typed, and all that was written has come.
    pub settled: bool,
    /// A secret was asked for when this was judged last.
    pub asked_secret: bool,
    /// What stands on the row of the cursor before it.
    pub before_cursor: &'a str,
    /// That ends as the prompt did that the shell showed before.
    pub prompt_shown: bool,
    /// The shell has read a line that is not all of a command, and shows that it reads on.
    pub unfinished: bool,
}

impl Activity {
    /// Judges what the terminal is doing.
    pub fn judge(signs: &Signs<'_>) -> Self {
        let (state, evidence) = signs.state();
        let kernel = signs.kernel;
        Self {
            state,
            evidence,
            foreground: kernel.and_then(|kernel| kernel.foreground.clone()),
            shell_in_front: kernel.is_some_and(|kernel| kernel.shell_in_front),
            canonical: kernel.is_some_and(|kernel| kernel.canonical),
            echo: kernel.is_some_and(|kernel| kernel.echo),
        }
    }
}

impl Signs<'_> {
    fn state(&self) -> (ActivityState, Evidence) {
        if self.exited {
            return (ActivityState::Exited, Evidence::Exit);
        }
        let Some(kernel) = self.kernel else { return self.without_kernel() };
        let prompting = matches!(self.shell, ShellPhase::Prompting | ShellPhase::Reading);
        // A program that was killed leaves it behind, and the shell goes on there.
        if self.alternate && !(prompting && kernel.shell_in_front) {
            let evidence = if kernel.canonical { Evidence::Pattern } else { Evidence::Kernel };
            return (ActivityState::FullScreen, evidence);
        }
        match self.shell {
            ShellPhase::Prompting | ShellPhase::Reading if kernel.shell_in_front => {
                match self.unfinished && self.quiet {
                    true => (ActivityState::NeedsInput, Evidence::Pattern),
                    false => (ActivityState::Prompt, Evidence::Osc133),
                }
            }
            ShellPhase::Unmarked if kernel.shell_in_front => self.unmarked_shell(kernel),
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Unmarked => {
                self.program(kernel, Evidence::Kernel)
            }
            ShellPhase::Running => self.program(kernel, Evidence::Osc133),
        }
    }

    fn without_kernel(&self) -> (ActivityState, Evidence) {
        match self.shell {
            ShellPhase::Prompting | ShellPhase::Reading => {
                (ActivityState::Prompt, Evidence::Osc133)
            }
            ShellPhase::Running => (ActivityState::Running, Evidence::Osc133),
            ShellPhase::Unmarked => (ActivityState::Running, Evidence::Idle),
        }
    }

    /// A shell with line editing turns canonical mode off while it waits; one without waits in a
    /// read, and what it does itself it does without.
    fn unmarked_shell(&self, kernel: &KernelView) -> (ActivityState, Evidence) {
        if self.unfinished && self.quiet {
            return (ActivityState::NeedsInput, Evidence::Pattern);
        }
        if !kernel.canonical {
            // It does so before it writes its prompt.
            let state = if self.settled { ActivityState::Prompt } else { ActivityState::Running };
            return (state, Evidence::Kernel);
        }
        // At its prompt it shows nothing of a command either, once it was told so.
        if self.hides_a_line(kernel) && !self.prompt_shown {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        // It reads for itself at its prompt, and for its command `read`.
        let asks = self.before_cursor.trim().is_empty() || is_question(self.before_cursor);
        match kernel.reading {
            // The kernel knows that it reads before its prompt has come here.
            Some(true) if asks => {
                let state =
                    if self.quiet { ActivityState::NeedsInput } else { ActivityState::Running };
                (state, Evidence::Kernel)
            }
            Some(true) => (ActivityState::Prompt, Evidence::Kernel),
            None if self.quiet => (ActivityState::Prompt, Evidence::Idle),
            Some(false) | None => (ActivityState::Running, Evidence::Kernel),
        }
    }

    /// Whether a line is waited for that will not be shown. Echo is turned off before the question is
    /// written, and may be off for a while after the answer was read.
    fn hides_a_line(&self, kernel: &KernelView) -> bool {
        let waits = kernel.reading.unwrap_or(self.quiet) || self.asked_secret;
        kernel.canonical && !kernel.echo && waits
    }

    fn program(&self, kernel: &KernelView, running: Evidence) -> (ActivityState, Evidence) {
        if self.hides_a_line(kernel) {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        if !self.quiet {
            return (ActivityState::Running, running);
        }
        if !kernel.canonical && !kernel.relaying || kernel.reading == Some(true) {
            return (ActivityState::NeedsInput, Evidence::Kernel);
        }
        let prompted = asks(self.before_cursor) || kernel.relaying && prompts(self.before_cursor);
        if kernel.reading.is_none() && prompted {
            return (ActivityState::NeedsInput, Evidence::Pattern);
        }
        (ActivityState::Running, running)
    }
}

/// Whether a line looks like a question that waits for its answer behind it.
pub fn asks(before_cursor: &str) -> bool {
    let asked = before_cursor.trim_end();
    asked.ends_with(['?', ':', ']', ')', '>'])
}

/// Whether a line looks like a question, and not like a prompt.
pub fn is_question(before_cursor: &str) -> bool {
    asks(before_cursor) && !prompts(before_cursor)
}

/// Whether a line ends as a shell's or an interpreter's prompt does.
pub fn prompts(before_cursor: &str) -> bool {
    before_cursor.trim_end().ends_with(['$', '#', '%', '>', '❯', '»', 'λ'])
}

/// Whether a line is what POSIX shells show first when a command is not all there (`PS2`).
pub fn asks_for_more(before_cursor: &str) -> bool {
    before_cursor.trim() == ">"
}

/// Whether a row is one on which shells read the rest of a command: zsh says what is still open, as
/// in `dquote> `.
pub fn reads_on(row: &str) -> bool {
    let open = |text: &str| text.chars().all(|char| char.is_ascii_lowercase() || char == ' ');
    row.split_once('>').is_some_and(|(before, _)| open(before))
}

#[cfg(test)]
mod tests;
