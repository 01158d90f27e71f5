//! Turns terminals that outlived their daemon into sessions again.
//! Their notes may be lost or damaged. The terminal exists anyway, so it gets a session in any case.

pub mod finding;
mod leftovers;

use std::time::Duration;

use tokio::time::timeout;

use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::input::idempotency::earlier_writes::FormerWrite;
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::LeaseManager;
use crate::core::lease::record::LeaseRecord;
use crate::core::moment::Moment;
use crate::session::actor::Setup;
use crate::session::handle::Session;
use crate::session::pty::{Note, Pty};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::records::lease;
use crate::session::registry::Registry;
use crate::session::registry::creating::make;
use crate::session::restore::OpeningState;

/// How long to hide a session until its screen shows the output that was pending when it was found. Enough to
/// read a full buffer of default size.
const CATCHES_UP: Duration = Duration::from_millis(500);

/// What the previous daemon stored beside a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredNotes {
    pub session: SessionRecord,
    pub lease: LeaseRecord,
    pub commands: CommandsRecord,
}

impl RecoveredNotes {
    /// Reads the notes of the session `id`.
    ///
    /// An unreadable identity gives a session of the tenant `own` that is named by its id. An unreadable
    /// lease note gives a free session.
    pub fn read<'a>(
        (id, own): (SessionId, &TenantId),
        kept: impl Fn(Note) -> &'a [u8],
        now: Moment,
    ) -> Self {
        let session = SessionRecord::from_note(kept(Note::Identity), id).unwrap_or_else(|error| {
            tracing::warn!(session = %id, %error, "the session's name cannot be read");
            SessionRecord::unknown(id, own.clone(), now)
        });
        let lease = lease::from_note(kept(Note::Lease)).unwrap_or_else(|error| {
            tracing::warn!(session = %id, %error, "the lease cannot be read");
            LeaseRecord::default()
        });
        let commands = CommandsRecord::from_note(kept(Note::Commands)).unwrap_or_else(|error| {
            tracing::warn!(session = %id, %error, "the stored commands cannot be read; numbering continues from the screen");
            CommandsRecord::default()
        });
        Self { session, lease, commands }
    }
}

#[derive(Debug)]
pub struct FoundTerminal<P> {
    pub notes: RecoveredNotes,
    pub pty: P,
    pub pid: i32,
    pub opening: OpeningState,
    /// The highest epoch under which input was sent.
    pub newest: Epoch,
    /// How many bytes of input with an epoch the terminal took in all, if the shim counts them.
    pub typed: Option<u64>,
    /// The last writes with idempotency keys, oldest first.
    pub writes: Vec<FormerWrite>,
    /// What the write switches allow for this session.
    pub window: WriteWindow,
}

impl Registry {
    /// Makes a session from a terminal that outlived its daemon. Waits until its screen shows the pending
    /// output and its sockets are open.
    ///
    /// Its lease can be reclaimed for [`LeaseManager::RECLAIM_FOR`]. It keeps its name. If another session of
    /// the tenant took that name, it gets a number.
    pub async fn recover<P: Pty>(&self, survivor: FoundTerminal<P>) -> Session {
        let FoundTerminal { notes, pty, pid, mut opening, newest, typed, mut writes, window } =
            survivor;
        let RecoveredNotes { session: mut record, lease, mut commands } = notes;
        if let Some(unsent) = commands.take_unsent(typed) {
            opening.screen.withdraw(unsent);
        }
        commands.cover(opening.screen.commands().last());
        commands.uncovered.retain(|command| command.offset >= opening.covered);
        opening.screen.number_commands_after(commands.last_before(&commands.uncovered));
        commands.tell_of(&mut writes);
        record.size = Some(opening.screen.size());
        record.name = self.keep_name(&record.tenant, &record.name, record.id);
        let now = self.clock().now();
        let held = lease.holding.as_ref().map(|holding| holding.lease);
        let lease = LeaseManager::recovered(lease, newest, self.limits().lease.clone(), now);
        let input = Input::new(lease, window).with_former(now, writes).after_paste(commands.paste);
        let told = self.recorder().told(record.id);
        let recording = self.noted_recording(&record);
        let setup = Setup { record, commands, opening, told, recording, input, pty };
        let (session, task) = make(self, pid, setup);
        let task = tokio::spawn(task);
        // A terminal that falls silent again is shown as it was stored.
        let _ = timeout(CATCHES_UP, session.live().caught_up()).await;
        self.list(&session, held);
        self.look_after(session.clone(), task);
        tracing::info!(session = %session.id(), name = %session.name(), "session resumed");
        self.end_silence(session.id());
        self.announce(&session).await;
        session
    }
}

#[cfg(test)]
pub(crate) mod tests;
