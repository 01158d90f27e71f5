//! What the next daemon is to know: kept beside the terminal before anybody is told of it.
//!
//! It decides nothing. What is told and not kept would be another daemon's to break: a lease that two
//! have, an epoch that is given twice, a name that comes back, a number of two commands.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::frame::{Exit, Size};
use crate::core::ids::Epoch;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::request::InputEvent;
use crate::core::lease::LeaseManager;
use crate::core::lease::record::{LeaseParty, LeaseRecord};
use crate::core::shell::commands::record::CommandId;
use crate::session::actor::Actor;
use crate::session::pty::shell::Nonces;
use crate::session::pty::{Note, Pty};
use crate::session::records::commands::{CommandsRecord, UncoveredCommand};
use crate::session::records::identity::SessionRecord;
use crate::session::records::{Gap, Gaps, Stillness, lease};

#[derive(Debug)]
pub(super) struct Records {
    session: SessionRecord,
    lease: LeaseRecord,
    commands: CommandsRecord,
    gaps: Gaps,
}

impl Records {
    pub(super) fn begin(
        session: SessionRecord,
        commands: CommandsRecord,
        lease: &LeaseManager,
        gaps: Gaps,
    ) -> Self {
        Self { session, lease: lease.record(), commands, gaps }
    }

    /// The highest epoch that anybody was told of.
    pub(super) fn epoch(&self) -> Epoch {
        self.lease.epoch
    }

    /// What is known of the commands besides the screen.
    pub(super) fn commands(&self) -> &CommandsRecord {
        &self.commands
    }

    /// Notes a command that no checkpoint covers, for the next note, and says whether there is room for it.
    pub(super) fn note_uncovered(&mut self, command: UncoveredCommand) -> bool {
        self.commands.note_uncovered(command)
    }

    /// Forgets the newest command if nothing of it was sent.
    pub(super) fn take_unsent(&mut self, pty: &impl Pty) -> Option<CommandId> {
        self.commands.take_unsent(pty.typed())
    }

    /// Notes that a checkpoint covers the commands up to this one.
    pub(super) fn cover(&mut self, last: CommandId, pty: &impl Pty) {
        if self.commands.cover(last) {
            pty.remember(Note::Commands, &self.commands.to_note());
        }
    }

    /// Keeps all of it, also what should be kept already.
    pub(super) fn keep_again(&self, pty: &impl Pty) {
        self.keep_identity(pty);
        pty.remember(Note::Lease, &lease::to_note(&self.lease));
        pty.remember(Note::Commands, &self.commands.to_note());
        if !self.gaps.as_slice().is_empty() {
            pty.remember(Note::Gaps, &self.gaps.to_note());
        }
    }

    fn keep_identity(&self, pty: &impl Pty) {
        pty.remember(Note::Identity, &self.session.to_note());
        pty.entrust(&self.session.without_secret().to_note());
    }

    /// What the marks of its shells carry.
    pub(super) fn nonces(&self) -> &Nonces {
        &self.session.nonces
    }
}

impl<P: Pty> Actor<P> {
    /// Keeps how the lease stands, if that is not what is kept already; to be called before anybody
    /// is told of it, and before a byte goes out under it.
    pub(super) fn remember_lease(&mut self) {
        let record = self.input.lease().record();
        if self.records.lease != record {
            self.pty.remember(Note::Lease, &lease::to_note(&record));
            self.records.lease = record;
        }
        self.note_parties();
    }

    /// Notes who has a lease and what is to be told, for the case that the task fails: whoever is no
    /// longer known to have one is among those to be told, whatever fails in between.
    fn note_parties(&mut self) {
        let known = |party: &LeaseParty, (lease, epoch, holder)| party.is_of(lease, epoch, holder);
        let lease = self.input.lease();
        let same = lease.parties().count() == self.reserve.parties.len()
            && self
                .reserve
                .parties
                .iter()
                .zip(lease.parties())
                .all(|(party, held)| known(party, held));
        let of = |(lease, epoch, holder): (_, _, &Caller)| LeaseParty {
            lease,
            epoch,
            holder: holder.clone(),
        };
        let others: Option<Vec<_>> = (!same).then(|| lease.parties().map(of).collect());
        // No part is asked from here on.
        let events = self.input.take_events();
        for event in &events {
            match event {
                InputEvent::Lease(event) => {
                    self.outlets.live.note_holder(event.holder.principal);
                }
                InputEvent::Discarded(_) => {}
            }
        }
        self.reserve.untold.extend(events);
        if let Some(parties) = others {
            self.reserve.parties = parties;
        }
    }

    /// Keeps the number of the newest command, if it is not kept already; to be called before anybody
    /// is told of it. If it was sent, it begins after so many typed bytes.
    pub(super) fn remember_commands(&mut self, typed_before: Option<u64>) {
        let last = self.screen.commands().last();
        if self.records.commands.last < last {
            self.records.commands.last = last;
            self.records.commands.typed_before = typed_before;
            self.pty.remember(Note::Commands, &self.records.commands.to_note());
        }
    }

    /// Notes which command a call sends that may be asked for again; it is kept with its number.
    pub(super) fn note_call(&mut self, stamp: WriteStamp, command: CommandId) {
        self.records.commands.note_call(stamp, command);
    }

    /// Keeps how many bytes a call writes that may be asked for again; to be called before the first of
    /// them goes out.
    pub(super) fn remember_length(&mut self, stamp: WriteStamp, length: usize) {
        self.records.commands.note_length(stamp, length);
        self.pty.remember(Note::Commands, &self.records.commands.to_note());
    }

    /// Keeps whether the program is in the middle of a paste, if that is not kept already.
    pub(super) fn remember_paste(&mut self, open: bool) {
        if self.records.commands.paste != open {
            self.records.commands.paste = open;
            self.pty.remember(Note::Commands, &self.records.commands.to_note());
        }
    }

    /// Keeps that output was lost; to be called before a frame shows what came behind it.
    pub(super) fn remember_gap(&mut self, gap: Gap) {
        self.records.gaps.add(gap);
        self.pty.remember(Note::Gaps, &self.records.gaps.to_note());
        self.outlets.live.set_gaps(self.records.gaps.clone());
    }

    /// Keeps which file records the session, so that the next daemon goes on with it.
    pub(super) fn note_recording(&mut self, file: Option<Arc<str>>) {
        self.outlets.live.set_recording(file.clone());
        self.records.session.recording = file;
        self.records.keep_identity(&*self.pty);
    }

    pub(super) fn remember_size(&mut self, size: Size) {
        self.records.session.size = Some(size);
        self.records.keep_identity(&*self.pty);
    }

    /// Keeps since when the screen is as it is, for as long as no output follows.
    pub(super) fn remember_stillness(&self) {
        if self.ending.exit == Some(Exit::Lost) {
            return;
        }
        let at = self.outlets.live.changed_at(&self.frames.borrow());
        let still = Stillness { offset: self.unfed.offset, at };
        self.pty.remember(Note::Terminal, &still.to_note());
    }

    /// Gives the session another name, and tells the one before.
    pub(super) fn rename(&mut self, name: Arc<str>) -> Arc<str> {
        self.records.session.name = Arc::clone(&name);
        self.records.keep_identity(&*self.pty);
        self.outlets.live.set_name(name)
    }
}
