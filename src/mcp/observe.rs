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
use crate::core::ids::Watermark;
use crate::mcp::connection::Connection;
use crate::mcp::delta_cache::{DeltaStart, SessionDeltas};
use crate::mcp::fan_out::{DeltaLane, FanOuts, ObserverProgress, SentDelta};
use crate::mcp::outbox::{Delivery, PushLane};
use crate::session::clock::Clock;
use crate::session::handle::Session;
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
    pub async fn run(self, fan_outs: &FanOuts, clock: &Clock) -> ObservationEnd {
        let _counted = self.session.live_shared().observe();
        let fan_out = fan_outs.of(&self.session);
        let lane = DeltaLane {
            outbox: self.connection.outbox.clone(),
            lane: self.lane.clone(),
            head: self.head(),
        };
        let mut frames = self.session.frames();
        let start = DeltaStart { since: self.since, view: self.view, told: None };
        let mut progress = ObserverProgress { start, seen: None };
        let mut on_its_way = None;
        loop {
            let sent = match on_its_way.take() {
                Some(sent) => Some(sent),
                None => self.send_newest(&mut frames, &lane, &fan_out.deltas, &mut progress).await,
            };
            if let Some(SentDelta { frame, receipt }) = sent {
                if receipt.await == Delivery::Dropped {
                    return ObservationEnd::Dropped;
                }
                progress.on_written(&frame, &fan_outs.tally);
                if self.until_exit && frame.exit.value.is_some() {
                    return ObservationEnd::Exited;
                }
                if !self.pause.is_zero() {
                    clock.sleep_until(clock.now() + self.pause).await;
                }
            }
            if self.pause.is_zero()
                && !self.until_exit
                && let Some(resumed) = fan_out.follow(lane.clone(), progress.clone()).await
            {
                (progress, on_its_way) = (resumed.progress, resumed.sent);
            } else if frames.changed().await.is_err() {
                return ObservationEnd::Removed;
            }
        }
    }

    /// Sends the delta to the newest frame, if it has content or is the first.
    async fn send_newest(
        &self,
        frames: &mut watch::Receiver<Arc<Frame>>,
        lane: &DeltaLane,
        deltas: &SessionDeltas,
        progress: &mut ObserverProgress,
    ) -> Option<SentDelta> {
        let mut newest = async || {
            let frame = Arc::clone(&frames.borrow_and_update());
            let delta = deltas.encode(&frame, &progress.start, &self.share).await;
            (frame, delta)
        };
        let (mut frame, mut delta) = newest().await;
        if progress.seen.is_some() && delta.empty {
            progress.seen = Some(frame.watermark);
            return None;
        }
        let outbox = &lane.outbox;
        let room = match outbox.push_room_now(delta.tail.len()) {
            Some(room) => room,
            None => {
                // While this waits for a slow client, newer frames come.
                let room = outbox.push_room(delta.tail.len()).await;
                (frame, delta) = newest().await;
                room
            }
        };
        let receipt = lane.send(&delta, room);
        Some(SentDelta { frame, receipt })
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
