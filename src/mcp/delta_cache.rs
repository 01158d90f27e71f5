//! Caches encoded deltas, so that observers at the same watermark share one encoding.
//!
//! Only the newest frame of each session is cached.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::core::frame::Frame;
use crate::core::frame::delta::{Lane, View};
use crate::core::ids::{RowNumber, SessionId, Watermark};
use crate::surface::turns::{Share, is_short};
use crate::wire::delta::DeltaWire;

/// The maximum of cached starting points per frame.
const STARTS_MAX: usize = 16;

/// The inputs of a delta besides the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaStart {
    pub since: Option<Watermark>,
    pub view: View,
    pub told: Option<RowNumber>,
}

#[derive(Clone, Debug)]
pub struct Encoded {
    /// The members of `params` from `session` on, and the end of the message.
    pub tail: Bytes,
    /// Whether the delta has no content, for example when only rows outside the view changed.
    pub empty: bool,
}

#[derive(Debug, Default)]
struct NewestDeltas {
    watermark: Watermark,
    encoded: Vec<(DeltaStart, Arc<OnceCell<Encoded>>)>,
}

/// The cached deltas of one session, shared by its observers.
#[derive(Clone, Debug)]
pub struct SessionDeltas {
    session: SessionId,
    slot: Arc<Mutex<NewestDeltas>>,
}

impl SessionDeltas {
    pub fn new(session: SessionId) -> Self {
        Self { session, slot: Arc::default() }
    }

    /// Returns the delta from `start` to `frame`, unless it takes long to encode.
    pub fn encode_here(&self, frame: &Frame, start: &DeltaStart) -> Option<Encoded> {
        let place = self.place(frame.watermark, start);
        let known = place.as_ref().and_then(|place| place.get().cloned());
        known.or_else(|| {
            let encoded =
                is_short(cells(frame, start)).then(|| encode(self.session, frame, start))?;
            // Another may encode it at the same time.
            let _ = place.map(|place| place.set(encoded.clone()));
            Some(encoded)
        })
    }

    /// Returns the delta from `start` to `frame`. Concurrent callers share one encoding; a large one runs in a turn of
    /// `share`.
    pub async fn encode(&self, frame: &Arc<Frame>, start: &DeltaStart, share: &Share) -> Encoded {
        let (session, cells) = (self.session, cells(frame, start));
        let encoding = async {
            let (frame, start) = (Arc::clone(frame), start.clone());
            share.off_worker(cells, move || encode(session, &frame, &start)).await
        };
        match self.place(frame.watermark, start) {
            Some(place) => place.get_or_init(|| encoding).await.clone(),
            None => encoding.await,
        }
    }

    /// The cell for the delta. `None` if it is not cached.
    fn place(&self, watermark: Watermark, start: &DeltaStart) -> Option<Arc<OnceCell<Encoded>>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.watermark != watermark {
            // An observer with an older frame must not evict the newer one.
            if slot.watermark > watermark {
                return None;
            }
            *slot = NewestDeltas { watermark, encoded: Vec::new() };
        }
        if let Some((_, known)) = slot.encoded.iter().find(|(known, _)| known == start) {
            return Some(Arc::clone(known));
        }
        if slot.encoded.len() == STARTS_MAX {
            return None;
        }
        let place = Arc::default();
        slot.encoded.push((start.clone(), Arc::clone(&place)));
        Some(place)
    }
}

/// Estimates the number of cells in a delta from the screen only.
fn cells(frame: &Frame, start: &DeltaStart) -> usize {
    let floor = start.since.filter(|since| frame.reset <= *since).unwrap_or_default();
    let shown = frame.lines.iter().filter(|line| line.changed > floor).count();
    let lane = match start.view.lane {
        Lane::Foreground => 0,
        Lane::Recent => Lane::RECENT_SCREENS * frame.lines.len(),
        Lane::History => frame.history.len(),
    };
    let untold = start.told.map_or(u64::MAX, |told| frame.base_row.0.saturating_sub(told.0));
    let rows = shown + lane.min(usize::try_from(untold).unwrap_or(usize::MAX));
    rows * usize::from(frame.size.value.cols)
}

fn encode(session: SessionId, frame: &Frame, start: &DeltaStart) -> Encoded {
    let delta = frame.delta_since(start.since, &start.view, start.told);
    let empty = delta.updates.is_empty() && !delta.reset;
    let mut tail = format!(",\"session\":\"{session}\",").into_bytes();
    // Strings and numbers in maps with text keys always serialize.
    let body = serde_json::to_vec(&DeltaWire::from(&delta)).unwrap_or_else(|_| b"{}".to_vec());
    tail.extend_from_slice(&body[1..]);
    tail.extend_from_slice(b"}\n");
    Encoded { tail: Bytes::from(tail), empty }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::core::frame::Size;
    use crate::core::ids::TenantId;
    use crate::core::moment::Moment;
    use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
    use crate::surface::turns::Turns;

    /// A frame full of text.
    fn full(rows: u16, cols: u16) -> Arc<Frame> {
        let size = Size { rows, cols };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        screen
            .feed(Moment::default(), "x".repeat(usize::from(rows) * usize::from(cols)).as_bytes());
        screen.first_frame(Moment::default(), &Facts::default())
    }

    fn deltas() -> SessionDeltas {
        SessionDeltas::new(SessionId::from_random(uuid::Uuid::nil()))
    }

    fn whole() -> DeltaStart {
        DeltaStart { since: None, view: View::default(), told: None }
    }

    fn is_there(encoding: &mut (impl Future<Output = Encoded> + Unpin)) -> bool {
        pin!(encoding).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn a_large_delta_waits_for_a_turn_and_a_small_one_does_not() {
        let turns = Turns::default();
        let share = turns.share_of(&TenantId::of_uid(1));
        let mut others = Vec::new();
        while others.len() < turns.at_once() {
            others.push(share.turn().await);
        }
        let (start, small, large) = (whole(), full(24, 80), full(100, 400));
        let deltas_of_small = deltas();
        assert!(is_there(&mut Box::pin(deltas_of_small.encode(&small, &start, &share))));
        let deltas = deltas();
        let mut encoding = Box::pin(deltas.encode(&large, &start, &share));
        assert!(!is_there(&mut encoding));
        let mut another = Box::pin(deltas.encode(&large, &start, &share));
        assert!(!is_there(&mut another));
        drop(others);
        let (one, other) = (encoding.await, another.await);
        assert_eq!(one.tail.as_ptr(), other.tail.as_ptr(), "it was encoded twice");
    }
}
