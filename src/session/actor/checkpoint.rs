//! Handing over what a daemon to come needs of a session.
//!
//! It knows no holder: the terminal says when a checkpoint is due.

use std::sync::Arc;

use crate::session::actor::Actor;
use crate::session::pty::{Checkpoint, Pty};

impl<P: Pty> Actor<P> {
    /// Hands over a checkpoint when the terminal needs the room.
    pub(super) fn commit_if_due(&self) {
        if self.pty.owes(self.offset) {
            let history = Arc::clone(&self.frames.borrow().history);
            self.pty.commit(Checkpoint {
                offset: self.offset,
                snapshot: Vec::new(),
                rows: Vec::new(),
                first_row: history.first(),
                end_row: history.end(),
                quiet: false,
            });
        }
    }
}
