//! The two marks by which one process tells others what a ring holds.
//!
//! They know no memory. All that is shared without a lock is here, so that a test can try every
//! order in which two processors may see it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A number that several processes see.
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Orders what comes before it and after it.
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

/// Up to where a ring was written, and from where on that is still there.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Marks<W> {
    head: W,
    tail: W,
}

impl<W: Word> Marks<W> {
    /// Marks at these offsets.
    pub fn new(head: W, tail: W) -> Self {
        Self { head, tail }
    }

    /// Says, after it was written, that the data before `head` is there.
    pub fn publish(&self, head: u64) {
        self.head.store(head, Ordering::Release);
    }

    /// Says, before anything is overwritten, that the data before `tail` is going.
    pub fn release(&self, tail: u64) {
        // Whoever sees it also sees a head that is not below it.
        self.tail.store(tail, Ordering::Release);
        // Whoever sees a byte that is written after this also sees the mark.
        W::fence(Ordering::Release);
    }

    /// Up to where data is there.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// From where on data is still there, as far as is known.
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    /// Whether data that was just copied from `offset` on may have been overwritten meanwhile.
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
