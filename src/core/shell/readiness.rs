//! Whether a terminal takes a command, and by what its end will be known.

use std::sync::Arc;

use crate::core::moment::Moment;
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::core::shell::timing::{MARKS_PATIENCE, SOON};
use crate::core::shell::{ScreenFacts, Shell, text};

/// Whether a terminal takes a command now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    Ready(ReadyPrompt),
    /// Its shell is on its way to a prompt, which takes as long as it takes.
    Starting,
    /// It may become ready by itself within `SOON`.
    #[default]
    Soon,
    /// Something runs in it.
    Busy,
    /// Something waits for input behind this text.
    Asks(Arc<str>),
}

/// What a command would be typed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyPrompt {
    pub ends_by: EndsBy,
    /// It has a line editor; else the kernel collects its lines.
    pub edits: bool,
}

impl Shell {
    pub(super) fn readiness(
        &mut self,
        now: Moment,
        facts: &ScreenFacts<'_>,
        state: ActivityState,
    ) -> Readiness {
        let readiness = self.readiness_but_for_time(now, facts, state);
        match readiness {
            Readiness::Ready(_) => (self.active_at, self.prompted) = (now, true),
            Readiness::Starting => self.active_at = now,
            Readiness::Soon if now.since(self.active_at) >= SOON => return Readiness::Busy,
            Readiness::Soon | Readiness::Busy | Readiness::Asks(_) => {}
        }
        readiness
    }

    fn readiness_but_for_time(
        &self,
        now: Moment,
        facts: &ScreenFacts<'_>,
        state: ActivityState,
    ) -> Readiness {
        let (commands, before) = (facts.commands, facts.before_cursor);
        let in_front = self.seen().is_some_and(|seen| seen.shell_in_front);
        let edits = self.seen().is_none_or(|seen| !seen.canonical);
        let ready = |ends_by| Readiness::Ready(ReadyPrompt { ends_by, edits });
        let unmarked_yet = self.marks_expected && now.since(self.looks.stirred_at) < MARKS_PATIENCE;
        match (state, commands.phase()) {
            // What was sent has yet to be read, or interrupted.
            (ActivityState::Prompt, ShellPhase::Reading | ShellPhase::Unmarked)
                if commands.sent().is_some() =>
            {
                Readiness::Soon
            }
            (ActivityState::Prompt, ShellPhase::Reading) if self.typed.ahead => Readiness::Starting,
            (ActivityState::Prompt, ShellPhase::Reading) => ready(EndsBy::Marks),
            // A file that the shell reads at its start asks for a key.
            (ActivityState::Prompt, ShellPhase::Unmarked)
                if self.marks_expected && text::is_question(before) =>
            {
                Readiness::Asks(before.into())
            }
            (ActivityState::Prompt, ShellPhase::Unmarked) if unmarked_yet => Readiness::Starting,
            // It reads bytes without a line editor, and so no line that ends where it should.
            (ActivityState::Prompt, ShellPhase::Unmarked)
                if self.seen().is_some_and(|seen| !seen.canonical && seen.echo) =>
            {
                Readiness::Soon
            }
            (ActivityState::Prompt, ShellPhase::Unmarked) => ready(EndsBy::Kernel),
            // Also while a program runs that makes the prompt.
            (
                ActivityState::Prompt | ActivityState::Running | ActivityState::Unknown,
                ShellPhase::Prompting,
            ) => Readiness::Starting,
            (ActivityState::Running | ActivityState::Unknown, ShellPhase::Unmarked)
                if !self.prompted && (self.marks_expected || in_front) =>
            {
                Readiness::Starting
            }
            (ActivityState::NeedsInput, ShellPhase::Running | ShellPhase::Unmarked)
                if !in_front
                    && text::is_prompt(before)
                    && commands.sent().is_none_or(|sent| sent.ends_by != EndsBy::Prompt) =>
            {
                ready(EndsBy::Prompt)
            }
            (ActivityState::NeedsInput | ActivityState::SecretPrompt, _) => {
                match before.trim().is_empty() {
                    true => Readiness::Busy,
                    false => Readiness::Asks(before.into()),
                }
            }
            (ActivityState::Prompt | ActivityState::Running | ActivityState::Unknown, _) => {
                Readiness::Soon
            }
            (ActivityState::FullScreen, _) => Readiness::Soon,
            (ActivityState::Exited, _) => Readiness::Busy,
        }
    }
}
