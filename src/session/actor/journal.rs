//! What a session has recorded: bytes before they are queued, what became of them, and what happens to its lease.

use std::collections::HashMap;
use std::time::Duration;

use crate::core::caller::Caller;
use crate::core::ids::Epoch;
use crate::core::input::request::{Completion, DiscardCause, Discarded, WriteId, WriteOutcome};
use crate::core::journal::{ActContent, ActOutcome, Intent, JournalEntry, RecordNumber};
use crate::core::keys::Unit;
use crate::core::moment::Moment;
use crate::core::policy::Door;
use crate::session::actor::Actor;
use crate::session::command::{Content, WriteOrder};
use crate::session::error::SessionError;
use crate::session::pty::Pty;

/// After this pause, and after so many bytes, what a person types is another act.
const BURST_PAUSE: Duration = Duration::from_secs(1);
const BURST_BYTES: usize = 4_096;

/// The acts of a session whose outcome is awaited.
#[derive(Debug, Default)]
pub(super) struct RecordedActs {
    writes: HashMap<WriteId, RecordedWrite>,
    burst: Option<TypingBurst>,
    /// Takes effect in the current step.
    current: Option<RecordNumber>,
}

#[derive(Debug)]
enum RecordedWrite {
    Act {
        of: RecordNumber,
        /// Of the lease under which it was queued.
        epoch: Option<Epoch>,
        /// Not even its length is recorded.
        is_secret: bool,
    },
    /// A part of what this person types.
    Typing(Caller),
}

/// What one person types without a pause.
#[derive(Debug)]
struct TypingBurst {
    of: RecordNumber,
    by: Caller,
    epoch: Option<Epoch>,
    bytes: usize,
    last: Moment,
    /// Its last record is of a secret, of which no more is recorded.
    is_secret: bool,
}

impl<P: Pty> Actor<P> {
    /// Records a write that is about to be queued, and awaits its outcome.
    pub(super) fn record_write(
        &mut self,
        write: WriteId,
        order: &WriteOrder,
        unit: &Unit,
    ) -> Result<(), SessionError> {
        let act = match (&order.command, &order.content) {
            (Some(_), _) => "command",
            (None, Content::Keys(_)) => "keys",
            (None, Content::Text { .. } | Content::Bytes { .. }) => "text",
            (None, Content::Mouse(_)) => "mouse",
        };
        self.end_burst();
        let (bytes, is_secret) = (unit.bytes(), self.reads_secret());
        let content = match &order.command {
            _ if is_secret => ActContent::Secret,
            Some(command) => ActContent::Command { bytes: &bytes, command: &command.text },
            None => ActContent::Bytes(&bytes),
        };
        let of = self.outlets.recorder.append(&JournalEntry::Intent(Intent {
            decision: order.decision,
            ..self.intent(&order.caller, Some(order.door), act, content)
        }))?;
        self.recording.writes.insert(write, RecordedWrite::Act { of, epoch: None, is_secret });
        Ok(())
    }

    /// Notes under which lease a recorded write was queued.
    pub(super) fn note_write(&mut self, write: WriteId, under: Epoch) {
        if let Some(RecordedWrite::Act { epoch, .. }) = self.recording.writes.get_mut(&write) {
            *epoch = Some(under);
        }
    }

    pub(super) fn record_completion(&mut self, completion: &Completion) {
        let WriteOutcome { written, discarded, queued } = completion.outcome;
        let recorder = &self.outlets.recorder;
        match self.recording.writes.remove(&completion.write) {
            None => {}
            Some(RecordedWrite::Act { of, epoch, is_secret: true }) => {
                recorder.conclude(of, ActOutcome::Done { epoch });
            }
            Some(RecordedWrite::Act { of, epoch, is_secret: false }) => {
                recorder.conclude(of, ActOutcome::Written { epoch, written, discarded, queued });
            }
            Some(RecordedWrite::Typing(by)) if discarded > 0 => {
                let (session, writer, cause) = (self.id, &by, "it was not typed");
                recorder.note(&JournalEntry::Discarded {
                    session,
                    writer,
                    bytes: discarded,
                    cause,
                });
            }
            Some(RecordedWrite::Typing(_)) => {}
        }
    }

    /// Records what a person is about to type: as a part of the same act, unless there was a pause.
    pub(super) fn record_typing(&mut self, by: &Caller, unit: &Unit) -> Result<(), SessionError> {
        let now = self.clock.now();
        let (bytes, is_secret) = (unit.bytes(), self.reads_secret());
        let goes_on = self.recording.burst.as_ref().is_some_and(|burst| {
            burst.by.principal == by.principal
                && burst.bytes < BURST_BYTES
                && now.since(burst.last) < BURST_PAUSE
        });
        if !goes_on {
            self.end_burst();
        }
        let content = if is_secret { ActContent::Secret } else { ActContent::Bytes(&bytes) };
        if let Some(burst) = &mut self.recording.burst {
            // Neither how many keys a secret has is recorded, nor when they were pressed.
            let is_known = is_secret && burst.is_secret;
            if !bytes.is_empty() && !is_known {
                self.outlets.recorder.append(&JournalEntry::More { of: burst.of, content })?;
            }
            (burst.bytes, burst.last, burst.is_secret) =
                (burst.bytes + bytes.len(), now, is_secret);
            return Ok(());
        }
        let of = self.intend(by, Some(Door::Operator), "typing", content)?;
        let (by, bytes) = (by.clone(), bytes.len());
        self.recording.burst =
            Some(TypingBurst { of, by, epoch: None, bytes, last: now, is_secret });
        Ok(())
    }

    /// Awaits what becomes of bytes that a person typed.
    pub(super) fn follow_typing(&mut self, write: WriteId, by: &Caller, epoch: Epoch) {
        self.recording.writes.insert(write, RecordedWrite::Typing(by.clone()));
        self.note_typing(epoch);
    }

    /// Notes the epoch of the keyboard of the person who types.
    fn note_typing(&mut self, epoch: Epoch) {
        if let Some(burst) = &mut self.recording.burst {
            burst.epoch = Some(epoch);
        }
    }

    /// Ends the act of a person who typed.
    pub(super) fn end_burst(&mut self) {
        if let Some(TypingBurst { of, epoch, .. }) = self.recording.burst.take() {
            self.outlets.recorder.conclude(of, ActOutcome::Done { epoch });
        }
    }

    /// Does something in one step, with a record before it and one of its outcome.
    pub(super) fn recorded<T>(
        &mut self,
        by: &Caller,
        door: Option<Door>,
        act: &str,
        content: ActContent<'_>,
        effect: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let of = self.intend(by, door, act, content)?;
        self.recording.current = Some(of);
        let done = effect(self);
        self.recording.current = None;
        let reason = done.as_ref().err().map(ToString::to_string);
        self.outlets.recorder.conclude(of, self.outcome(by, reason.as_deref()));
        done
    }

    /// The same for what must not wait for a journal that cannot be written: then it is recorded late.
    pub(super) fn recorded_anyway<T>(
        &mut self,
        by: &Caller,
        door: Option<Door>,
        act: &str,
        effect: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let content = ActContent::Nothing;
        let of = self.intend(by, door, act, content.clone());
        let (session, epoch) = (Some(self.id), self.epoch_of(by));
        self.recording.current = of.as_ref().ok().copied();
        let done = effect(self);
        self.recording.current = None;
        let reason = done.as_ref().err().map(ToString::to_string);
        let outcome = self.outcome(by, reason.as_deref());
        match of {
            Ok(of) => self.outlets.recorder.conclude(of, outcome),
            Err(_) => {
                let decision = None;
                let intent = Intent { by, door, session, act, epoch, decision, content };
                self.outlets.recorder.note(&JournalEntry::Late { intent, outcome });
            }
        }
        done
    }

    fn outcome<'a>(&self, by: &Caller, reason: Option<&'a str>) -> ActOutcome<'a> {
        match reason {
            None => ActOutcome::Done { epoch: self.epoch_of(by) },
            Some(reason) => ActOutcome::Failed { code: None, reason },
        }
    }

    /// Ends the act of a person who typed and has the keyboard no more.
    pub(super) fn end_burst_of_former(&mut self) {
        let typist = self.recording.burst.as_ref().map(|burst| burst.by.clone());
        if typist.is_some_and(|by| !self.input.has_keyboard(self.clock.now(), &by)) {
            self.end_burst();
        }
    }

    pub(super) fn record_discarded(&self, discarded: &Discarded) {
        let Discarded { writer, bytes, cause, .. } = discarded;
        let cause = match cause {
            DiscardCause::LeaseEnded => "the lease ended",
            DiscardCause::PersonTyped => "a person took the keyboard",
            DiscardCause::Interrupted => "an interrupt discarded the queue",
            DiscardCause::SessionEnded => "the session ended",
            DiscardCause::TerminalSilent => "the terminal did not answer",
        };
        let (session, bytes) = (self.id, *bytes);
        self.outlets.recorder.note(&JournalEntry::Discarded { session, writer, bytes, cause });
    }

    /// Says of all acts without an outcome that it is unknown.
    pub(super) fn record_failure(&mut self) {
        self.end_burst();
        if let Some(of) = self.recording.current.take() {
            self.outlets.recorder.conclude(of, ActOutcome::Unknown);
        }
        for (_, recorded) in self.recording.writes.drain() {
            if let RecordedWrite::Act { of, .. } = recorded {
                self.outlets.recorder.conclude(of, ActOutcome::Unknown);
            }
        }
    }

    fn intend(
        &self,
        by: &Caller,
        door: Option<Door>,
        act: &str,
        content: ActContent<'_>,
    ) -> Result<RecordNumber, SessionError> {
        let intent = self.intent(by, door, act, content);
        Ok(self.outlets.recorder.append(&JournalEntry::Intent(intent))?)
    }

    fn intent<'a>(
        &self,
        by: &'a Caller,
        door: Option<Door>,
        act: &'a str,
        content: ActContent<'a>,
    ) -> Intent<'a> {
        let (session, epoch) = (Some(self.id), self.epoch_of(by));
        Intent { by, door, session, act, epoch, decision: None, content }
    }

    /// The epoch of the lease that a caller holds.
    fn epoch_of(&self, by: &Caller) -> Option<Epoch> {
        let lease = self.input.lease();
        let holds = lease.holder().is_some_and(|holder| holder.principal == by.principal);
        holds.then(|| lease.grant(self.clock.now()))?.map(|grant| grant.epoch)
    }

    /// Whether what is typed now may be a secret. The kernel is asked, since the prompt may have come since the last look.
    pub(super) fn reads_secret(&self) -> bool {
        self.pty.hides_typing().unwrap_or(true)
    }
}
