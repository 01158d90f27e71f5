//! Waiting on the frames of one session until a condition holds.
//!
//! Nothing polls here: the wait sleeps until the session publishes a frame or its own deadline comes.
//! Only where no frame would come by itself does it have the session ask the kernel meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::ids::{Epoch, Watermark};
use crate::core::moment::Moment;
use crate::core::wait::look::Progress;
use crate::core::wait::{Conditions, Outcome, Wait};
use crate::session::clock::Clock;
use crate::session::drain::WaitingCall;
use crate::session::handle::Session;
use crate::session::row_followers::RowFollower;
use crate::session::stats::Participation;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::waited::lease_end;
use crate::surface::turns::Share;
use crate::wire::wait::{WaitOutcome, Waited};

/// How many steps of a look are taken at once where others wait behind it, and then each time it has a
/// turn on a thread of its own. A step takes some nanoseconds.
const STEPS_HERE: usize = 1 << 14;
const STEPS_PER_TURN: usize = 1 << 18;

/// How long a wait with a shorter timeout has for its first look, which others may keep waiting.
pub const FIRST_LOOK_LEAST: Duration = Duration::from_secs(1);
/// How long the end of a lease is kept waiting by the first look.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(5);

/// What ends a wait besides its conditions.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub since: Option<Watermark>,
    pub started: Moment,
    pub timeout: Duration,
    /// The holding whose end ends the wait.
    pub epoch: Option<Epoch>,
}

/// A wait that has begun: what comes from now on counts.
#[derive(Debug)]
pub struct Watch {
    session: Session,
    frames: watch::Receiver<Arc<Frame>>,
    frame: Arc<Frame>,
    wait: Wait,
    bounds: Bounds,
    share: Share,
    /// A look took longer than others should wait; from then on it always gets turns.
    long: bool,
    /// All of a frame was looked at.
    looked: bool,
    /// Keeps rows until they are compared.
    follower: Option<RowFollower>,
    /// Kept as long as only the kernel knows what is waited for.
    attending: Option<Participation>,
}

impl Watch {
    /// Begins to wait, without waiting for anything yet.
    pub fn begin(
        session: Session,
        conditions: Conditions,
        bounds: Bounds,
        share: Share,
    ) -> Result<Self, SurfaceError> {
        let mut frames = session.frames();
        let frame = Arc::clone(&frames.borrow_and_update());
        let wait = Wait::new(conditions, bounds.since, &frame, bounds.started)
            .map_err(|error| SurfaceError::argument("text", error.to_string()))?;
        let follower = wait.next_row().map(|row| session.follow_rows(row));
        let (long, looked, attending) = (false, false, None);
        Ok(Self { session, frames, frame, wait, bounds, share, long, looked, follower, attending })
    }

    /// Waits until a condition holds, the time is over, the lease is lost or the daemon leaves.
    pub async fn end(mut self, clock: &Clock, waiting: &WaitingCall) -> Waited {
        let timeout = self.bounds.started + self.bounds.timeout;
        let mut news = true;
        let end = loop {
            let now = clock.now();
            let met = match news {
                true => self.look(clock, waiting, timeout).await,
                false => Ok(self.wait.on_time(now)),
            };
            match met {
                Ok(Some(outcome)) => break Ok(outcome),
                Ok(None) => {}
                Err(end) => break Err(end),
            }
            if let Some(end) = self.bounds.epoch.and_then(|epoch| lease_end(&self.frame, epoch)) {
                break Err(end.into());
            }
            if now >= timeout {
                break Err(WaitOutcome::Timeout);
            }
            self.attend();
            let deadline = self.wait.deadline().map_or(timeout, |at| at.min(timeout));
            news = false;
            // A frame that came meanwhile is judged before the time that passed without one.
            tokio::select! {
                biased;
                changed = self.frames.changed() => {
                    if changed.is_err() {
                        break Err(WaitOutcome::Exited);
                    }
                    self.frame = Arc::clone(&self.frames.borrow_and_update());
                    news = true;
                }
                () = clock.sleep_until(deadline) => {}
                () = waiting.told() => break Err(WaitOutcome::DaemonLeft),
            }
        };
        let elapsed = clock.now().since(self.bounds.started);
        Waited::of(&self.session, &self.frame, end, &self.wait, (elapsed, clock))
    }

    /// Looks at the frame, in turns where it takes long. The end of the time and of the lease are kept
    /// waiting by the first look alone, and not for long.
    async fn look(
        &mut self,
        clock: &Clock,
        waiting: &WaitingCall,
        timeout: Moment,
    ) -> Result<Option<Outcome>, WaitOutcome> {
        let started = self.bounds.started;
        let timeout = if self.looked { timeout } else { timeout.max(started + FIRST_LOOK_LEAST) };
        let mut look = self.wait.look(Arc::clone(&self.frame), clock.now());
        let mut progress = if self.long { Progress::Unfinished } else { look.run(STEPS_HERE) };
        while progress == Progress::Unfinished {
            self.long = true;
            let turn = tokio::select! {
                biased;
                () = waiting.told() => return Err(WaitOutcome::DaemonLeft),
                () = clock.sleep_until(timeout) => return Err(WaitOutcome::Timeout),
                turn = self.share.turn() => turn,
            };
            let newest = Arc::clone(&self.frames.borrow());
            let lost = self.bounds.epoch.and_then(|epoch| lease_end(&newest, epoch));
            let patient = !self.looked && clock.now() < started + FIRST_LOOK_MAX;
            if let Some(end) = lost.filter(|_| !patient) {
                return Err(end.into());
            }
            look.renew(&newest.history);
            (look, progress) = turn
                .work(move || {
                    let progress = look.run(STEPS_PER_TURN);
                    (look, progress)
                })
                .await;
        }
        if progress == Progress::TooCostly {
            return Err(WaitOutcome::PatternTooCostly);
        }
        self.looked = true;
        let met = self.wait.on_look(look);
        if let Some((follower, row)) = self.follower.as_ref().zip(self.wait.next_row()) {
            follower.advance(row);
        }
        Ok(met)
    }

    /// Has the kernel asked as long as only it knows what is waited for.
    fn attend(&mut self) {
        if !self.wait.asks_kernel(&self.frame) {
            self.attending = None;
        } else if self.attending.is_none() {
            self.attending = Some(self.session.attend());
        }
    }
}
