//! The interrupt of a command whose caller gives it up.
//!
//! It is armed with the order that sends the command, and goes with the answer: so it strikes also
//! when the caller has gone before the answer came. It knows nothing of terminals.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::ids::Epoch;
use crate::core::shell::commands::record::CommandId;
use crate::session::control::Urgent;
use crate::session::handle::KeepAlive;

/// A command that its caller gave up.
#[derive(Debug)]
pub struct GivenUp {
    pub command: CommandId,
    /// Who has to be allowed to write whenever the interrupt strikes.
    pub by: Caller,
    /// The holding under which the caller sent it, where that one did.
    pub sent_in: Option<Epoch>,
    /// Keeps that holding alive until the interrupt has struck, so that nobody else comes before.
    pub kept: Option<KeepAlive>,
}

/// Interrupts a command when it is dropped, unless it was disarmed.
#[derive(Debug)]
#[must_use = "the command is interrupted when this is dropped"]
pub struct Interrupt {
    urgent: Arc<Urgent>,
    armed: Option<GivenUp>,
}

impl Interrupt {
    /// Armed until it is told otherwise.
    pub(in crate::session) fn new(urgent: Arc<Urgent>, given_up: GivenUp) -> Self {
        Self { urgent, armed: Some(given_up) }
    }

    /// Nobody gave the command up.
    pub fn disarm(mut self) {
        self.armed = None;
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(given_up) = self.armed.take() {
            self.urgent.post(|entries| entries.interrupts.push_back(given_up));
        }
    }
}
