//! Reserves space for unsent bytes before a large message is built.
//!
//! So a client that requests much and reads nothing cannot make the daemon hold it all.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of bytes per semaphore permit.
const UNIT: usize = 1024;

/// A reserved part of a connection's unsent bytes, returned on drop.
#[derive(Debug)]
#[must_use = "room that is dropped is given back before the line is built"]
pub struct ReservedSpace(Option<OwnedSemaphorePermit>);

/// All space of one kind that a connection has.
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

    /// Waits for space, in order of arrival. Returns empty space at once when the connection is closed.
    pub(super) async fn reserve(&self, bytes: usize) -> ReservedSpace {
        let units = self.units_of(bytes);
        ReservedSpace(self.free.clone().acquire_many_owned(units).await.ok())
    }

    /// Reserves space that is free now.
    pub(super) fn reserve_now(&self, bytes: usize) -> Option<ReservedSpace> {
        let free = self.free.clone().try_acquire_many_owned(self.units_of(bytes));
        free.ok().map(|permit| ReservedSpace(Some(permit)))
    }

    /// Adjusts the space to the final line, as far as it is available now.
    pub(super) fn fit(&self, room: Option<ReservedSpace>, bytes: usize) -> ReservedSpace {
        let wanted = self.units_of(bytes) as usize;
        let mut permit = room.and_then(|room| room.0);
        let held = permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(surplus) = held.checked_sub(wanted) {
            drop(permit.as_mut().and_then(|permit| permit.split(surplus)));
            return ReservedSpace(permit);
        }
        let missing = (wanted - held).min(self.free.available_permits());
        let more = self.free.clone().try_acquire_many_owned(missing as u32).ok();
        match (&mut permit, more) {
            (Some(permit), Some(more)) => permit.merge(more),
            (Some(_), None) => {}
            (None, more) => permit = more,
        }
        ReservedSpace(permit)
    }

    pub(super) fn close(&self) {
        self.free.close();
    }

    fn units_of(&self, bytes: usize) -> u32 {
        bytes.div_ceil(UNIT).min(self.units) as u32
    }
}
