//! How the marks of a shell begin and end commands.
//!
//! Marks come in the order in which a shell writes them, and a shell may leave some out: a prompt
//! without an end before it ends what runs all the same.

use std::sync::Arc;

use crate::core::caller::PrincipalName;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::mark::{Mark, MarkKind};
use crate::core::shell::commands::record::{CommandId, CommandRecord, Here, Position};
use crate::core::shell::commands::{Commands, EndsBy, SentCommand, ShellPhase};

impl Commands {
    /// Takes a mark of the shell in. `typed` is what stands between where it began to read and the
    /// cursor, for a shell that does not tell the command it read.
    pub fn on_mark(
        &mut self,
        mark: Mark,
        here: &Here,
        by: Option<&PrincipalName>,
        directory: Option<&Arc<str>>,
        typed: impl FnOnce(Position) -> String,
    ) {
        match mark.kind {
            MarkKind::PromptStart => {
                self.on_prompt(here, mark.untold);
                self.bound = mark.bound;
                self.phase = ShellPhase::Prompting;
                self.prompts += 1;
            }
            // A program may show the prompt as well.
            MarkKind::PromptEnd if self.phase == ShellPhase::Running => {
                self.prompted_at = Some(here.position);
            }
            MarkKind::PromptEnd => {
                if self.phase == ShellPhase::Reading && self.sent_by_marks() {
                    self.prompted_at = Some(here.position);
                }
                self.on_reading(here);
            }
            // A pasted text of several lines runs as one command after the other.
            MarkKind::Started if self.phase == ShellPhase::Running => {}
            MarkKind::Started => self.on_start(mark.text, here, by, directory, typed),
            MarkKind::OutputEnd => self.end_output(here),
            MarkKind::Ended(code) => self.on_end(code, here),
        }
    }

    /// Takes it that what was sent has begun: the shell may have said so in output that was lost, and
    /// whoever is told that it never ran runs it again.
    pub fn on_lost_output(&mut self) {
        if self.phase != ShellPhase::Running && self.sent_by_marks() {
            self.phase = ShellPhase::Running;
            self.reading_at = None;
        }
    }

    /// The shell reads a line from here on, whatever it told of the end of what ran before.
    ///
    /// One that ran a command and told nothing of the prompt behind it may not tell of the next command
    /// either, so that nothing is expected of it until it does.
    pub fn on_reading(&mut self, here: &Here) {
        (self.phase, self.reading_at) = if self.phase == ShellPhase::Running {
            // What stands on this row is a prompt, unless the end of the output was marked.
            let position = Position { col: 0, ..here.position };
            self.finish_marked(&Here { position, ..*here }, None);
            (ShellPhase::Unmarked, None)
        } else {
            (ShellPhase::Reading, Some(here.position))
        };
    }

    fn on_start(
        &mut self,
        told: Option<String>,
        here: &Here,
        by: Option<&PrincipalName>,
        directory: Option<&Arc<str>>,
        typed: impl FnOnce(Position) -> String,
    ) {
        let begun = self.sent_to_shell();
        self.phase = ShellPhase::Running;
        (self.prompted_at, self.end_told) = (None, false);
        let reading_at = self.reading_at.take();
        let id = begun.unwrap_or_else(|| {
            let text = told.or_else(|| reading_at.map(typed)).unwrap_or_default();
            let mut record =
                CommandRecord::open(self.next_id(), text.trim(), here.now, here.position);
            record.by = by.map(|by| Arc::from(by.to_string()));
            let id = record.id;
            self.push(record);
            id
        });
        self.change(id, |record| {
            record.directory = directory.cloned();
            (record.from, record.echo_lines) = (here.position, 0);
        });
    }

    /// What was sent to the shell itself, from now on by marks: one that tells of the beginning tells of
    /// the end.
    fn sent_to_shell(&mut self) -> Option<CommandId> {
        let marks_again = self.phase == ShellPhase::Unmarked;
        let sent = self.sent.as_mut()?;
        if sent.ends_by == EndsBy::Kernel && marks_again {
            sent.ends_by = EndsBy::Marks;
        }
        (sent.ends_by == EndsBy::Marks).then_some(sent.id)
    }

    /// A prompt without an end of the command before it: the shell could not read the line, or tells
    /// of no command at all, as it says then.
    fn on_prompt(&mut self, here: &Here, untold: bool) {
        self.prompted_at = None;
        let moved = self.reading_at.is_none_or(|at| at.row < here.position.row);
        match self.phase {
            ShellPhase::Running => self.finish_marked(here, None),
            ShellPhase::Prompting | ShellPhase::Reading if moved => {
                // An end came before the prompt otherwise, and forgot where a line was read.
                if self.reading_at.is_some() {
                    self.idled = here.mark;
                }
                if self.sent_by_marks() {
                    let ran = untold || self.sent.as_ref().is_some_and(SentCommand::is_comment);
                    self.finish_sent(here, Evidence::Osc133, ran);
                }
            }
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Unmarked => {}
        }
    }

    fn sent_by_marks(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.ends_by == EndsBy::Marks)
    }

    fn on_end(&mut self, code: Option<i32>, here: &Here) {
        if self.phase == ShellPhase::Running {
            self.prompted_at = None;
            self.finish_marked(here, code);
            self.phase = ShellPhase::Prompting;
            self.reading_at = None;
        }
    }

    /// The output has ended, and what the shell writes from here on is its own.
    fn end_output(&mut self, here: &Here) {
        if self.phase == ShellPhase::Running
            && let Some(id) = self.running().map(|record| record.id)
        {
            self.change(id, |record| record.to = Some(here.position));
        }
    }

    /// A zsh is about to write its sign for a missing line end. It says so where all programs can, which may end no
    /// output by it.
    pub(crate) fn on_told_end(&mut self) {
        self.end_told |= self.phase == ShellPhase::Running;
    }

    /// Whether what runs under the shell's marks writes no more: the shell is on its way to its prompt.
    pub fn output_has_ended(&self) -> bool {
        let marked = || self.running().is_some_and(|record| record.to.is_some());
        self.phase == ShellPhase::Running && (self.end_told || marked())
    }

    /// Ends what runs under the shell's marks, and whatever was sent to it.
    fn finish_marked(&mut self, here: &Here, code: Option<i32>) {
        let ids = self.unfinished();
        let outer = ids.first().copied();
        for id in ids {
            let code = code.filter(|_| Some(id) == outer);
            self.finish(id, here, code, Evidence::Osc133, true);
        }
    }

    /// Ends what the shell showed its prompt after, at [`Self::prompted_at`], and waits again.
    pub fn on_prompted(&mut self, here: &Here) {
        let Some(at) = self.prompted_at.take() else { return };
        // Where the prompt begins on its row nobody has told.
        let here = Here { position: Position { col: 0, ..at }, ..*here };
        match self.phase {
            ShellPhase::Running => {
                self.finish_marked(&here, None);
                (self.phase, self.reading_at) = (ShellPhase::Reading, Some(at));
            }
            ShellPhase::Reading => self.finish_sent(&here, Evidence::Osc133, false),
            ShellPhase::Prompting | ShellPhase::Unmarked => {}
        }
    }
}
