//! Whether a terminal takes a command, by what its end will be known, and the keys that empty the line
//! editor first.

use std::iter;
use std::sync::Arc;

use crate::core::keys::Key;
use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, KernelView};
use crate::core::shell::commands::record::Position;
use crate::core::shell::commands::{Commands, EndsBy, ShellPhase};
use crate::core::shell::kernel_polling::{MARKS_PATIENCE, SOON};
use crate::core::shell::prompt_text::{is_continuation, is_prompt, is_question};
use crate::core::shell::{ScreenFacts, Shell};

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

impl Readiness {
    /// How a command would end that is typed now; none if it takes none.
    pub fn ends_by(&self) -> Option<EndsBy> {
        if let Self::Ready(prompt) = self { Some(prompt.ends_by) } else { None }
    }
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
        let marks_expected = self.marks_expected && !self.is_unmarking();
        let unmarked_yet = marks_expected && now.since(self.polling.stirred_at) < MARKS_PATIENCE;
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
                if marks_expected && is_question(before) =>
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
                if !self.prompted && (marks_expected || in_front) =>
            {
                Readiness::Starting
            }
            (ActivityState::NeedsInput, ShellPhase::Running | ShellPhase::Unmarked)
                if !in_front && self.takes_command(facts) =>
            {
                ready(EndsBy::Prompt)
            }
            // A shell in the place of the one that marks is believed after a moment.
            (ActivityState::NeedsInput, ShellPhase::Running)
                if in_front
                    && ((edits || self.is_unmarking()) && self.is_other_shell(before)
                        || self.is_at_told_prompt(facts)) =>
            {
                Readiness::Soon
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

impl Shell {
    /// Whether this is the prompt of another shell than the one that marks. That asks for a number behind `#?`.
    pub(super) fn is_other_shell(&self, before: &str) -> bool {
        is_prompt(before) && !before.contains('?')
    }

    /// Whether the session's shell is one that never marks its prompts.
    pub(super) fn is_unmarking(&self) -> bool {
        self.seen().is_some_and(KernelView::has_unmarking_shell)
    }

    /// Whether what runs in the terminal takes a command.
    fn takes_command(&self, facts: &ScreenFacts<'_>) -> bool {
        let (sent, before) = (facts.commands.sent(), facts.before_cursor);
        match sent.is_some_and(|sent| sent.ends_by == EndsBy::Prompt) {
            true => is_continuation(before),
            false => {
                is_prompt(before)
                    || is_continuation(before)
                    || self.is_at_no_prompt()
                    || self.is_at_told_prompt(facts)
            }
        }
    }
}

/// A shell that searches in a thread, and shows what it found also when nobody searches any more: it is
/// given no key before ours that changes what is searched. No key waits there for a second for long.
const SEARCHES_LATE: &str = "fish";

/// How many rows of text that stands on the line already are cleared.
const CLEARED_ROWS_MAX: u64 = 64;

impl Shell {
    /// What empties the line that a marked shell reads: of what was left there, of a key that waits for its
    /// second and shows nothing, and of a mode in which the line editor takes no command.
    pub fn emptying(&self, commands: &Commands, cursor: Position) -> Vec<Key> {
        let between = self.typed.between;
        let Some(at) = commands.reading_at().filter(|at| *at != cursor || between) else {
            return Vec::new();
        };
        let rows = cursor.row.0.saturating_sub(at.row.0).min(CLEARED_ROWS_MAX);
        // One for the text of each line, and one for what parts it from the line before.
        let kills = 2 * rows as usize + 1;
        let mut keys =
            if between { self.leaving_modes(commands, at != cursor) } else { Vec::new() };
        keys.push(Key::LINE_END);
        keys.extend(iter::repeat_n(Key::KILL_LINE, kills));
        keys
    }

    /// The keys that leave the mode of the line editor: what is pending may take the first
    /// [`Key::EMPTY_LINE`], the next may only have text taken again, and the last empties the line.
    fn leaving_modes(&self, commands: &Commands, shows_text: bool) -> Vec<Key> {
        if !commands.knows_key() {
            return vec![Key::KILL_LINE];
        }
        let foreground = self.seen().and_then(|seen| seen.foreground.as_ref());
        let program = foreground.and_then(|group| group.program.as_deref());
        if program == Some(SEARCHES_LATE) {
            return vec![Key::EMPTY_LINE; 2];
        }
        // The first ends what waits for a key, and questions of the editor, which take no other key.
        let mut keys = vec![Key::BACKSPACE, Key::KILL_LINE];
        if shows_text {
            // A search of vi knows no key of ours, and ends by this one once it is empty.
            keys.push(Key::BACKSPACE);
        }
        keys.extend([Key::EMPTY_LINE; 3]);
        keys
    }
}
