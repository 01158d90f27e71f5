//! Writes: checked against the screen, encoded by its modes, queued under the lease, answered when
//! the terminal has taken them.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::ids::{Epoch, LeaseId, Watermark};
use crate::core::input::attempt::{AttemptRequest, Committed, KeepLease, Tried};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::idempotency::{EarlierCall, EarlierResult, IdempotencyKey};
use crate::core::input::request::{
    CommandSent, Completion, DiscardCause, Warning, WriteId, WriteOutcome,
};
use crate::core::keys::encode::encode_keys;
use crate::core::keys::modes::InputModes;
use crate::core::keys::mouse::encode_mouse;
use crate::core::keys::paste::{CANONICAL_LINE_MAX, encode_bytes, encode_text, longest_line};
use crate::core::keys::{Key, Piece, Unit};
use crate::core::lease::request::Grant;
use crate::core::policy::approvals::Witness;
use crate::core::policy::bound::{LineMoment, PermitBound};
use crate::core::shell::commands::EndsBy;
use crate::session::actor::Actor;
use crate::session::command::{
    CommandOrder, Content, Expectation, Repeated, Reply, WriteOrder, Written,
};
use crate::session::control::{GivenUp, Interrupt, KeepAlive};
use crate::session::error::SessionError;
use crate::session::pty::Pty;
use crate::session::pty::processes::directory_in_front;

#[derive(Debug)]
pub(super) struct Pending {
    reply: Reply<Written>,
    before: Watermark,
    grant: Option<Grant>,
    warning: Option<String>,
    kept: Option<KeepAlive>,
    replayed: bool,
    command: Option<CommandSent>,
    interrupt: Option<Interrupt>,
}

impl Pending {
    /// Leaves the caller without an answer, and its command as it is.
    pub(super) fn dismiss(self) {
        if let Some(interrupt) = self.interrupt {
            interrupt.disarm();
        }
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn on_write(&mut self, order: &WriteOrder, reply: Reply<Written>) {
        // Output that came before the write must not look like its effect.
        self.feed_rest();
        self.publish_output();
        let before = self.frames.borrow().watermark;
        match self.try_write(order) {
            Ok(Step::Queued(queued)) => {
                self.screen.set_typist(order.caller.name());
                let (write, stamp, length) = (queued.write, queued.stamp, queued.length);
                let mut pending = self.queued(&order.caller, queued.grant, reply);
                pending.kept = queued.kept;
                if let Some(command) = &order.command {
                    self.send_command(command, &order.caller, (write, stamp), &mut pending);
                } else {
                    self.begin_typing();
                    if let Some(stamp) = stamp {
                        self.remember_length(stamp, length);
                    }
                }
                self.follow_write(write, pending);
                self.settle();
            }
            Ok(Step::Earlier(EarlierCall { write: EarlierResult::InFlight(write), command })) => {
                let command = self.if_known(command);
                let again = self.again(&order.caller, order.presented, reply);
                self.join(write, Pending { command, before, ..again });
                self.settle();
            }
            Ok(Step::Earlier(EarlierCall { write: EarlierResult::Written(outcome), command })) => {
                self.settle();
                let (warning, command) = (self.warning_for(&order.caller), self.if_known(command));
                let again = self.again(&order.caller, order.presented, reply);
                self.answer(Pending { warning, command, before, ..again }, outcome);
            }
            Ok(Step::Rehearsed) => {
                self.settle();
                let warning = self.warning_for(&order.caller);
                let again = self.again(&order.caller, order.presented, reply);
                let rehearsed = Pending { warning, replayed: false, before, ..again };
                self.answer(rehearsed, WriteOutcome::default());
            }
            Err(error) => {
                self.settle();
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Notes the command that was queued, with its key, and arms its interrupt.
    fn send_command(
        &mut self,
        command: &CommandOrder,
        by: &Caller,
        (write, stamp): (WriteId, Option<WriteStamp>),
        pending: &mut Pending,
    ) {
        let before = self.frames.borrow().watermark;
        let id = self.begin_command(command, by, stamp);
        let sent = CommandSent { id, before };
        self.input.note_command(write, sent);
        pending.command = Some(sent);
        if command.interrupts {
            let sent_in = pending.grant.as_ref().map(|grant| grant.epoch);
            let given_up =
                GivenUp { command: id, by: by.clone(), sent_in, kept: pending.kept.take() };
            let urgent = Arc::clone(&self.outlets.urgent);
            pending.interrupt = Some(Interrupt::new(urgent, given_up));
        }
    }

    pub(super) fn on_recall(
        &mut self,
        caller: &Caller,
        presented: Option<LeaseId>,
        key: &IdempotencyKey,
        reply: Reply<Option<Repeated>>,
    ) {
        let earlier = self.input.recall(self.clock.now(), caller, presented, key);
        // It may have taken its lease back.
        self.settle();
        let epoch = self.grant_of(caller, presented).map(|grant| grant.epoch);
        let repeated = earlier.map(|earlier| {
            earlier.map(|earlier| Repeated { command: self.if_known(earlier.command), epoch })
        });
        // Whoever no longer waits needs no answer.
        let _ = reply.send(repeated.map_err(SessionError::from));
    }

    fn if_known(&self, command: Option<CommandSent>) -> Option<CommandSent> {
        command.filter(|command| self.screen.commands().get(command.id).is_some())
    }

    /// Answers a queued write when the terminal has taken it.
    pub(super) fn follow_write(&mut self, write: WriteId, mut pending: Pending) {
        // As it is right before the write.
        pending.before = self.frames.borrow().watermark;
        self.join(write, pending);
        // What the program makes of it is worth a frame of its own, without waiting for the
        // interval that the frame before the write began.
        self.pace.published_at = None;
    }

    /// A caller whose write was queued under this grant.
    pub(super) fn queued(&mut self, by: &Caller, grant: Grant, reply: Reply<Written>) -> Pending {
        let warning = self.warning_for(by);
        let again = self.again(by, None, reply);
        Pending { warning, grant: Some(grant), replayed: false, ..again }
    }

    fn try_write(&mut self, order: &WriteOrder) -> Result<Step, SessionError> {
        let WriteOrder { presented, take, .. } = *order;
        let expected = order.expect.watermark;
        // A rehearsal is made each time it is asked for.
        let key = order.key.clone().filter(|_| !order.dry_run);
        let request = AttemptRequest { presented, take, key, expected };
        // The lease comes first: who may not write learns nothing of the screen by asking.
        let attempt = match self.input.attempt(self.clock.now(), &order.caller, request)? {
            Tried::Allowed(attempt) => attempt,
            Tried::Earlier(earlier) => return Ok(Step::Earlier(earlier)),
        };
        expect(&self.frames.borrow(), &order.expect)?;
        self.check_approved(order)?;
        if let Some(command) = &order.command {
            self.check_ready(command)?;
        }
        let unit = self.encode(order)?;
        let length = unit.len();
        if order.dry_run {
            return Ok(Step::Rehearsed);
        }
        self.input.check_commit(&attempt, &unit)?;
        let write = self.callers.next_write();
        self.record_write(write, order, &unit)?;
        let holding =
            if order.keep_alive { KeepLease::UntilLetGo } else { KeepLease::UntilAnswered };
        let line = self.shell.line_with(&unit, self.screen.commands());
        let Committed { grant, hold, stamp } = self.input.commit(attempt, write, unit, holding)?;
        self.shell.on_queued(line);
        self.note_write(write, grant.epoch);
        let kept = hold.map(|hold| {
            self.callers.holds.insert(write, hold);
            KeepAlive::new(Arc::clone(&self.outlets.urgent), write)
        });
        Ok(Step::Queued(QueuedWrite { write, grant, kept, stamp, length }))
    }

    /// Refuses what was approved for another state of the terminal, or was to be no more than a repetition.
    fn check_approved(&self, order: &WriteOrder) -> Result<(), SessionError> {
        let approved = match &order.bound {
            None => return Ok(()),
            Some(PermitBound::Terminal(approved)) => approved,
            Some(PermitBound::Line(judged)) if *judged == self.line_moment() => return Ok(()),
            Some(PermitBound::Line(_) | PermitBound::Unshared | PermitBound::Repetition) => {
                return Err(SessionError::Stale);
            }
        };
        let frame = self.frames.borrow();
        let typed = approved.typed.map(|_| self.shell.line().turns());
        let now = Witness::of(&frame, order.caller.principal, directory_in_front(&frame), typed);
        if now == *approved { Ok(()) } else { Err(SessionError::Stale) }
    }

    fn line_moment(&self) -> LineMoment {
        LineMoment { turns: self.shell.line().turns(), prompts: self.screen.commands().prompts() }
    }

    fn encode(&mut self, order: &WriteOrder) -> Result<Unit, SessionError> {
        let modes = self.screen.modes();
        // A program may have left its keyboard's modes behind, which shells do not read, but a plain Enter they do.
        let modes = match &order.command {
            Some(_) => InputModes { kitty_flags: 0, line_feed_new_line: false, ..modes },
            None => modes,
        };
        let mut pieces = match &order.content {
            Content::Keys(keys) => encode_keys(keys, &modes),
            Content::Text { text, enter: true, .. } if self.takes_line_feeds(order) => {
                encode_bytes(format!("{text}\n").as_bytes())
            }
            Content::Text { text, paste, enter } => encode_text(text, *paste, *enter, &modes),
            Content::Bytes { bytes, enter } => {
                let mut pieces = encode_bytes(bytes);
                if *enter {
                    pieces.extend(encode_keys(&[Key::ENTER], &modes));
                }
                pieces
            }
            Content::Mouse(event) => encode_mouse(*event, &modes)?,
        };
        if let Some(command) = &order.command {
            pieces.splice(0..0, self.clearing(command));
        }
        self.check_lines(&pieces)?;
        Ok(Unit { pieces })
    }

    /// Whether a command is for a shell without a line editor, in a terminal whose Enter ends no line.
    fn takes_line_feeds(&self, order: &WriteOrder) -> bool {
        let by_kernel = |command: &CommandOrder| command.ends_by == EndsBy::Kernel;
        order.command.as_ref().is_some_and(by_kernel)
            && self.pty.evidence().is_ok_and(|it| it.canonical && !it.enter_ends_line)
    }

    /// Refuses a line that the kernel would cut silently, where the program reads whole lines.
    fn check_lines(&self, pieces: &[Piece]) -> Result<(), SessionError> {
        let bytes = longest_line(pieces);
        if bytes <= CANONICAL_LINE_MAX {
            return Ok(());
        }
        let canonical = self.pty.evidence().is_ok_and(|evidence| evidence.canonical);
        if canonical {
            return Err(SessionError::LineTooLong { bytes, max: CANONICAL_LINE_MAX });
        }
        Ok(())
    }

    pub(super) fn answer_writes(&mut self) {
        while let Some(completion) = self.input.take_completion() {
            self.record_completion(&completion);
            let Completion { write, outcome } = completion;
            let is_its = |(awaited, _): &(WriteId, Pending)| *awaited == write;
            while let Some(at) = self.callers.writing.iter().position(is_its) {
                let (_, pending) = self.callers.writing.remove(at);
                self.answer(pending, outcome);
            }
        }
    }

    /// Answers a write of so many bytes that was made before.
    pub(super) fn answer_made(&mut self, writer: &Caller, written: usize, reply: Reply<Written>) {
        let warning = self.warning_for(writer);
        let again = Pending { warning, ..self.again(writer, None, reply) };
        self.answer(again, WriteOutcome { written, ..WriteOutcome::default() });
    }

    /// Answers with a write that is on its way when that is answered.
    pub(super) fn join_write(&mut self, write: WriteId, writer: &Caller, reply: Reply<Written>) {
        let again = self.again(writer, None, reply);
        self.join(write, again);
    }

    fn join(&mut self, write: WriteId, pending: Pending) {
        self.callers.writing.push((write, pending));
    }

    /// A caller who asks again for what it asked for before.
    fn again(&self, by: &Caller, presented: Option<LeaseId>, reply: Reply<Written>) -> Pending {
        Pending {
            reply,
            before: self.frames.borrow().watermark,
            grant: self.grant_of(by, presented),
            warning: None,
            kept: None,
            replayed: true,
            command: None,
            interrupt: None,
        }
    }

    /// Answers one write; what keeps its lease alive goes with the answer, so that it ends with
    /// whoever no longer waits for it.
    fn answer(&mut self, pending: Pending, outcome: WriteOutcome) {
        let epoch: Option<Epoch> = pending.grant.as_ref().map(|grant| grant.epoch);
        // A lease that was taken for this call alone is gone by now and of no use to its caller.
        let held = self.input.lease().grant(self.clock.now());
        let lease = held.filter(|grant| Some(grant.epoch) == epoch);
        let cut = (outcome.discarded > 0).then(|| {
            format!(
                "{} did not reach the program: the lease ended, a person took the keyboard, an \
                 interrupt discarded the queue or the daemon was replaced",
                counted(outcome.discarded, "byte")
            )
        });
        let written = Written {
            outcome,
            before: pending.before,
            watermark: self.frames.borrow().watermark,
            lease,
            epoch,
            warning: cut.or(pending.warning),
            replayed: pending.replayed,
            kept: pending.kept,
            command: pending.command,
            interrupt: pending.interrupt,
        };
        let _ = pending.reply.send(Ok(written));
    }

    /// The lease in force, as far as it is the caller's to know.
    fn grant_of(&self, caller: &Caller, presented: Option<LeaseId>) -> Option<Grant> {
        let lease = self.input.lease();
        let holds = lease.holder().is_some_and(|by| by.principal == caller.principal);
        let grant = lease.grant(self.clock.now())?;
        (holds || presented == Some(grant.lease)).then_some(grant)
    }

    fn warning_for(&mut self, caller: &Caller) -> Option<String> {
        let Warning { discarded, cause } = self.input.take_warning(caller.principal)?;
        let cause = match cause {
            DiscardCause::LeaseEnded => "your lease ended",
            DiscardCause::PersonTyped => "a person took the keyboard",
            DiscardCause::Interrupted => "your interrupt discarded the queue",
            DiscardCause::SessionEnded => "the session ended",
            DiscardCause::TerminalSilent => "the terminal did not answer",
        };
        let lost = counted(discarded, "byte");
        Some(format!("{lost} of an earlier write did not reach the program: {cause}"))
    }
}

enum Step {
    Queued(QueuedWrite),
    Earlier(EarlierCall),
    Rehearsed,
}

struct QueuedWrite {
    write: WriteId,
    grant: Grant,
    kept: Option<KeepAlive>,
    stamp: Option<WriteStamp>,
    length: usize,
}

fn expect(frame: &Frame, expectation: &Expectation) -> Result<(), SessionError> {
    if let Some(seen) = expectation.watermark
        && (frame.screen_watermark() > seen || seen > frame.watermark)
    {
        let delta = frame.delta_since(Some(seen), &View::default(), None);
        return Err(SessionError::ScreenChanged(Box::new(delta)));
    }
    if let Some(text) = &expectation.text
        && !frame.lines.iter().any(|line| line.value.text.contains(text.as_str()))
    {
        let delta = frame.delta_since(None, &View::default(), None);
        return Err(SessionError::TextNotShown(Box::new(delta)));
    }
    Ok(())
}
