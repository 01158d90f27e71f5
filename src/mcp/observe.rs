//! `termgate/observe`: deltas of one session, pushed until the client cancels.
//!
//! Nothing is queued for an observer: it is sent what changed since the last delta the socket took,
//! however many frames lie between, so a slow one gets fewer and larger deltas.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::RequestId;
use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::ids::{RowNumber, Watermark};
use crate::mcp::connection::Connection;
use crate::mcp::delta_cache::{DeltaCache, Start};
use crate::mcp::outbox::{Delivery, PushLane};
use crate::session::clock::Clock;
use crate::session::counters::Counter;
use crate::session::handle::Session;
use crate::session::stats::Observing;
use crate::surface::turns::Share;
use crate::wire::attach::ObserveRequest;

/// The name of the extension under which it is declared.
pub const EXTENSION: &str = "dev.termgate/observe";
/// The notification that carries a delta.
const DELTA_METHOD: &str = "termgate/delta";
/// The most deltas a second that a client may ask for; frames come no faster.
const RATE_HZ_MAX: u32 = 1_000;

impl ObserveRequest {
    /// The part of the screen that is watched.
    pub fn view(&self) -> View {
        View { lane: self.lane.into(), top: self.top, rows: self.rows, input_modes: false }
    }

    /// The shortest time between two deltas.
    ///
    /// # Errors
    /// What is wrong with the rate.
    pub fn pause(&self) -> Result<Duration, String> {
        match self.max_rate_hz {
            None => Ok(Duration::ZERO),
            Some(rate) if (1..=RATE_HZ_MAX).contains(&rate) => Ok(Duration::from_secs(1) / rate),
            Some(rate) => Err(format!("max_rate_hz: {rate} is not within 1 to {RATE_HZ_MAX}")),
        }
    }
}

/// What all observers were sent so far.
#[derive(Debug, Default)]
pub struct Tally {
    pub deltas: Counter,
    /// Frames that were told together with a later one.
    pub skipped: Counter,
}

/// One observation.
#[derive(Debug)]
pub struct Observation {
    pub session: Session,
    pub connection: Arc<Connection>,
    /// Turns for deltas that are large.
    pub share: Share,
    pub request: RequestId,
    /// Closed by the transport as soon as the client's cancel is read.
    pub lane: PushLane,
    /// Whether the client wants its notifications tagged as those of a subscription (2026-07-28).
    pub tagged: bool,
    pub view: View,
    pub since: Option<Watermark>,
    pub pause: Duration,
    /// Whether it ends once the end of the program was told.
    pub until_exit: bool,
}

/// Why an observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The session is removed.
    Removed,
    /// The end of the program was told.
    Exited,
    /// The client takes no more.
    Dropped,
}

impl Observation {
    /// Pushes deltas until it ends; dropping the future ends it as well.
    pub async fn run(self, cache: &DeltaCache, tally: &Tally, clock: &Clock) -> Ended {
        let _counted = Observing::start(Arc::clone(self.session.live_shared()));
        let deltas = cache.of(self.session.id());
        let head = self.head();
        let mut frames = self.session.frames();
        let mut since = self.since;
        let mut told: Option<RowNumber> = None;
        let mut first = true;
        let mut seen: Option<Watermark> = None;
        loop {
            let newest = async |frames: &mut watch::Receiver<Arc<Frame>>, start: &Start| {
                let frame = Arc::clone(&frames.borrow_and_update());
                let delta = deltas.encode(&frame, start, &self.share).await;
                (frame, delta)
            };
            let start = Start { since, view: self.view, told };
            let (looked_at, delta) = newest(&mut frames, &start).await;
            if first || !delta.empty {
                // A slow client makes this wait, so what is sent is made anew from the newest frame.
                let room = self.connection.outbox.push_room(delta.tail.len()).await;
                let (frame, delta) = newest(&mut frames, &start).await;
                let segments = [head.clone(), delta.tail, Bytes::new()];
                let receipt = self.connection.outbox.push(&self.lane, Some(room), segments);
                if receipt.await == Delivery::Dropped {
                    return Ended::Dropped;
                }
                tally.deltas.add(1);
                tally.skipped.add(seen.map_or(0, |seen| between(seen, frame.watermark)));
                seen = Some(frame.watermark);
                first = false;
                since = Some(frame.watermark);
                told = Some(frame.base_row);
                if self.until_exit && frame.exit.value.is_some() {
                    return Ended::Exited;
                }
                if !self.pause.is_zero() {
                    clock.sleep_until(clock.now() + self.pause).await;
                }
            } else {
                seen = Some(looked_at.watermark);
            }
            if frames.changed().await.is_err() {
                return Ended::Removed;
            }
        }
    }

    /// The notification up to where the delta begins, which all observers share.
    fn head(&self) -> Bytes {
        let id = serde_json::to_string(&self.request).unwrap_or_else(|_| "null".to_owned());
        let tag = if self.tagged {
            format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},")
        } else {
            String::new()
        };
        let head = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"{DELTA_METHOD}\",\"params\":{{{tag}\"observe\":{id}"
        );
        Bytes::from(head)
    }
}

/// How many frames lie between two: each has the watermark after that of the one before.
fn between(earlier: Watermark, later: Watermark) -> u64 {
    later.0.saturating_sub(earlier.0 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_no_frame_between_them() {
        assert_eq!(between(Watermark(7), Watermark(8)), 0);
        assert_eq!(between(Watermark(7), Watermark(7)), 0);
        assert_eq!(between(Watermark(7), Watermark(11)), 3);
    }
}
