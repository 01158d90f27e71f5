//! Handing over what a daemon to come needs of a session.
//!
//! It knows no shim: the terminal says when it needs the room. The newest is also what this daemon makes
//! the screen of again, should it fail. Before anybody is told of it, what
//! cannot be made anew from the output is kept: watermarks that are given out, which command is sent, and
//! that one began; and right after, when one ended. All else is made anew from the output behind the
//! checkpoint. Of a command that is sent to a shell with marks a note is enough.

use std::io::ErrorKind;
use std::time::Duration;

use crate::core::frame::history::History;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::commands::{Commands, EndsBy};
use crate::session::actor::Actor;
use crate::session::off_worker::{is_large, while_others_go_on};
use crate::session::pty::{Pty, TerminalCheckpoint};
use crate::session::records::commands::UncoveredCommand;

/// How long the output must be silent before what it left is kept, and how long until a checkpoint
/// is tried again that was not taken.
const QUIET: Duration = Duration::from_secs(1);

/// How old what is kept may become where the output never falls silent.
const AGE_MAX: Duration = Duration::from_secs(5);

/// How long after the frame with the end of a command that is kept: callers who wait for it go first, and those
/// of several short commands are kept at once.
const AFTER_END: Duration = Duration::from_millis(10);

/// How many rows of history are handed over within a moment.
const LARGE_ROWS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct KeptScreen {
    /// The row after the newest one of history that is kept; none when nothing is.
    rows: Option<RowNumber>,
    /// The highest watermark that may be published.
    reserved: Watermark,
    commands: Milestones,
    /// What the kernel or the prompt told of the commands since; the output does not tell it again.
    judged: bool,
    /// When a frame first told of the end of a command that is not kept.
    owed_since: Option<Moment>,
    /// When output last came, and when the first came that nothing kept covers.
    output_at: Moment,
    unkept_since: Option<Moment>,
    /// When is looked whether the output is silent.
    due: Option<Moment>,
    /// Before when none is tried, after one that was not taken.
    retry_at: Moment,
    /// The newest one that was made, whether or not it was taken.
    saved: Option<Saved>,
}

/// What the screen is made of again, should it fail.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) snapshot: Vec<u8>,
    /// Of the same moment; it shares its rows with that of the screen.
    pub(super) history: History,
    /// The output before it is on the screen.
    pub(super) offset: u64,
}

/// What of the commands only whoever saw it can tell: that another one was sent or began, or that one
/// ended, each at its moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Milestones {
    last: CommandId,
    unfinished: usize,
}

impl Milestones {
    fn of(commands: &Commands) -> Self {
        let unfinished = commands.iter().filter(|record| record.finish.is_none()).count();
        Self { last: commands.last(), unfinished }
    }
}

impl KeptScreen {
    /// Nothing is kept yet but history before this row.
    pub(super) fn begin(rows: Option<RowNumber>, now: Moment) -> Self {
        Self {
            rows,
            reserved: Watermark(0),
            commands: Milestones::default(),
            judged: false,
            owed_since: None,
            output_at: now,
            unkept_since: None,
            due: None,
            retry_at: now,
            saved: None,
        }
    }

    pub(super) fn saved(&self) -> Option<&Saved> {
        self.saved.as_ref()
    }

    fn is_large(&self, screen: &Screen) -> bool {
        let since = self.rows.unwrap_or_default().max(screen.history().first());
        let new = screen.history_end().0.saturating_sub(since.0);
        is_large(screen.size()) || new > LARGE_ROWS
    }

    /// Relies on nothing that was kept before; the next checkpoint is whole, and can be tried now.
    pub(super) fn forget(&mut self) {
        (self.rows, self.retry_at) = (None, Moment::default());
    }

    /// Notes that it was judged of the commands what no output tells.
    pub(super) fn on_judged(&mut self) {
        self.judged = true;
    }

    /// Hands over a checkpoint of the screen, which has seen all output before the offset, and says whether it
    /// was taken.
    pub(super) fn keep(
        &mut self,
        pty: &impl Pty,
        (screen, offset): (&mut Screen, u64),
        now: Moment,
        quiet: bool,
    ) -> bool {
        // The last one there may be is tried in any case.
        if now < self.retry_at && !quiet {
            return false;
        }
        let made = screen.checkpoint(self.rows.unwrap_or_default());
        let checkpoint = TerminalCheckpoint {
            offset,
            snapshot: made.snapshot,
            rows: made.rows,
            whole: self.rows.is_none(),
            first_row: made.first_row,
            end_row: made.end_row,
            quiet,
        };
        let history = screen.history().clone();
        let taken = pty.commit(&checkpoint);
        self.saved = Some(Saved { snapshot: checkpoint.snapshot, history, offset });
        let is_taken = taken.is_ok();
        match taken {
            Ok(()) => {
                (self.rows, self.reserved) = (Some(made.end_row), made.reserved);
                (self.commands, self.owed_since) = (Milestones::of(screen.commands()), None);
                (self.unkept_since, self.judged) = (None, false);
                // The terminal still has to hear that nothing more is expected.
                self.due = self.due.filter(|_| !quiet);
            }
            // The terminal is gone, and there is nothing left to keep.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                (self.reserved, self.due) = (Watermark(u64::MAX), None);
                (self.commands, self.owed_since) = (Milestones::of(screen.commands()), None);
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint of a session was not stored");
                self.retry_at = now + QUIET;
                self.due = Some(self.retry_at);
            }
        }
        is_taken
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn checkpoint_now(&mut self, quiet: bool) {
        self.flush_recording();
        let now = self.clock.now();
        if quiet && self.pty.is_loose() {
            self.kept.rows = None;
        }
        let large = self.kept.is_large(&self.screen);
        let mut keep =
            || self.kept.keep(&*self.pty, (&mut *self.screen, self.unfed.offset), now, quiet);
        let taken = if large { while_others_go_on(keep) } else { keep() };
        if taken {
            self.records.cover(self.screen.commands().last(), &*self.pty);
        }
    }

    /// Hands over a checkpoint when the terminal needs the room, or the output has fallen silent or goes
    /// on for so long that what is kept is out of date.
    pub(super) fn checkpoint_if_due(&mut self) {
        let owed_at = self.end_owed_at();
        if self.pty.owes(self.unfed.offset) || owed_at.is_some_and(|at| at <= self.clock.now()) {
            self.checkpoint_now(false);
        }
        let Some(due) = self.kept.due else { return };
        let now = self.clock.now();
        let silent_at = self.kept.output_at + QUIET;
        if due <= now && silent_at <= now {
            self.checkpoint_now(true);
            self.remember_stillness();
            self.unfed.rest();
        } else if due <= now {
            self.kept.due = Some(silent_at);
            if self.kept.unkept_since.is_some_and(|since| now.since(since) >= AGE_MAX) {
                self.checkpoint_now(false);
            }
        }
    }

    /// Hands over a checkpoint when the next frame could not be published without.
    pub(super) fn checkpoint_for_frame(&mut self) {
        if self.frames.borrow().watermark >= self.kept.reserved {
            self.checkpoint_now(false);
        }
        self.keep_commands();
    }

    /// Keeps a command that was not kept; to be called before anybody is told of it, and before a
    /// byte of it goes out.
    pub(super) fn keep_commands(&mut self) {
        if self.kept.commands.last != self.screen.commands().last() {
            self.checkpoint_now(false);
        }
        self.remember_commands(None);
    }

    /// Keeps a command that was just queued, behind all other writes; to be called before a byte of it goes out.
    pub(super) fn keep_sent(&mut self, id: CommandId) {
        let before = self.input.queued_before_last() as u64;
        let typed_before = self.pty.typed().map(|typed| typed + before);
        let commands = self.screen.commands();
        let sent = commands.sent().filter(|sent| sent.id == id && sent.ends_by == EndsBy::Marks);
        let repeatable = self.kept.rows.is_some() && !self.kept.judged;
        if repeatable
            && let (Some(record), Some(sent)) = (commands.get(id), sent)
            && self.records.note_uncovered(UncoveredCommand::of(record, sent, self.unfed.offset))
        {
            self.kept.commands = Milestones::of(commands);
            self.remember_commands(typed_before);
        } else {
            // A checkpoint alone would say that it was sent.
            self.remember_commands(typed_before);
            self.keep_commands();
        }
    }

    /// Notes that a frame was published, which may tell of the end of a command that is not kept.
    pub(super) fn note_told(&mut self, now: Moment) {
        if self.kept.commands != Milestones::of(self.screen.commands()) {
            self.kept.owed_since.get_or_insert(now);
        }
    }

    /// When the end of a command is to be kept that was told.
    fn end_owed_at(&self) -> Option<Moment> {
        self.kept.owed_since.map(|since| (since + AFTER_END).max(self.kept.retry_at))
    }

    pub(super) fn note_output(&mut self) {
        let now = self.clock.now();
        self.kept.output_at = now;
        self.kept.unkept_since.get_or_insert(now);
        self.kept.due.get_or_insert(now + QUIET);
    }

    pub(super) fn checkpoint_due(&self) -> Option<Moment> {
        self.kept.due.into_iter().chain(self.end_owed_at()).min()
    }
}
