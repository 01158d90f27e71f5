//! The two marks that bound the valid data of a ring.
//! All lock-free shared state is here, so that a test can try every order of memory accesses.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A number in shared memory.
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// A memory fence.
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// The end of the written data, and the start of the data that is still valid.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Marks<W> {
    head: W,
    tail: W,
}

impl<W: Word> Marks<W> {
    pub fn new(head: W, tail: W) -> Self {
        Self { head, tail }
    }

    /// Announces that the data before `head` is written. Call this after the write.
    pub fn publish(&self, head: u64) {
        self.head.store(head, Ordering::Release);
    }

    /// Announces that the data before `tail` will be overwritten. Call this before the write.
    pub fn release(&self, tail: u64) {
        // A reader that sees this tail also sees a head that is at least as high.
        self.tail.store(tail, Ordering::Release);
        // A reader that sees a byte written after this fence also sees the tail.
        W::fence(Ordering::Release);
    }

    /// The end of the written data.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The start of the valid data, as last announced.
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    /// Whether data just copied from `offset` may have been overwritten during the copy.
    pub fn has_released(&self, offset: u64) -> bool {
        W::fence(Ordering::Acquire);
        self.tail.load(Ordering::Relaxed) > offset
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::atomic::{AtomicU64, fence};

    use super::*;

    impl Word for AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            self.store(value, order);
        }

        fn fence(order: Ordering) {
            fence(order);
        }
    }
}
