//! The judgement: what the terminal is doing.

use crate::core::moment::Moment;
use crate::core::shell::activity::{Activity, ActivityState, Evidence, KernelView};
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::core::shell::{ScreenFacts, Shell, ShellView};

impl Shell {
    /// Judges what the terminal is doing, and whether it takes a command.
    pub fn judge(&mut self, now: Moment, facts: &ScreenFacts<'_>) -> (Activity, ShellView) {
        let (state, evidence) = self.state(now, facts);
        self.asked_secret = state == ActivityState::SecretPrompt;
        let view =
            ShellView { readiness: self.readiness(now, facts, state), waits: self.waits(state) };
        let kernel = self.seen();
        let activity = Activity {
            state,
            evidence,
            foreground: kernel.and_then(|kernel| kernel.foreground.clone()),
            canonical: kernel.is_some_and(|kernel| kernel.canonical),
            echo: kernel.is_some_and(|kernel| kernel.echo),
        };
        (activity, view)
    }

    fn state(&self, now: Moment, facts: &ScreenFacts<'_>) -> (ActivityState, Evidence) {
        let judged = self.state_of_front(facts);
        let sent = facts.commands.sent().filter(|sent| sent.ends_by == EndsBy::Prompt);
        match sent {
            // It has yet to be read, or what is shown may be the next prompt.
            Some(sent)
                if judged.0 == ActivityState::NeedsInput
                    && (!self.moved_on(sent, facts)
                        || is_prompt(facts.before_cursor) && !self.other_prompt_stands(now)) =>
            {
                (ActivityState::Running, judged.1)
            }
            Some(_) | None => judged,
        }
    }

    pub(super) fn state_of_front(&self, facts: &ScreenFacts<'_>) -> (ActivityState, Evidence) {
        if facts.exited {
            return (ActivityState::Exited, Evidence::Exit);
        }
        let phase = facts.commands.phase();
        let Some(kernel) = self.seen() else { return without_kernel(phase) };
        let prompting = matches!(phase, ShellPhase::Prompting | ShellPhase::Reading);
        // A program that was killed leaves the other screen behind, and the shell goes on there.
        if facts.alternate && !(prompting && kernel.shell_in_front) {
            let evidence = if kernel.canonical { Evidence::Pattern } else { Evidence::Kernel };
            return (ActivityState::FullScreen, evidence);
        }
        match phase {
            ShellPhase::Prompting | ShellPhase::Reading if kernel.shell_in_front => {
                match self.reads_on(facts) {
                    true => (ActivityState::NeedsInput, Evidence::Osc133),
                    false => (ActivityState::Prompt, Evidence::Osc133),
                }
            }
            ShellPhase::Unmarked if kernel.shell_in_front => {
                self.unmarked_shell(kernel, facts.before_cursor)
            }
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Unmarked => {
                self.program(kernel, facts.before_cursor, Evidence::Kernel)
            }
            ShellPhase::Running => self.program(kernel, facts.before_cursor, Evidence::Osc133),
        }
    }

    /// A shell with a line editor turns canonical mode off while it waits; one without waits in a read,
    /// at its prompt and for its command `read`.
    fn unmarked_shell(&self, kernel: &KernelView, before: &str) -> (ActivityState, Evidence) {
        let (quiet, prompted) = (self.polling.quiet(), self.is_known_prompt(before));
        if quiet && !prompted && self.typed.prompt.is_some() && is_continuation(before) {
            return (ActivityState::NeedsInput, Evidence::Pattern);
        }
        if !kernel.canonical {
            // It does so before it writes its prompt. A line editor shows by itself what is typed.
            let state = match self.polling.settled() {
                false => ActivityState::Running,
                true if kernel.echo && !prompted => ActivityState::Unknown,
                true => ActivityState::Prompt,
            };
            return (state, Evidence::Kernel);
        }
        // At its prompt it shows nothing that is typed either, once it was told so.
        if self.hides_a_line(kernel) && !prompted {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        let asks = before.trim().is_empty() || is_question(before);
        match kernel.reading {
            // The kernel knows that it reads before its prompt has come here.
            Some(true) if asks && !prompted => {
                let state = if quiet { ActivityState::NeedsInput } else { ActivityState::Running };
                (state, Evidence::Kernel)
            }
            Some(true) => (ActivityState::Prompt, Evidence::Kernel),
            None if quiet => (ActivityState::Prompt, Evidence::Idle),
            Some(false) | None => (ActivityState::Running, Evidence::Kernel),
        }
    }

    /// Whether a line is waited for that will not be shown. Echo is turned off before the question is
    /// written, and may be off for a while after the answer was read.
    fn hides_a_line(&self, kernel: &KernelView) -> bool {
        let asked = self.asked_secret && !self.typed.answered;
        let waits = kernel.reading.unwrap_or(self.polling.quiet()) || asked;
        kernel.canonical && !kernel.echo && waits
    }

    fn program(
        &self,
        kernel: &KernelView,
        before: &str,
        running: Evidence,
    ) -> (ActivityState, Evidence) {
        if self.hides_a_line(kernel) {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        if !self.polling.quiet() || kernel.reading == Some(false) && kernel.canonical {
            return (ActivityState::Running, running);
        }
        if !kernel.canonical && !kernel.relaying || kernel.reading == Some(true) {
            return (ActivityState::NeedsInput, Evidence::Kernel);
        }
        match is_question(before) || is_prompt(before) {
            true => (ActivityState::NeedsInput, Evidence::Pattern),
            false => (ActivityState::Unknown, Evidence::Kernel),
        }
    }
}

fn without_kernel(phase: ShellPhase) -> (ActivityState, Evidence) {
    match phase {
        ShellPhase::Prompting | ShellPhase::Reading => (ActivityState::Prompt, Evidence::Osc133),
        ShellPhase::Running => (ActivityState::Running, Evidence::Osc133),
        ShellPhase::Unmarked => (ActivityState::Unknown, Evidence::Idle),
    }
}

/// What a POSIX shell shows where a command goes on (`PS2`).
const CONTINUATION: &str = ">";

const QUESTION_ENDS: [char; 4] = ['?', ':', ']', ')'];
const PROMPT_ENDS: [char; 7] = ['$', '#', '%', '>', '❯', '»', 'λ'];

pub(super) fn is_question(text: &str) -> bool {
    text.trim_end().ends_with(QUESTION_ENDS)
}

pub(super) fn is_prompt(text: &str) -> bool {
    text.trim_end().ends_with(PROMPT_ENDS)
}

pub(super) fn is_continuation(text: &str) -> bool {
    text.trim() == CONTINUATION
}
