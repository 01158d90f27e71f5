//! What happens in a session, told as events.

use crate::core::event::source::{EventSource, ToldEvents};
use crate::core::event::{Event, EventScope};
use crate::core::frame::Frame;
use crate::core::ids::TenantId;
use crate::core::journal::JournalEntry;
use crate::core::moment::Moment;
use crate::core::screen::sequence::Report;
use crate::session::actor::Actor;
use crate::session::pty::Pty;

#[derive(Debug)]
pub(super) struct SessionEvents {
    tenant: TenantId,
    source: EventSource,
}

impl SessionEvents {
    /// `told` is what a daemon before told, if the session is of one.
    pub(super) fn begin(tenant: TenantId, first: &Frame, told: Option<ToldEvents>) -> Self {
        Self { tenant, source: EventSource::begin(first, told) }
    }

    /// How much of the output from `offset` on was looked through before, in bytes.
    pub(super) fn told_bytes(&self, offset: u64) -> u64 {
        self.source.told_bytes(offset)
    }
}

impl<P: Pty> Actor<P> {
    /// Tells what the newest frame shows to have happened.
    pub(super) fn tell_events_of_frame(&mut self, now: Moment) {
        self.events.source.on_frame(now, &self.frames.borrow());
        self.tell_found_events();
    }

    /// Takes what programs sent in this piece of the output.
    pub(super) fn take_reports(&mut self, now: Moment, piece: (u64, u64)) {
        let (reports, left_out) = self.screen.take_reports();
        for directory in reports.iter().filter_map(Report::directory) {
            self.outlets.live.set_directory(directory);
        }
        self.events.source.on_reports(now, reports, left_out, piece);
        self.tell_found_events();
    }

    pub(super) fn events_due(&self) -> Option<Moment> {
        self.events.source.due()
    }

    pub(super) fn tell_due_events(&mut self) {
        let now = self.clock.now();
        if self.events_due().is_some_and(|due| due <= now) {
            self.events.source.on_time(now, &self.frames.borrow());
            self.tell_found_events();
        }
    }

    fn tell_found_events(&mut self) {
        for event in self.events.source.take() {
            self.tell_event(event);
        }
    }

    pub(super) fn tell_event(&mut self, event: Event) {
        self.record_event(&event);
        let scope = EventScope { tenant: &self.events.tenant, session: Some(self.id) };
        self.outlets.recorder.note(&JournalEntry::Event { scope, event });
    }
}
