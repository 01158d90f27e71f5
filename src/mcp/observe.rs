//! `termgate/observe`: deltas of one session, pushed until the client cancels.
//!
//! Each delta covers all changes since the last one that was written. So a slow client gets fewer and larger deltas.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::RequestId;
use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::ids::{RowNumber, Watermark};
use crate::mcp::connection::Connection;
use crate::mcp::delta_cache::{DeltaCache, DeltaStart};
use crate::mcp::outbox::{Delivery, PushLane};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::session::stats::EventCounter;
use crate::surface::error::SurfaceError;
use crate::surface::turns::Share;
use crate::wire::attach::ObserveRequest;

/// The name of the extension that declares this method.
pub const EXTENSION: &str = "dev.termgate/observe";
/// The notification that carries a delta.
const DELTA_METHOD: &str = "termgate/delta";
/// The maximum rate a client may request, in deltas per second. Frames never come faster.
const RATE_HZ_MAX: u32 = 1_000;

impl ObserveRequest {
    /// The observed part of the screen.
    pub fn view(&self) -> View {
        View { lane: self.lane.into(), top: self.top, rows: self.rows, input_modes: false }
    }

    /// The shortest time between two deltas.
    pub fn pause(&self) -> Result<Duration, SurfaceError> {
        match self.max_rate_hz {
            None => Ok(Duration::ZERO),
            Some(rate) if (1..=RATE_HZ_MAX).contains(&rate) => Ok(Duration::from_secs(1) / rate),
            Some(rate) => {
                let problem = format!("{rate} is not within 1 to {RATE_HZ_MAX}");
                Err(SurfaceError::argument("max_rate_hz", problem))
            }
        }
    }
}

/// Counts what all observers were sent.
#[derive(Debug, Default)]
pub struct Tally {
    pub deltas: EventCounter,
    /// Frames that were combined with a later one.
    pub skipped: EventCounter,
}

#[derive(Debug)]
pub struct Observation {
    pub session: Session,
    pub connection: Arc<Connection>,
    /// Limits the encoding of large deltas.
    pub share: Share,
    pub request: RequestId,
    /// The transport closes it as soon as it reads the client's cancel.
    pub lane: PushLane,
    /// Whether notifications carry the subscription id (2026-07-28).
    pub tagged: bool,
    pub view: View,
    pub since: Option<Watermark>,
    pub pause: Duration,
    /// Whether it ends after the exit of the program was reported.
    pub until_exit: bool,
}

/// Why an observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationEnd {
    /// The session was removed.
    Removed,
    /// The exit of the program was reported.
    Exited,
    /// The client takes no more deltas.
    Dropped,
}

impl Observation {
    /// Pushes deltas until the observation ends. Dropping the future ends it, too.
    pub async fn run(self, cache: &DeltaCache, tally: &Tally, clock: &Clock) -> ObservationEnd {
        let _counted = self.session.live_shared().observe();
        let deltas = cache.of(self.session.id());
        let head = self.head();
        let mut frames = self.session.frames();
        let mut since = self.since;
        let mut told: Option<RowNumber> = None;
        let mut first = true;
        let mut seen: Option<Watermark> = None;
        loop {
            let newest = async |frames: &mut watch::Receiver<Arc<Frame>>, start: &DeltaStart| {
                let frame = Arc::clone(&frames.borrow_and_update());
                let delta = deltas.encode(&frame, start, &self.share).await;
                (frame, delta)
            };
            let start = DeltaStart { since, view: self.view, told };
            let (looked_at, delta) = newest(&mut frames, &start).await;
            if first || !delta.empty {
                // This may wait for a slow client, so encode the newest frame again afterwards.
                let room = self.connection.outbox.push_room(delta.tail.len()).await;
                let (frame, delta) = newest(&mut frames, &start).await;
                let segments = [head.clone(), delta.tail, Bytes::new()];
                let receipt = self.connection.outbox.push(&self.lane, Some(room), segments);
                if receipt.await == Delivery::Dropped {
                    return ObservationEnd::Dropped;
                }
                tally.deltas.add(1);
                tally.skipped.add(seen.map_or(0, |seen| between(seen, frame.watermark)));
                seen = Some(frame.watermark);
                first = false;
                since = Some(frame.watermark);
                told = Some(frame.base_row);
                if self.until_exit && frame.exit.value.is_some() {
                    return ObservationEnd::Exited;
                }
                if !self.pause.is_zero() {
                    clock.sleep_until(clock.now() + self.pause).await;
                }
            } else {
                seen = Some(looked_at.watermark);
            }
            if frames.changed().await.is_err() {
                return ObservationEnd::Removed;
            }
        }
    }

    /// The start of each notification, up to the delta, which is the same for all deltas.
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

/// The number of frames between two watermarks. Each frame increments the watermark by one.
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
