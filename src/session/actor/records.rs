//! What the next daemon is to know: kept beside the terminal before anybody is told of it.
//!
//! It decides nothing. What is told and not kept would be another daemon's to break: a lease that two
//! have, an epoch that is given twice, a name that comes back.

use std::sync::Arc;

use crate::core::lease::LeaseManager;
use crate::core::lease::record::LeaseRecord;
use crate::session::actor::Actor;
use crate::session::pty::{Note, Pty};
use crate::session::records::identity::SessionRecord;
use crate::session::records::lease::to_note;

/// What is kept beside the terminal.
#[derive(Debug)]
pub(super) struct Records {
    session: SessionRecord,
    lease: LeaseRecord,
}

impl Records {
    /// Keeps what is known at the beginning.
    pub(super) fn begin(pty: &impl Pty, session: SessionRecord, lease: &LeaseManager) -> Self {
        let records = Self { session, lease: lease.record() };
        records.keep_again(pty);
        records
    }

    /// Keeps all of it, also what should be kept already.
    pub(super) fn keep_again(&self, pty: &impl Pty) {
        pty.remember(Note::Identity, &self.session.to_note());
        pty.remember(Note::Lease, &to_note(&self.lease));
    }

    /// What the marks of its shell carry.
    pub(super) fn nonce(&self) -> Option<Arc<str>> {
        self.session.nonce.as_ref().map(|nonce| Arc::from(nonce.as_str()))
    }
}

impl<P: Pty> Actor<P> {
    /// Keeps how the lease stands, if that is not what is kept already; to be called before anybody
    /// is told of it, and before a byte goes out under it.
    pub(super) fn remember_lease(&mut self) {
        let record = self.input.lease().record();
        if self.records.lease != record {
            self.pty.remember(Note::Lease, &to_note(&record));
            self.records.lease = record;
        }
    }

    /// Gives the session another name, and tells the one before.
    pub(super) fn rename(&mut self, name: Arc<str>) -> Arc<str> {
        self.records.session.name = Arc::clone(&name);
        self.pty.remember(Note::Identity, &self.records.session.to_note());
        self.outlets.live.set_name(name)
    }
}
