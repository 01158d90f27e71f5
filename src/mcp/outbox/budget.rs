//! Room among the unsent bytes of one connection, reserved before a big line is built.
//!
//! It must not know lines or sockets. Reserving first keeps a client that asks for much and reads
//! nothing from making the daemon hold it all.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One permit stands for this many bytes.
const UNIT: usize = 1024;

/// A part of a connection's unsent bytes, given back when dropped.
#[derive(Debug)]
#[must_use = "room that is dropped is given back before the line is built"]
pub struct Room(Option<OwnedSemaphorePermit>);

/// All the room of one kind that a connection has.
#[derive(Debug)]
pub(super) struct Rooms {
    free: Arc<Semaphore>,
    units: usize,
}

impl Rooms {
    pub(super) fn new(bytes: usize) -> Self {
        let units = bytes / UNIT;
        Self { free: Arc::new(Semaphore::new(units)), units }
    }

    /// Waits for room; whoever came first is served first. A closed connection gives empty room at
    /// once, since nothing will be held for it.
    pub(super) async fn reserve(&self, bytes: usize) -> Room {
        let units = self.units_of(bytes);
        Room(self.free.clone().acquire_many_owned(units).await.ok())
    }

    /// Makes the room as large as the line turned out to be, or as large as can be had now.
    pub(super) fn fit(&self, room: Option<Room>, bytes: usize) -> Room {
        let wanted = self.units_of(bytes) as usize;
        let mut permit = room.and_then(|room| room.0);
        let held = permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(surplus) = held.checked_sub(wanted) {
            drop(permit.as_mut().and_then(|permit| permit.split(surplus)));
            return Room(permit);
        }
        let missing = (wanted - held).min(self.free.available_permits());
        let more = self.free.clone().try_acquire_many_owned(missing as u32).ok();
        match (&mut permit, more) {
            (Some(permit), Some(more)) => permit.merge(more),
            (Some(_), None) => {}
            (None, more) => permit = more,
        }
        Room(permit)
    }

    pub(super) fn close(&self) {
        self.free.close();
    }

    fn units_of(&self, bytes: usize) -> u32 {
        bytes.div_ceil(UNIT).min(self.units) as u32
    }
}
