//! What goes with commands until they have ended: what they need, and the interrupts that are due.
//!
//! It must not know what a command needs, nor why its caller gave it up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::core::moment::Moment;
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::core::shell::kernel::Foreground;
use crate::session::actor::Actor;
use crate::session::command::Provision;
use crate::session::control::GivenUp;
use crate::session::pty::Pty;
use crate::session::pty::signal::Signal;
use crate::session::stats::Attending;

/// What goes with the commands that have not ended; bounded by how many of those are known.
#[derive(Debug, Default)]
pub(super) struct Luggage {
    /// What they need.
    provisions: BTreeMap<CommandId, Provision>,
    /// Those to be interrupted, and how far that is.
    given_up: BTreeMap<CommandId, Interrupted>,
    /// The kernel is asked meanwhile who is in front.
    attending: Option<Attending>,
    /// Whoever goes now is sent away, and gives nothing up.
    sparing: bool,
}

/// How often a command is interrupted at most.
const INTERRUPTS_MAX: u8 = 4;

/// How long the lease waits for the interrupt of a command.
const KEPT_MAX: Duration = Duration::from_secs(10);

/// How far the interrupt of a command is.
#[derive(Debug)]
struct Interrupted {
    by: GivenUp,
    times: u8,
    /// Until when its lease waits for the first time.
    kept_until: Moment,
    /// Who was in front the last time.
    front: Option<Foreground>,
    /// The writes before the first time: what is in front after another one is no part of the command.
    writes: u64,
}

impl Luggage {
    /// Keeps what a command needs until it has ended.
    pub(super) fn keep(&mut self, id: CommandId, provision: Provision) {
        self.provisions.insert(id, provision);
    }

    /// Notes that whoever goes from now on is sent away.
    pub(super) fn spare(&mut self) {
        self.sparing = true;
    }

    /// Notes that a command was given up, unless that was no act of its caller.
    pub(super) fn on_given_up(&mut self, now: Moment, by: GivenUp) {
        if !self.sparing {
            let (command, kept_until) = (by.command, now + KEPT_MAX);
            let so_far = Interrupted { by, times: 0, kept_until, front: None, writes: 0 };
            self.given_up.insert(command, so_far);
        }
    }

    /// When a lease has waited long enough for an interrupt.
    pub(super) fn deadline(&self) -> Option<Moment> {
        let waiting = self.given_up.values().filter(|so_far| so_far.by.kept.is_some());
        waiting.map(|so_far| so_far.kept_until).min()
    }
}

impl<P: Pty> Actor<P> {
    /// Whether a command may still be interrupted that was given up. It is asked before each strike,
    /// since others may have the terminal by then.
    fn may_interrupt(&mut self, given_up: &GivenUp) -> bool {
        let GivenUp { command, by, sent_in, .. } = given_up;
        match self.input.may_interrupt(self.clock.now(), by, *sent_in) {
            Ok(()) => true,
            Err(error) => {
                let session = self.identity.id;
                tracing::info!(%session, command = command.0, %error, "not interrupted");
                false
            }
        }
    }

    /// Interrupts the commands that were given up, and drops what those needed that ended.
    pub(super) fn mind_luggage(&mut self) {
        for (id, so_far) in std::mem::take(&mut self.luggage.given_up) {
            if self.screen.commands().is_open(id)
                && self.may_interrupt(&so_far.by)
                && let Some(so_far) = self.interrupt(id, so_far)
            {
                self.luggage.given_up.insert(id, so_far);
            }
        }
        let attend = || Attending::start(Arc::clone(&self.outlets.live));
        let attending = self.luggage.attending.take();
        self.luggage.attending =
            (!self.luggage.given_up.is_empty()).then(|| attending.unwrap_or_else(attend));
        let commands = self.screen.commands();
        self.luggage.provisions.retain(|id, _| commands.is_open(*id));
    }

    /// Interrupts a command that runs, and tells how far that is unless it is done.
    ///
    /// A command that was only typed waits: its shell would drop the beginning of the line that it
    /// has read, and run the rest. A shell that is about to start a program, and one that has not
    /// become it yet, may lose an interrupt; so whoever is in front next gets one, too.
    fn interrupt(&self, id: CommandId, mut so_far: Interrupted) -> Option<Interrupted> {
        if self.is_only_typed(id) {
            if so_far.kept_until <= self.clock.now() {
                so_far.by.kept = None;
            }
            return Some(so_far);
        }
        let view = self.pty.look(false).ok();
        // A shell that has come to the front again is at its prompt, and reads the next command.
        let program = view.as_ref().is_some_and(|view| !view.shell_in_front);
        let front = view.and_then(|view| view.foreground);
        // One that has just ended may not have been heard of: its shell needs what it does next.
        let again = || program && so_far.front != front && !self.output_is_on_its_way();
        let is_first = so_far.times == 0;
        if !is_first && so_far.writes != self.callers.writes {
            return None;
        }
        if is_first || again() {
            (so_far.times, so_far.front) = (so_far.times + 1, front);
            so_far.writes = self.callers.writes;
            so_far.by.kept = None;
            if let Err(error) = self.pty.signal(Signal::Interrupt) {
                tracing::debug!(session = %self.identity.id, %error, "there was nobody to interrupt");
            }
        }
        (so_far.times < INTERRUPTS_MAX).then_some(so_far)
    }

    /// Whether a shell has yet to read all of a command, or to begin it.
    fn is_only_typed(&self, id: CommandId) -> bool {
        let commands = self.screen.commands();
        let sent = commands.sent();
        let sent = sent.is_some_and(|sent| sent.id == id && sent.ends_by == EndsBy::Marks);
        let reads_on = self.frames.borrow().activity.value.state == ActivityState::NeedsInput;
        sent && commands.phase() == ShellPhase::Reading && !reads_on
    }
}
