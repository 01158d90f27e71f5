//! Sends the frames of a session to the observers that have seen all earlier ones, from one task.
//!
//! So a frame wakes one task, however many observe. An observer whose connection does not take a delta at once continues
//! in its own task, and delays no other.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;
use tokio_util::task::AbortOnDropHandle;

use crate::core::frame::Frame;
use crate::core::ids::{SessionId, Watermark};
use crate::mcp::delta_cache::{DeltaStart, Encoded, SessionDeltas};
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::outbox::{Delivery, Outbox, PushLane, PushReceipt};
use crate::session::handle::Session;
use crate::session::stats::EventCounter;

/// How many observers are sent a frame before other tasks run: about a tenth of a millisecond.
const SENDS_AT_ONCE: usize = 32;

/// Counts what all observers were sent.
#[derive(Debug, Default)]
pub struct Tally {
    pub deltas: EventCounter,
    /// Frames that were combined with a later one.
    pub skipped: EventCounter,
}

impl Tally {
    /// Counts a written delta.
    fn add(&self, progress: &ObserverProgress, frame: &Frame) {
        self.deltas.add(1);
        self.skipped.add(progress.seen.map_or(0, |seen| between(seen, frame.watermark)));
    }
}

/// How far an observer has come.
#[derive(Clone, Debug)]
pub struct ObserverProgress {
    /// Where its next delta starts.
    pub start: DeltaStart,
    /// The last frame that was compared, even if there was nothing to send.
    pub seen: Option<Watermark>,
}

impl ObserverProgress {
    /// Notes that the delta to `frame` was written.
    pub fn on_written(&mut self, frame: &Frame, tally: &Tally) {
        tally.add(self, frame);
        self.seen = Some(frame.watermark);
        self.start.since = self.seen;
        self.start.told = Some(frame.base_row);
    }
}

/// The connection of an observer.
#[derive(Clone, Debug)]
pub struct DeltaLane {
    pub outbox: Outbox,
    pub lane: PushLane,
    /// The start of each notification, up to the delta.
    pub head: Bytes,
}

impl DeltaLane {
    /// Sends a delta in the room that was reserved for it.
    pub fn send(&self, delta: &Encoded, room: ReservedSpace) -> PushReceipt {
        let segments = [self.head.clone(), delta.tail.clone(), Bytes::new()];
        self.outbox.push(&self.lane, Some(room), segments)
    }
}

/// A delta to this frame, on its way.
#[derive(Debug)]
pub struct SentDelta {
    pub frame: Arc<Frame>,
    pub receipt: PushReceipt,
}

/// The fan-out of each observed session, which ends with its last observer.
#[derive(Debug, Default)]
pub struct FanOuts {
    pub tally: Arc<Tally>,
    sessions: Mutex<HashMap<SessionId, Weak<FanOut>>>,
}

impl FanOuts {
    /// The fan-out of one session; it lives as long as its users.
    pub fn of(&self, session: &Session) -> Arc<FanOut> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(&session.id()).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            sessions.retain(|_, fan_out| fan_out.strong_count() > 0);
            let deltas = SessionDeltas::new(session.id());
            let fan_out =
                Arc::new(FanOut::start(deltas, session.frames(), Arc::clone(&self.tally)));
            sessions.insert(session.id(), Arc::downgrade(&fan_out));
            fan_out
        })
    }
}

/// The observers of one session.
#[derive(Debug)]
pub struct FanOut {
    /// Their encoded deltas.
    pub deltas: SessionDeltas,
    followers: Followers,
    _task: AbortOnDropHandle<()>,
}

impl FanOut {
    fn start(
        deltas: SessionDeltas,
        frames: watch::Receiver<Arc<Frame>>,
        tally: Arc<Tally>,
    ) -> Self {
        let followers = Followers::default();
        let sending = send_all(followers.clone(), deltas.clone(), frames, tally);
        // Once a budget is used up, sockets seem full.
        let task = AbortOnDropHandle::new(tokio::spawn(unconstrained(sending)));
        Self { deltas, followers, _task: task }
    }

    /// Sends later frames to an observer, until its own task must continue. Dropping the future ends it, too.
    ///
    /// `None` when no frame comes this way.
    pub async fn follow(&self, lane: DeltaLane, progress: ObserverProgress) -> Option<Resumed> {
        let (resume, resumed) = oneshot::channel();
        let place = {
            let mut table = self.followers.lock();
            if table.ended {
                return None;
            }
            if progress.seen < table.frame {
                // It would miss a frame that the others were sent.
                return Some(Resumed { progress, sent: None });
            }
            let number = table.next;
            table.next += 1;
            table.waiting.insert(number, Follower { lane, progress, resume });
            FollowerPlace { followers: &self.followers, number }
        };
        let resumed = resumed.await.ok();
        drop(place);
        resumed
    }
}

/// What the task of an observer continues with.
#[derive(Debug)]
pub struct Resumed {
    pub progress: ObserverProgress,
    /// A delta that the socket did not take at once.
    pub sent: Option<SentDelta>,
}

/// An observer that has no unsent delta.
#[derive(Debug)]
struct Follower {
    lane: DeltaLane,
    progress: ObserverProgress,
    resume: oneshot::Sender<Resumed>,
}

#[derive(Clone, Debug, Default)]
struct Followers(Arc<Mutex<FollowerTable>>);

#[derive(Debug, Default)]
struct FollowerTable {
    /// Bounded by the quotas of observers.
    waiting: BTreeMap<u64, Follower>,
    /// The number of the next one.
    next: u64,
    /// The newest frame that they are sent.
    frame: Option<Watermark>,
    ended: bool,
}

impl Followers {
    /// Sends a frame to the first one from this number on. Returns the number after it.
    fn send_next(&self, from: u64, delivery: &mut FrameDelivery<'_>) -> Option<u64> {
        let mut table = self.lock();
        let (&number, follower) = table.waiting.range_mut(from..).next()?;
        if let Err(Unsent(sent)) = delivery.send_to(follower)
            && let Some(Follower { progress, resume, .. }) = table.waiting.remove(&number)
        {
            // It may be leaving.
            let _ = resume.send(Resumed { progress, sent });
        }
        Some(number + 1)
    }

    fn lock(&self) -> MutexGuard<'_, FollowerTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a follower on drop.
#[derive(Debug)]
struct FollowerPlace<'a> {
    followers: &'a Followers,
    number: u64,
}

impl Drop for FollowerPlace<'_> {
    fn drop(&mut self) {
        self.followers.lock().waiting.remove(&self.number);
    }
}

/// An observer's own task must continue, with this delta if there is one.
struct Unsent(Option<SentDelta>);

/// One frame on its way to all.
struct FrameDelivery<'a> {
    frame: Arc<Frame>,
    deltas: &'a SessionDeltas,
    tally: &'a Tally,
    /// The last delta, which is that of most observers.
    last: Option<(DeltaStart, Encoded)>,
}

impl FrameDelivery<'_> {
    fn send_to(&mut self, follower: &mut Follower) -> Result<(), Unsent> {
        let Follower { lane, progress, .. } = follower;
        if progress.seen >= Some(self.frame.watermark) {
            return Ok(());
        }
        let delta = self.delta(&progress.start).ok_or(Unsent(None))?;
        if delta.empty {
            progress.seen = Some(self.frame.watermark);
            return Ok(());
        }
        let segments = [&lane.head, &delta.tail, &Bytes::new()];
        let receipt = lane.outbox.push_if_idle(&lane.lane, segments).ok_or(Unsent(None))?;
        if let PushReceipt::Known(Delivery::Written) = receipt {
            progress.on_written(&self.frame, self.tally);
            return Ok(());
        }
        Err(Unsent(Some(SentDelta { frame: Arc::clone(&self.frame), receipt })))
    }

    /// The delta from this start. `None` if it takes long to encode.
    fn delta(&mut self, start: &DeltaStart) -> Option<&Encoded> {
        if self.last.as_ref().is_none_or(|(known, _)| known != start) {
            self.last = Some((start.clone(), self.deltas.encode_here(&self.frame, start)?));
        }
        self.last.as_ref().map(|(_, delta)| delta)
    }
}

/// Sends each frame to all followers, until the session is removed.
async fn send_all(
    followers: Followers,
    deltas: SessionDeltas,
    mut frames: watch::Receiver<Arc<Frame>>,
    tally: Arc<Tally>,
) {
    let end = FollowersEnd(followers);
    let followers = &end.0;
    while frames.changed().await.is_ok() {
        let frame = Arc::clone(&frames.borrow_and_update());
        followers.lock().frame = Some(frame.watermark);
        let mut delivery = FrameDelivery { frame, deltas: &deltas, tally: &tally, last: None };
        let (mut next, mut sent) = (0, 0);
        while let Some(after) = followers.send_next(next, &mut delivery) {
            (next, sent) = (after, sent + 1);
            if sent % SENDS_AT_ONCE == 0 {
                yield_now().await;
            }
        }
    }
}

/// Resumes all followers on drop, also after a panic.
struct FollowersEnd(Followers);

impl Drop for FollowersEnd {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        table.ended = true;
        table.waiting.clear();
    }
}

/// The number of frames between two watermarks. Each frame increments the watermark by one.
fn between(earlier: Watermark, later: Watermark) -> u64 {
    later.0.saturating_sub(earlier.0 + 1)
}

#[cfg(test)]
mod tests;
