//! The interrupt of a command whose caller gives it up.
//!
//! It is armed with the order that sends the command, and goes with the answer: so it strikes also
//! when the caller has gone before the answer came. It knows nothing of terminals.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::commands::record::CommandId;
use crate::core::policy::Permit;
use crate::session::urgent::Urgent;

/// Interrupts a command when it is dropped, unless it was disarmed.
#[derive(Debug)]
#[must_use = "the command is interrupted when this is dropped"]
pub struct Interrupt {
    urgent: Arc<Urgent>,
    command: Option<CommandId>,
    /// Who has to be allowed to write when it strikes; none where the end of the lease disarms it.
    by: Option<Caller>,
}

impl Interrupt {
    /// Armed until it is told otherwise.
    pub(in crate::session) fn new(urgent: Arc<Urgent>, command: CommandId) -> Self {
        Self { urgent, command: Some(command), by: None }
    }

    /// The same for a caller who has no lease: it strikes where that one may still write then, and
    /// nobody else who is there has the lease.
    pub fn by(mut self, _permit: &Permit, caller: Caller) -> Self {
        self.by = Some(caller);
        self
    }

    /// Nobody gave the command up.
    pub fn disarm(mut self) {
        self.command = None;
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(command) = self.command {
            let by = self.by.take();
            self.urgent.post(|entries| entries.interrupts.push_back((command, by)));
        }
    }
}
