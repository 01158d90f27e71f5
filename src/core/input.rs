//! The one way into the terminal: the write switch, the lease, the queue of bytes.
//!
//! It knows nothing of PTYs, tasks or clocks. Check, queue and renew are one method of one value, so
//! that no write can pass a check that no longer holds when its bytes go out.

pub mod earlier_writes;
pub mod error;
pub mod open_paste;
pub mod request;
pub mod typing;
pub mod unit;

mod idempotency;
mod leasing;
mod outlook;
mod progress;
mod queue;
mod remembered;
mod settle;
mod warnings;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::core::caller::Caller;
use crate::core::ids::{Epoch, LeaseId, PrincipalId, Watermark};
use crate::core::input::earlier_writes::{FormerWrites, WriteStamp};
use crate::core::input::error::WriteError;
use crate::core::input::idempotency::Replays;
use crate::core::input::queue::{Awaited, Queue, Wanted};
use crate::core::input::remembered::{Flight, Outcome};
use crate::core::input::request::{
    Accepted, Completion, DiscardCause, InputEvent, KeyedCall, Warning, WriteRequest,
};
use crate::core::input::typing::RecentlyTyped;
use crate::core::input::unit::Unit;
use crate::core::input::warnings::Warnings;
use crate::core::lease::LeaseManager;
use crate::core::lease::error::EndCause;
use crate::core::lease::request::{Grant, HoldToken, TakeRule, WaiterId};
use crate::core::lease::right::Right;
use crate::core::moment::Moment;

/// Whether anybody may write, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteWindow {
    #[default]
    Closed,
    Open,
    /// Open before this moment, closed from it on.
    Until(Moment),
}

impl WriteWindow {
    /// Whether somebody may write at this moment.
    pub fn is_open(self, now: Moment) -> bool {
        match self {
            Self::Closed => false,
            Self::Open => true,
            Self::Until(end) => now < end,
        }
    }

    /// When it closes by itself.
    pub fn closes_at(self) -> Option<Moment> {
        match self {
            Self::Until(end) => Some(end),
            Self::Closed | Self::Open => None,
        }
    }
}

/// How long a write keeps its lease alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    UntilAnswered,
    UntilLetGo,
}

/// Everything that stands between callers and the terminal of one session.
///
/// `write`, `authorize`, `answer` and the verbs of the lease are what callers want; `on_*` is what
/// the world did; `next_bytes`, `deadline` and `take_*` say what the shell must do next. Every
/// method first judges what time has done, at the `now` it is given.
#[derive(Debug)]
pub struct Input {
    lease: LeaseManager,
    window: WriteWindow,
    ended: bool,
    queue: Queue,
    replays: Replays<Flight, Outcome>,
    former: FormerWrites,
    typed: RecentlyTyped,
    warnings: Warnings,
    completions: Vec<Completion>,
    events: Vec<InputEvent>,
    grants: Vec<(WaiterId, Grant)>,
    refusals: Vec<(WaiterId, WriteError)>,
}

impl Input {
    /// How many bytes of writes may wait for the terminal.
    pub const QUEUE_BYTES_MAX: usize = Queue::BYTES_MAX;
    /// How many writes may wait for the terminal.
    pub const QUEUE_WRITES_MAX: usize = Queue::WRITES_MAX;
    /// How many bytes of the terminal's own answers may wait.
    pub const ANSWER_BYTES_MAX: usize = Queue::ANSWER_BYTES_MAX;
    /// How long the caller of a write waits for its last byte to be taken.
    pub const WRITE_ANSWER_AFTER: Duration = Duration::from_secs(1);

    /// An input with nothing queued.
    pub fn new(lease: LeaseManager, window: WriteWindow) -> Self {
        Self {
            lease,
            window,
            ended: false,
            queue: Queue::default(),
            replays: Replays::default(),
            former: FormerWrites::default(),
            typed: RecentlyTyped::default(),
            warnings: Warnings::default(),
            completions: Vec::new(),
            events: Vec::new(),
            grants: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The same over a terminal whose program a daemon or a task before has left in the middle of a
    /// paste: that is closed before anything else goes out.
    pub fn after_paste(mut self, open: bool) -> Self {
        if open {
            self.queue.close_former_paste();
        }
        self
    }

    /// The lease, to look at.
    pub fn lease(&self) -> &LeaseManager {
        &self.lease
    }

    /// What the switches leave open.
    pub fn window(&self) -> WriteWindow {
        self.window
    }

    /// How many bytes of writes wait for the terminal.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Queues a write, if its caller may make it: window, lease and room are checked, the bytes are
    /// queued and the lease is renewed, with nothing in between.
    ///
    /// # Errors
    /// Why nothing is written; no lease and no deadline has changed then.
    pub fn write(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
    ) -> Result<Accepted, WriteError> {
        self.queue_write(now, caller, request, Holding::UntilAnswered).map(|(made, _)| made)
    }

    /// The same for a call that goes on after its write: it keeps the lease alive until it lets go of what
    /// it is given here, save where the same call was made before.
    ///
    /// The lease still ends when others wait and it has lasted as long as it may. One that is taken
    /// for this call is given back when it lets go.
    ///
    /// # Errors
    /// As [`Input::write`].
    pub fn write_and_hold(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
    ) -> Result<(Accepted, Option<HoldToken>), WriteError> {
        self.queue_write(now, caller, request, Holding::UntilLetGo)
    }

    fn queue_write(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
        holding: Holding,
    ) -> Result<(Accepted, Option<HoldToken>), WriteError> {
        self.judge(now);
        let call = KeyedCall { presented: request.presented, key: request.key.as_ref() };
        if let Some(made) = self.made_before(now, caller, call)? {
            return Ok((made, None));
        }
        let right = self.right(now, caller, request.presented, request.take)?;
        self.check_seen(&right, request.expected)?;
        self.check_room(&request.unit, right.keeps_epoch())?;
        self.make_room_to_remember(now, caller, request.key.as_ref())?;
        let grant = self.lease.exercise(now, caller, right);
        let token = (holding == Holding::UntilLetGo).then(|| self.lease.hold());
        self.lease.on_seen();
        self.cut_ended_epochs(now);
        let WriteRequest { unit, write, key, .. } = request;
        let stamp = key.as_ref().map(|key| WriteStamp::new(&caller.tenant, grant.lease, key));
        let own = key.as_ref().map(|key| WriteStamp::of_principal(caller.principal, key));
        if let Some(key) = key {
            self.replays.begin(caller.principal, key, Flight::Write(write));
        }
        let epoch = grant.epoch;
        self.enqueue(now, caller, Wanted { write, unit, epoch, until_taken: None, stamp, own });
        self.follow(now);
        Ok((Accepted::Queued { write, grant }, token))
    }

    /// Allows an act that sends no bytes but changes the terminal as a write does, and renews.
    ///
    /// The act must follow with nothing in between. A lease that is taken for this call is given
    /// back already.
    ///
    /// # Errors
    /// Why the caller may not; no lease and no deadline has changed then.
    pub fn authorize(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<(), WriteError> {
        self.judge(now);
        let right = self.right(now, caller, presented, take)?;
        self.lease.exercise(now, caller, right);
        self.follow(now);
        Ok(())
    }

    /// Ends a call that kept its lease alive.
    pub fn let_go(&mut self, now: Moment, token: HoldToken) {
        self.judge(now);
        self.lease.let_go(now, token);
        self.follow(now);
    }

    /// Queues an answer of the terminal to its program, which needs no lease; says whether there was
    /// room for it.
    ///
    /// Answers go out before writes, but never inside a key, a character or a paste. Only what the
    /// emulator makes of a fixed table may come here.
    pub fn answer(&mut self, bytes: &[u8]) -> bool {
        !self.ended && self.queue.push_answer(bytes)
    }

    /// The bytes to write to the terminal now, if any. What it took must be told with
    /// [`Input::on_taken`] before anything else is called.
    pub fn next_bytes(&self) -> Option<&[u8]> {
        self.queue.next_bytes()
    }

    /// The epoch of the bytes to write now; none for an answer of the terminal.
    pub fn next_epoch(&self) -> Option<Epoch> {
        self.queue.next_epoch()
    }

    /// What the next daemon will know the bytes to write by; none for those of a write without an
    /// idempotency key.
    pub fn next_stamp(&self) -> Option<WriteStamp> {
        self.queue.next_stamp()
    }

    /// What this daemon itself will know the same write by; none for what people type.
    pub fn next_own_stamp(&self) -> Option<WriteStamp> {
        self.queue.next_own_stamp()
    }

    /// Notes how many of the bytes to write the terminal took.
    pub fn on_taken(&mut self, now: Moment, count: usize) {
        self.queue.on_taken(count);
        self.finish_done(now);
        self.judge(now);
    }

    /// When to call [`Input::on_time`] next.
    pub fn deadline(&self) -> Option<Moment> {
        let closes = self.window.closes_at();
        [self.lease.deadline(), closes, self.queue.deadline()].into_iter().flatten().min()
    }

    /// Does what time has done by now.
    pub fn on_time(&mut self, now: Moment) {
        self.judge(now);
        self.lease.on_time(now);
        self.follow(now);
    }

    /// Opens or closes the way in. Closing ends the lease and every wait for it.
    pub fn set_window(&mut self, now: Moment, window: WriteWindow) {
        self.judge(now);
        self.window = window;
        self.judge(now);
    }

    /// Discards what is queued, up to what must be completed. Leases stay as they are.
    pub fn discard(&mut self, now: Moment, cause: DiscardCause) {
        self.judge(now);
        self.cut(now, |_| true, cause);
        self.follow(now);
    }

    /// Ends the session's input: nothing queued goes out any more, and the lease ends.
    pub fn close(&mut self, now: Moment) {
        self.judge(now);
        self.ended = true;
        self.lease.end_all(now, EndCause::SessionEnded);
        self.discard_everything(now);
        self.follow(now);
    }

    /// The writes that were answered since this was last asked.
    pub fn take_completions(&mut self) -> Vec<Completion> {
        std::mem::take(&mut self.completions)
    }

    /// What happened since this was last asked, in order.
    pub fn take_events(&mut self) -> Vec<InputEvent> {
        std::mem::take(&mut self.events)
    }

    /// What a principal is to be told with the answer to its call, once.
    pub fn take_warning(&mut self, principal: PrincipalId) -> Option<Warning> {
        self.warnings.take(principal)
    }

    fn right(
        &self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<Right, WriteError> {
        self.check_open(now)?;
        Ok(self.lease.right_under(now, caller, presented, take)?)
    }

    fn check_open(&self, now: Moment) -> Result<(), WriteError> {
        if self.ended {
            return Err(WriteError::SessionEnded);
        }
        if !self.window.is_open(now) {
            return Err(WriteError::ReadOnly);
        }
        Ok(())
    }

    fn check_seen(&self, right: &Right, expected: Option<Watermark>) -> Result<(), WriteError> {
        self.lease.check_seen(right, expected).map_err(|since| WriteError::NotSeen { since })
    }

    fn check_room(&self, unit: &Unit, keeps_epoch: bool) -> Result<(), WriteError> {
        // What is in the way of an interrupt, or was queued by a former holder, makes room.
        let (queued, writes) = match unit.is_interrupt() || !keeps_epoch {
            true => (self.queue.tail(), 1),
            false => (self.queue.bytes(), self.queue.writes()),
        };
        let bytes_max = Self::QUEUE_BYTES_MAX;
        if queued + unit.len() > bytes_max || writes >= Self::QUEUE_WRITES_MAX {
            return Err(WriteError::TooMuchQueued { queued, bytes_max });
        }
        Ok(())
    }

    fn enqueue(&mut self, now: Moment, caller: &Caller, wanted: Wanted) {
        if wanted.unit.is_interrupt() {
            self.cut(now, |_| true, DiscardCause::Interrupted);
        }
        let kept = wanted.until_taken.is_some();
        let hold = (!kept).then(|| self.lease.hold());
        self.queue.push(
            caller.clone(),
            wanted,
            Awaited { until: now + Self::WRITE_ANSWER_AFTER, hold },
        );
        self.finish_done(now);
    }
}
