//! The recording of the session's output.
//!
//! What was recorded is in the file before a checkpoint covers it, so that the next daemon reads the rest again.

use std::io;

use crate::core::caller::PrincipalName;
use crate::core::event::Event;
use crate::core::frame::Exit;
use crate::core::lease::view::LeaseChange;
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::session::actor::Actor;
use crate::session::control::RecordingOrder;
use crate::session::pty::Pty;
use crate::session::recording::asciicast::CastEvent;
use crate::session::recording::{Recording, RecordingPlan};

impl<P: Pty> Actor<P> {
    /// Begins the recording that is noted, or continues it.
    pub(super) fn resume_recording(&mut self, plan: RecordingPlan) {
        let name = plan.file_name();
        let (now, offset, size) = (self.clock.now(), self.unfed.offset, self.screen.size());
        let recording = Recording::open(plan, now, offset, size);
        if !recording.is_over() {
            self.asciicast = Some(Box::new(recording));
            self.outlets.live.set_recording(name);
        }
    }

    pub(super) fn on_recording_order(&mut self, order: RecordingOrder) -> io::Result<bool> {
        match order {
            RecordingOrder::Begin(plan) => self.begin_recording(*plan),
            RecordingOrder::End(by) => Ok(self.end_recording(&by)),
        }
    }

    fn begin_recording(&mut self, plan: RecordingPlan) -> io::Result<bool> {
        if self.asciicast.is_some() {
            return Ok(false);
        }
        let plan = RecordingPlan { nonce: self.records.nonces().own.clone(), ..plan };
        let name = plan.file_name();
        let (now, offset, size) = (self.clock.now(), self.unfed.offset, self.screen.size());
        let mut recording = Recording::open(plan, now, offset, size);
        recording.flush(now, offset, &mut self.screen);
        recording.take_failure()?;
        if let Some(exit) = self.ending.exit {
            recording.end(now, CastEvent::exit(exit).as_ref());
            recording.flush(now, offset, &mut self.screen);
            return Ok(true);
        }
        self.asciicast = Some(Box::new(recording));
        self.note_recording(name);
        Ok(true)
    }

    fn end_recording(&mut self, by: &PrincipalName) -> bool {
        let now = self.clock.now();
        let Some(recording) = &mut self.asciicast else { return false };
        recording.mark(now, &format!("{by} ended the recording"));
        recording.end(now, None);
        self.flush_recording();
        true
    }

    /// Takes output that the screen is about to see.
    pub(super) fn record_output(&mut self, now: Moment, bytes: &[u8]) {
        if let Some(recording) = &mut self.asciicast {
            recording.on_output(now, self.unfed.offset, bytes, &mut self.screen);
        }
    }

    /// Writes what was recorded; to be called before a checkpoint covers it.
    pub(super) fn flush_recording(&mut self) {
        let Some(recording) = &mut self.asciicast else { return };
        recording.flush(self.clock.now(), self.unfed.offset, &mut self.screen);
        if recording.is_over() {
            self.asciicast = None;
            self.note_recording(None);
        }
    }

    pub(super) fn recording_due(&self) -> Option<Moment> {
        self.asciicast.as_ref()?.due()
    }

    /// Notes that the screen is not what the recorded output makes of it.
    pub(super) fn forget_recorded(&mut self) {
        if let Some(recording) = &mut self.asciicast {
            recording.forget();
        }
    }

    /// Sets the markers that were asked for from outside.
    pub(super) fn take_markers(&mut self) {
        let now = self.clock.now();
        for marker in self.reserve.inbox.markers.drain(..) {
            if let Some(recording) = &mut self.asciicast {
                recording.mark(now, &one_line(&marker));
            }
        }
    }

    /// Records how the program ended.
    pub(super) fn record_exit(&mut self, exit: Exit) {
        let now = self.clock.now();
        if let Some(recording) = &mut self.asciicast {
            recording.end(now, CastEvent::exit(exit).as_ref());
            self.flush_recording();
        }
    }

    /// Records what an event tells those who watch a replay.
    pub(super) fn record_event(&mut self, event: &Event) {
        let now = self.clock.now();
        let Some(recording) = &mut self.asciicast else { return };
        if let Some(marker) = marker_of(event) {
            recording.mark(now, &one_line(&marker));
        }
    }
}

/// The marker for an event that has one.
fn marker_of(event: &Event) -> Option<String> {
    Some(match event {
        Event::Lease { holder, change, .. } => {
            let holder = holder.name();
            match change {
                LeaseChange::Granted | LeaseChange::Revived | LeaseChange::Resumed => {
                    format!("lease: {holder}")
                }
                LeaseChange::Renewed => return None,
                LeaseChange::Suspended { by } => format!("keyboard: {by}"),
                LeaseChange::Ended(cause) => {
                    format!("lease of {holder} ended: {}", cause.as_str())
                }
            }
        }
        Event::CommandStarted { text, .. } => format!("$ {text}"),
        Event::CommandEnded { code: Some(code), .. } => format!("exit code {code}"),
        Event::CommandEnded { code: None, .. } => "exit code unknown".to_owned(),
        // Sent as markers where they happen.
        Event::Attached { .. }
        | Event::Detached { .. }
        | Event::DaemonStopped { .. }
        | Event::ConfigurationRead { .. }
        | Event::SessionCreated { .. }
        | Event::SessionRenamed { .. }
        | Event::SessionEnded { .. }
        | Event::SessionRemoved
        | Event::NeedsInput { .. }
        | Event::Bell { .. }
        | Event::Notification { .. }
        | Event::Progress { .. }
        | Event::LeftOut { .. }
        | Event::WritingSwitched { .. }
        | Event::ApprovalAsked { .. }
        | Event::ApprovalDecided { .. }
        | Event::Fault { .. } => return None,
    })
}
