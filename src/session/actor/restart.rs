//! When the task of a session fails: it goes on with the same terminal, and with new parts.
//!
//! What failed is not asked for anything. The screen is made again of the newest checkpoint and the output
//! after it; the lease is free; who waited learns that nobody knows what became of the call.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;

use crate::core::event::Event;
use crate::core::frame::Frame;
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::input::request::InputEvent;
use crate::core::input::{Input, WriteWindow};
use crate::core::keys::tokens::Tokenizer;
use crate::core::lease::LeaseManager;
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::record::LeaseParty;
use crate::core::lease::request::WaiterId;
use crate::core::moment::Moment;
use crate::core::screen::{Origin, Screen, ScreenLimits};
use crate::core::shell::Shell;
use crate::session::actor::Actor;
use crate::session::actor::looks::Looks;
use crate::session::actor::running::Mailbox;
use crate::session::control::Entries;
use crate::session::off_worker::{in_steps, is_large};
use crate::session::pty::surroundings::host_name;
use crate::session::pty::{Pty, ReadOutput, Stamp};
use crate::session::records::Gap;
use crate::session::records::commands::UncoveredCommand;
#[cfg(test)]
use crate::session::tests::faults;
use crate::shim::wire::RESULTS_MAX;

/// So many failures within a minute end the state of the emulator, and more that of history, too.
const FAILURES_MAX: usize = 3;
const WITHIN: Duration = Duration::from_secs(60);

/// How long is waited before each restart after those.
const PAUSE: Duration = Duration::from_secs(1);

/// How many writes with a key are remembered of agents, and how many of people; as many as the next
/// daemon would know.
pub(super) const SENT_MAX: usize = RESULTS_MAX / 2;

/// What the task goes on with when its parts have failed.
#[derive(Debug)]
pub(super) struct Fallback {
    pub(super) inbox: Entries,
    /// What the switches leave open.
    pub(super) window: WriteWindow,
    /// Who has a lease.
    pub(super) parties: Vec<LeaseParty>,
    /// Who had one when the task failed, and was not told yet.
    lost: Vec<LeaseParty>,
    /// What happened and was not told yet.
    pub(super) untold: VecDeque<InputEvent>,
    /// The newest name of somebody who waits for the lease.
    pub(super) waiter: WaiterId,
    limits: LeaseLimits,
    /// How much of the last writes with a key the terminal took, oldest first.
    sent: VecDeque<FormerWrite>,
    /// What the terminal took, by which a paste is open or not.
    taken: Tokenizer,
    /// The output before this offset was given to a screen, and that before the other was counted.
    pub(super) seen: u64,
    pub(super) counted: u64,
    /// When the task failed in the last minute.
    failures: VecDeque<Moment>,
    /// The parts are to be made again.
    failed: bool,
}

impl Fallback {
    pub(super) fn begin(input: &Input, offset: u64, paste: bool) -> Self {
        Self {
            inbox: Entries::default(),
            window: input.window(),
            parties: Vec::new(),
            lost: Vec::new(),
            untold: VecDeque::new(),
            waiter: WaiterId(0),
            limits: input.lease().limits().clone(),
            sent: input.former().iter().copied().collect(),
            taken: Tokenizer::new(paste),
            seen: offset,
            counted: offset,
            failures: VecDeque::new(),
            failed: false,
        }
    }

    pub(super) fn on_failure(&mut self, now: Moment) {
        self.failed = true;
        self.failures.retain(|at| now.since(*at) < WITHIN);
        // One more than are told apart.
        self.failures.truncate(FAILURES_MAX);
        self.failures.push_back(now);
    }

    /// What is known of the last writes with a key, oldest first.
    pub(super) fn sent(&self) -> impl Iterator<Item = &FormerWrite> {
        self.sent.iter()
    }

    /// Notes what of a write the terminal took, and says whether a paste is open then; `own` is the stamp of
    /// its principal.
    pub(super) fn on_taken(&mut self, stamp: Stamp, own: Option<WriteStamp>, taken: &[u8]) -> bool {
        self.taken.pass(taken);
        self.count_sent(stamp, own, taken.len());
        self.taken.in_paste()
    }

    fn count_sent(&mut self, stamp: Stamp, own: Option<WriteStamp>, taken: usize) {
        let Some(stamp) = stamp.write.filter(|_| taken > 0) else { return };
        if let Some(known) = self.sent.iter_mut().rev().find(|known| known.stamp == stamp) {
            known.taken += taken;
            return;
        }
        let alike = |known: &FormerWrite| known.stamp.is_persons() == stamp.is_persons();
        if self.sent.iter().filter(|known| alike(known)).count() >= SENT_MAX
            && let Some(oldest) = self.sent.iter().position(alike)
        {
            self.sent.remove(oldest);
        }
        self.sent.push_back(FormerWrite { stamp, own, taken, length: None, command: None });
    }
}

/// A part of a session's task failed, and what it said.
#[derive(Debug)]
pub(super) struct TaskFailure(String);

/// Runs this until it is done or fails.
pub(super) async fn contained<T>(running: impl Future<Output = T>) -> Result<T, TaskFailure> {
    let mut running = pin!(running);
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(panic) => Poll::Ready(Err(TaskFailure::of(&*panic))),
        }
    })
    .await
}

/// Does this at once, unless it fails.
pub(super) fn contained_now<T>(act: impl FnOnce() -> T) -> Result<T, TaskFailure> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| TaskFailure::of(&*panic))
}

impl TaskFailure {
    fn of(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_default())
    }
}

impl<P: Pty> Actor<P> {
    /// Serves the session until it ends, over every failure of a part.
    pub(super) async fn serve_over_failures(&mut self, mailbox: &mut Mailbox) {
        let frames = self.frames.clone();
        let is_long = || is_large(frames.borrow().size.value);
        while let Err(TaskFailure(text)) = contained(in_steps(self.serve(mailbox), is_long)).await {
            tracing::error!(session = %self.id, %text, "its task failed and is restarted");
            self.tell_event(Event::Fault { what: "the session's task failed and was restarted" });
            self.reserve.on_failure(self.clock.now());
            self.pause().await;
            if self.ending.parting.is_some() {
                return;
            }
        }
    }

    /// Waits before it is tried again what has failed again and again, unless the daemon ends.
    async fn pause(&mut self) {
        let often = self.reserve.failures.len() > FAILURES_MAX;
        let until = self.clock.now() + PAUSE;
        let (urgent, clock) = (self.outlets.urgent.clone(), self.clock.clone());
        loop {
            self.collect_posted();
            if !often || self.ending.parting.is_some() || clock.now() >= until {
                return;
            }
            tokio::select! {
                () = urgent.posted() => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    /// Makes the parts again that a failure left behind, if there was one.
    pub(super) async fn mend(&mut self) {
        if !self.reserve.failed {
            return;
        }
        let lost = std::mem::take(&mut self.reserve.parties);
        self.reserve.lost.extend(lost);
        self.callers.dismiss();
        self.record_failure();
        self.typists.unfinished.clear();
        self.returning = None;
        self.mend_input();
        self.mend_screen().await;
        self.records.keep_again(&*self.pty);
        self.kill_again();
        self.checkpoint_now(self.ending.exit.is_some());
        self.pace.published_at = None;
        self.pace.dirty = true;
        self.publish_output();
        self.reserve.failed = false;
        let lost = std::mem::take(&mut self.reserve.lost).into_iter();
        self.reserve.untold.extend(lost.map(|party| InputEvent::Lease(party.ended())));
    }

    fn mend_input(&mut self) {
        let now = self.clock.now();
        let (reserve, epoch) = (&self.reserve, self.records.epoch());
        let mut writes: Vec<_> = reserve.sent().copied().collect();
        self.records.commands().tell_of(&mut writes);
        let limits = reserve.limits.clone();
        let lease = LeaseManager::after_failure(&reserve.lost, epoch, reserve.waiter, limits);
        let input = Input::new(lease, reserve.window).with_former(now, writes);
        self.input = input.after_paste(reserve.taken.in_paste()).into();
        if self.ending.exit.is_some() {
            self.input.close(now);
        }
    }

    /// Makes the screen again, with all output that one was given before.
    async fn mend_screen(&mut self) {
        let size = self.size;
        let unsent = self.records.take_unsent(&*self.pty);
        let again = self.screen_again();
        if again.ended {
            self.forget_recorded();
        }
        let shown = again.screen.commands().last();
        self.screen = again.screen.into();
        if let Some(unsent) = unsent {
            self.screen.withdraw(unsent);
        }
        self.unfed.offset = again.offset;
        let uncovered = &self.records.commands().uncovered;
        let is_to_come =
            |command: &&UncoveredCommand| command.id() > shown && command.offset >= again.offset;
        let to_come = uncovered.iter().filter(is_to_come);
        self.unfed.uncovered = to_come.cloned().collect();
        self.adopt_screen();
        let marks = self.records.nonces().own.is_some();
        let turns = self.outlets.live.typed().turns();
        self.shell = Shell::begin(self.clock.now(), marks, true).after_turns(turns).into();
        self.looks = Looks::default();
        self.kept.forget();
        self.unfed.clear();
        self.read_again().await;
        if self.screen.size() != size {
            self.screen.resize(size);
        }
        if again.ended {
            let row = self.screen.cursor_row();
            self.remember_gap(Gap { row, bytes: None, since: None });
        }
    }

    /// Tells a screen what it does not know by itself.
    pub(super) fn adopt_screen(&mut self) {
        self.screen.set_nonces(self.records.nonces().of_marks());
        self.screen.set_host(host_name());
        // What these wrote first is lost.
        if self.submit_again_before(self.unfed.offset) {
            self.screen.on_lost_output();
        }
        self.submit_again();
    }

    /// The screen that is gone on with. What fails again and again is tried with less and less of what there
    /// was before.
    fn screen_again(&self) -> Again {
        let limits = self.rules.screen;
        let frame = self.frames.borrow();
        let failures = self.reserve.failures.len();
        if failures < FAILURES_MAX
            && let Some(saved) = self.kept.saved()
        {
            let history = saved.history.clone();
            match Screen::restore_below(&saved.snapshot, history, limits) {
                Ok(screen) => return Again { screen, offset: saved.offset, ended: false },
                Err(error) => {
                    tracing::error!(session = %self.id, %error, "the screen cannot be restored")
                }
            }
        }
        let screen = match failures <= FAILURES_MAX {
            true => Screen::after_failure(&frame, limits),
            false => blank(&frame, limits),
        };
        Again { screen, offset: self.reserve.seen, ended: true }
    }

    /// Gives the screen the output that the one before it was given.
    async fn read_again(&mut self) {
        while self.unfed.offset < self.reserve.seen {
            match self.pty.read(self.unfed.offset, &mut self.unfed.bytes).await {
                Ok(ReadOutput::Bytes(_)) => {
                    while !self.unfed.is_empty() {
                        self.feed_slice();
                        yield_now().await;
                    }
                }
                Err(_) if self.skip_lost() => {}
                // What is wrong is told where the output is read.
                Ok(ReadOutput::End) | Err(_) => return,
            }
        }
    }
}

/// A screen that is gone on with.
struct Again {
    screen: Screen,
    /// The first byte of output that it has not seen.
    offset: u64,
    /// The state of the emulator is a new one.
    ended: bool,
}

/// An empty screen whose rows and watermarks come after those of a frame.
fn blank(frame: &Frame, limits: ScreenLimits) -> Screen {
    let row = frame.base_row.plus(frame.lines.len());
    let origin = Origin { watermark: frame.watermark, row };
    Screen::new(frame.size.value, limits, origin)
}

/// A part of a session that its task calls; tests let any of these calls fail.
#[derive(Debug)]
pub(super) struct Part<T>(T);

impl<T> From<T> for Part<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        #[cfg(test)]
        faults::pass();
        &self.0
    }
}

impl<T> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        #[cfg(test)]
        faults::pass();
        &mut self.0
    }
}
