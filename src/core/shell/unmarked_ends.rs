//! Ends of commands that the shell does not mark, and prompts whose marks are missing.

use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, Evidence};
use crate::core::shell::commands::{EndsBy, SentCommand, ShellPhase};
use crate::core::shell::kernel_polling::OTHER_PROMPT_QUIET;
use crate::core::shell::prompt_text::{ends_with_prompt, is_continuation, is_prompt};
use crate::core::shell::{ScreenFacts, Shell};

/// What the commands are to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnding {
    /// The shell waits behind a prompt before which it marked no end.
    Prompted,
    /// The shell reads a line, though it marked no end of its prompt.
    Reading,
    Finished(Evidence),
}

impl Shell {
    /// What has ended; to be asked until there is nothing more, and after each look at the kernel.
    pub fn next_ending(&self, now: Moment, facts: &ScreenFacts<'_>) -> Option<CommandEnding> {
        if self.is_prompted(facts) {
            return Some(CommandEnding::Prompted);
        }
        if self.reads_without_prompt(facts) {
            return Some(CommandEnding::Reading);
        }
        let sent = facts.commands.sent()?;
        self.ready_again(now, sent, facts).map(CommandEnding::Finished)
    }

    fn edits(&self) -> bool {
        self.seen().is_some_and(|seen| seen.shell_in_front && !seen.canonical)
    }

    /// Whether a shell without a line editor and without marks took the place of the one that marks, and reads a line.
    fn reads_lines_without_marks(&self) -> bool {
        self.is_unmarking() && self.seen().is_some_and(|seen| seen.reading == Some(true))
    }

    fn is_prompted(&self, facts: &ScreenFacts<'_>) -> bool {
        self.settled() && facts.commands.prompted_at() == Some(facts.cursor) && self.edits()
    }

    /// Whether a shell that marks its commands reads a line though its prompt has no end, since it was
    /// interrupted while it made it, or no beginning either, since its marks were taken away. What asks
    /// within a prompt reads without a line editor.
    fn reads_without_prompt(&self, facts: &ScreenFacts<'_>) -> bool {
        match facts.commands.phase() {
            ShellPhase::Prompting => self.polling.quiet() && self.rests && self.edits(),
            ShellPhase::Running => {
                // A command may have put another shell in the place of the one that marks.
                let other = || {
                    let reads = self.edits() || self.reads_lines_without_marks();
                    self.polling.quiet() && reads && self.is_other_shell(facts.before_cursor)
                        || self.is_at_told_prompt(facts)
                };
                self.settled() && self.rests && (facts.commands.output_has_ended() || other())
            }
            ShellPhase::Reading | ShellPhase::Unmarked => false,
        }
    }

    /// How it is known that what a command was sent to is ready again.
    fn ready_again(
        &self,
        now: Moment,
        sent: &SentCommand,
        facts: &ScreenFacts<'_>,
    ) -> Option<Evidence> {
        let told = facts.commands.is_told(sent);
        if !self.settled() || !told && !self.moved_on(sent, facts) {
            return None;
        }
        let before = facts.before_cursor;
        let returned = ends_with_prompt(before, &sent.prompt);
        let (state, evidence) = self.state_of_front(now, facts);
        match sent.ends_by {
            EndsBy::Marks => None,
            // The kernel knows that a shell reads before its prompt has come here. Another prompt than the
            // one before is believed when nothing follows.
            EndsBy::Kernel => {
                let returned = told || returned || self.polling.quiet();
                let evidence = if told { Evidence::Osc133 } else { evidence };
                (state == ActivityState::Prompt && returned).then_some(evidence)
            }
            EndsBy::Prompt => {
                let same = if sent.prompt.is_empty() { self.is_at_no_prompt() } else { returned };
                let other =
                    is_prompt(before) && !is_continuation(before) && self.other_prompt_stands(now);
                let waits = matches!(state, ActivityState::NeedsInput | ActivityState::Prompt);
                if told && self.is_at_told_prompt(facts) {
                    return waits.then_some(Evidence::Osc133);
                }
                (self.polling.quiet() && waits && (same || other)).then_some(Evidence::Pattern)
            }
        }
    }

    pub(super) fn other_prompt_stands(&self, now: Moment) -> bool {
        now.since(self.polling.stirred_at) >= OTHER_PROMPT_QUIET
    }

    /// Whether more came since a command was sent than a prompt that stands still.
    pub(super) fn moved_on(&self, sent: &SentCommand, facts: &ScreenFacts<'_>) -> bool {
        let started = facts.commands.get(sent.id).map(|record| record.from);
        match sent.ends_by {
            EndsBy::Marks => false,
            EndsBy::Kernel | EndsBy::Prompt if sent.rows_moved => true,
            EndsBy::Kernel => started.is_none_or(|at| at != facts.cursor),
            EndsBy::Prompt => started.is_none_or(|at| at.row != facts.cursor.row),
        }
    }
}
