//! Interrupts a command when its caller gives it up.
//! The guard is armed when the command is sent and travels with the answer. So it also works if the caller
//! leaves before the answer.

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
    /// The caller that must be allowed to write when the interrupt is sent.
    pub by: Caller,
    /// The epoch of the lease under which the caller sent the command, if it had one.
    pub sent_in: Option<Epoch>,
    /// Keeps that lease alive until the interrupt is sent, so that no other caller can acquire it first.
    pub kept: Option<KeepAlive>,
}

/// Interrupts a command when dropped, unless disarmed.
#[derive(Debug)]
#[must_use = "the command is interrupted when this is dropped"]
pub struct Interrupt {
    urgent: Arc<Urgent>,
    armed: Option<GivenUp>,
}

impl Interrupt {
    pub(in crate::session) fn new(urgent: Arc<Urgent>, given_up: GivenUp) -> Self {
        Self { urgent, armed: Some(given_up) }
    }

    /// The caller did not give the command up.
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
