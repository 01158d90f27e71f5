//! The one way into the terminal: the write switch, the lease, the queue of bytes.
//!
//! A write is checked once, by `attempt`, and `commit`
//! queues its bytes and renews the lease in the same step, so the check still holds then.

pub mod attempt;
pub mod idempotency;
pub mod request;
pub mod typing;

mod leasing;
mod progress;
mod queue;
mod settle;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::ids::PrincipalId;
use crate::core::input::idempotency::earlier_writes::FormerWrites;
use crate::core::input::idempotency::memory::KeyedCalls;
use crate::core::input::queue::WriteQueue;
use crate::core::input::request::{
    Completion, DiscardCause, InputEvent, NextBytes, Warning, WriteError,
};
use crate::core::input::settle::Warnings;
use crate::core::input::typing::RecentlyTyped;
use crate::core::lease::LeaseManager;
use crate::core::lease::error::EndCause;
use crate::core::lease::request::{Grant, HoldToken, WaiterId};
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

/// Everything that stands between callers and the terminal of one session.
///
/// `attempt`, `commit`, `allow`, `answer` and the verbs of the lease are what callers want; `on_*` is what
/// the world did; `next_bytes`, `deadline` and `take_*` say what the shell must do next. Every
/// method first judges what time has done, at the `now` it is given.
#[derive(Debug)]
pub struct Input {
    lease: LeaseManager,
    window: WriteWindow,
    ended: bool,
    queue: WriteQueue,
    /// Counts what was asked; what an attempt found out holds for one of these.
    step: u64,
    calls: KeyedCalls,
    former: FormerWrites,
    typed: RecentlyTyped,
    warnings: Warnings,
    completions: VecDeque<Completion>,
    events: Vec<InputEvent>,
    grants: Vec<(WaiterId, Grant)>,
    refusals: Vec<(WaiterId, WriteError)>,
}

impl Input {
    /// How many bytes of writes may wait for the terminal.
    pub const QUEUE_BYTES_MAX: usize = WriteQueue::BYTES_MAX;
    /// How many writes may wait for the terminal.
    pub const QUEUE_WRITES_MAX: usize = WriteQueue::WRITES_MAX;
    /// How many bytes of the terminal's own answers may wait.
    pub const ANSWER_BYTES_MAX: usize = WriteQueue::ANSWER_BYTES_MAX;
    /// How long the caller of a write waits for its last byte to be taken.
    pub const WRITE_ANSWER_AFTER: Duration = Duration::from_secs(1);

    /// An input with nothing queued.
    pub fn new(lease: LeaseManager, window: WriteWindow) -> Self {
        Self {
            lease,
            window,
            ended: false,
            queue: WriteQueue::default(),
            step: 0,
            calls: KeyedCalls::default(),
            former: FormerWrites::default(),
            typed: RecentlyTyped::default(),
            warnings: Warnings::default(),
            completions: VecDeque::new(),
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

    /// The same without those of the newest write.
    pub fn queued_before_last(&self) -> usize {
        self.queue.bytes_before_last()
    }

    /// Ends a call that kept its lease alive.
    pub fn let_go(&mut self, now: Moment, token: HoldToken) {
        self.judge(now);
        self.lease.let_go(now, token);
        self.follow(now);
    }

    /// Ends a call that kept its lease alive and came to nothing: the lease has the time that it had.
    pub fn let_go_unused(&mut self, now: Moment, token: HoldToken) {
        self.judge(now);
        self.lease.let_go_unused(token);
        self.judge(now);
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
    pub fn next_bytes(&self) -> Option<NextBytes<'_>> {
        self.queue.next()
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

    /// The next write that was answered.
    pub fn take_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// What happened since this was last asked, in order.
    pub fn take_events(&mut self) -> Vec<InputEvent> {
        std::mem::take(&mut self.events)
    }

    /// What a principal is to be told with the answer to its call, once.
    pub fn take_warning(&mut self, principal: PrincipalId) -> Option<Warning> {
        self.warnings.take(principal)
    }
}
