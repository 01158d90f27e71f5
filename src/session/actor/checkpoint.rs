//! Handing over what a daemon to come needs of a session.
//!
//! It knows no holder: the terminal says when it needs the room. What is kept covers all that
//! anybody was told, so no frame is published whose watermark could come again.

use std::io::ErrorKind;
use std::time::Duration;

use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::session::actor::Actor;
use crate::session::pty::{Checkpoint, Pty};

/// How long the output must be silent before what it left is kept, and how long until a checkpoint
/// is tried again that was not taken.
const QUIET: Duration = Duration::from_secs(1);

/// What is kept of the screen.
#[derive(Debug)]
pub(super) struct Kept {
    /// The row after the newest one of history that is kept; none when nothing is.
    rows: Option<RowNumber>,
    /// The highest watermark that may be published.
    reserved: Watermark,
    /// When output last came.
    output_at: Moment,
    /// When is looked whether the output is silent.
    due: Option<Moment>,
    /// Before when none is tried, after one that was not taken.
    retry_at: Moment,
}

impl Kept {
    /// Keeps the screen that a session begins with, so that its first frame may be published.
    pub(super) fn begin(
        pty: &impl Pty,
        (screen, offset): (&mut Screen, u64),
        rows: Option<RowNumber>,
        now: Moment,
    ) -> Self {
        let mut kept =
            Self { rows, reserved: Watermark(0), output_at: now, due: None, retry_at: now };
        kept.keep(pty, (screen, offset), now, false);
        kept
    }

    /// Relies on nothing that was kept before; the next checkpoint is whole, and can be tried now.
    pub(super) fn forget(&mut self) {
        (self.rows, self.retry_at) = (None, Moment::default());
    }

    /// Hands over a checkpoint of the screen, which has seen all output before the offset.
    fn keep(
        &mut self,
        pty: &impl Pty,
        (screen, offset): (&mut Screen, u64),
        now: Moment,
        quiet: bool,
    ) {
        if !pty.outlives_daemon() {
            self.reserved = Watermark(u64::MAX);
            return;
        }
        if now < self.retry_at {
            return;
        }
        let made = screen.checkpoint(self.rows.unwrap_or_default());
        let checkpoint = Checkpoint {
            offset,
            snapshot: made.snapshot,
            rows: made.rows,
            whole: self.rows.is_none(),
            first_row: made.first_row,
            end_row: made.end_row,
            quiet,
        };
        match pty.commit(&checkpoint) {
            Ok(()) => {
                (self.rows, self.reserved) = (Some(made.end_row), made.reserved);
                self.due = None;
            }
            // The terminal is gone, and there is nothing left to keep.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                (self.reserved, self.due) = (Watermark(u64::MAX), None);
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint of a session was not kept");
                self.retry_at = now + QUIET;
                self.due = Some(self.retry_at);
            }
        }
    }
}

impl<P: Pty> Actor<P> {
    /// Hands over a checkpoint now; `quiet` when nothing more is expected soon.
    pub(super) fn checkpoint_now(&mut self, quiet: bool) {
        let now = self.clock.now();
        self.kept.keep(&*self.pty, (&mut self.screen, self.offset), now, quiet);
    }

    /// Hands over a checkpoint when the terminal needs the room, or the output has fallen silent.
    pub(super) fn checkpoint_if_due(&mut self) {
        if self.pty.owes(self.offset) {
            self.checkpoint_now(false);
        }
        let Some(due) = self.kept.due else { return };
        let now = self.clock.now();
        let silent_at = self.kept.output_at + QUIET;
        if due <= now && silent_at <= now {
            self.checkpoint_now(true);
        } else if due <= now {
            self.kept.due = Some(silent_at);
        }
    }

    /// Hands over a checkpoint when the next frame could not be published without.
    pub(super) fn checkpoint_for_frame(&mut self) {
        if self.frames.borrow().watermark >= self.kept.reserved {
            self.checkpoint_now(false);
        }
    }

    /// Notes that output came that nothing kept covers.
    pub(super) fn note_output(&mut self) {
        if self.pty.outlives_daemon() {
            let now = self.clock.now();
            self.kept.output_at = now;
            self.kept.due.get_or_insert(now + QUIET);
        }
    }

    /// When is to be looked whether the output has fallen silent.
    pub(super) fn checkpoint_due(&self) -> Option<Moment> {
        self.kept.due
    }
}
