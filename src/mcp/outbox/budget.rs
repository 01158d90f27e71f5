//! Reserves space for unsent bytes before a large message is built.
//!
//! So a client that requests much and reads nothing cannot make the daemon hold it all.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::mcp::answer_memory::AnswerSpace;

/// The number of bytes per semaphore permit.
const UNIT: usize = 1024;

/// A reserved part of a connection's unsent bytes, returned on drop.
#[derive(Debug)]
#[must_use = "room that is dropped is given back before the line is built"]
pub struct ReservedSpace {
    unsent: Option<OwnedSemaphorePermit>,
    /// What a long answer of a mount has of the memory of all clients.
    answer: Option<AnswerSpace>,
}

impl ReservedSpace {
    fn of(unsent: Option<OwnedSemaphorePermit>) -> Self {
        Self { unsent, answer: None }
    }

    /// That of an answer, for which nothing else is reserved.
    pub fn of_answer(answer: AnswerSpace) -> Self {
        Self { unsent: None, answer: Some(answer) }
    }
}

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
        ReservedSpace::of(self.free.clone().acquire_many_owned(units).await.ok())
    }

    /// Reserves space that is free now.
    pub(super) fn reserve_now(&self, bytes: usize) -> Option<ReservedSpace> {
        let free = self.free.clone().try_acquire_many_owned(self.units_of(bytes));
        free.ok().map(|permit| ReservedSpace::of(Some(permit)))
    }

    /// Adjusts the space to the final line, as far as it is available now.
    pub(super) fn fit(&self, room: Option<ReservedSpace>, bytes: usize) -> ReservedSpace {
        let wanted = self.units_of(bytes) as usize;
        let ReservedSpace { unsent: mut permit, answer } =
            room.unwrap_or_else(|| ReservedSpace::of(None));
        let held = permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(surplus) = held.checked_sub(wanted) {
            drop(permit.as_mut().and_then(|permit| permit.split(surplus)));
            return ReservedSpace { unsent: permit, answer };
        }
        let missing = (wanted - held).min(self.free.available_permits());
        let more = self.free.clone().try_acquire_many_owned(missing as u32).ok();
        match (&mut permit, more) {
            (Some(permit), Some(more)) => permit.merge(more),
            (Some(_), None) => {}
            (None, more) => permit = more,
        }
        ReservedSpace { unsent: permit, answer }
    }

    pub(super) fn close(&self) {
        self.free.close();
    }

    fn units_of(&self, bytes: usize) -> u32 {
        bytes.div_ceil(UNIT).min(self.units) as u32
    }
}
