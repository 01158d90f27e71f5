//! What the registry and the floors above record of sessions and of the daemon.

use crate::core::event::{Event, EventScope};
use crate::core::journal::JournalEntry;
use crate::session::handle::Session;
use crate::session::recorder::ActRecorder;
use crate::session::registry::Registry;

impl Registry {
    /// Records an event of a session, or of the daemon.
    pub fn tell_event(&self, session: Option<&Session>, event: Event) {
        let tenant = session.map_or(&self.0.own_tenant, Session::tenant);
        self.tell_event_in(EventScope { tenant, session: session.map(Session::id) }, event);
    }

    /// Records an event for those who may see this.
    pub fn tell_event_in(&self, scope: EventScope<'_>, event: Event) {
        self.0.recorder.note(&JournalEntry::Event { scope, event });
    }

    /// The way to the journal.
    pub fn recorder(&self) -> &ActRecorder {
        &self.0.recorder
    }
}
