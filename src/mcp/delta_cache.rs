//! Deltas as bytes, encoded once for all observers that stand at the same watermark.
//!
//! It keeps only what belongs to the newest frame of a session, since nobody asks for older ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::ids::{RowNumber, SessionId, Watermark};
use crate::surface::shape::delta::DeltaWire;

/// How many different starting points of one frame are kept.
const STARTS_MAX: usize = 16;

/// What a delta depends on besides the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub since: Option<Watermark>,
    pub view: View,
    pub told: Option<RowNumber>,
}

/// A delta ready to be sent.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The members of the notification's `params` from `session` on, with what closes the message.
    pub tail: Bytes,
    /// Whether there is nothing to tell, as when only rows outside the view changed.
    pub empty: bool,
}

#[derive(Debug, Default)]
struct Slot {
    watermark: Watermark,
    encoded: Vec<(Start, Encoded)>,
}

/// The deltas of one session, shared by those who observe it.
#[derive(Clone, Debug)]
pub struct SessionDeltas {
    session: SessionId,
    slot: Arc<Mutex<Slot>>,
}

/// The deltas of all sessions that are observed; gone with the last who observes.
#[derive(Debug, Default)]
pub struct DeltaCache {
    slots: Mutex<HashMap<SessionId, Weak<Mutex<Slot>>>>,
}

impl DeltaCache {
    /// The deltas of one session, for as long as somebody keeps them.
    pub fn of(&self, session: SessionId) -> SessionDeltas {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.get(&session).and_then(Weak::upgrade);
        let slot = known.unwrap_or_else(|| {
            slots.retain(|_, slot| slot.strong_count() > 0);
            let slot = Arc::default();
            slots.insert(session, Arc::downgrade(&slot));
            slot
        });
        SessionDeltas { session, slot }
    }
}

impl SessionDeltas {
    /// The delta from `start` to `frame`, encoded now if nobody asked before.
    pub fn encode(&self, frame: &Frame, start: &Start) -> Encoded {
        // Held while encoding, so that observers who wake together encode once.
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.watermark != frame.watermark {
            // An observer that still holds an older frame must not push the newer ones out.
            if slot.watermark > frame.watermark {
                return encode(self.session, frame, start);
            }
            *slot = Slot { watermark: frame.watermark, encoded: Vec::new() };
        }
        if let Some((_, known)) = slot.encoded.iter().find(|(known, _)| known == start) {
            return known.clone();
        }
        let encoded = encode(self.session, frame, start);
        if slot.encoded.len() < STARTS_MAX {
            slot.encoded.push((start.clone(), encoded.clone()));
        }
        encoded
    }
}

fn encode(session: SessionId, frame: &Frame, start: &Start) -> Encoded {
    let delta = frame.delta_since(start.since, &start.view, start.told);
    let empty = delta.updates.is_empty() && !delta.reset;
    let mut tail = format!(",\"session\":\"{session}\",").into_bytes();
    // Strings and numbers in maps with text keys always serialize.
    let body = serde_json::to_vec(&DeltaWire::from(&delta)).unwrap_or_else(|_| b"{}".to_vec());
    tail.extend_from_slice(&body[1..]);
    tail.extend_from_slice(b"}\n");
    Encoded { tail: Bytes::from(tail), empty }
}
