//! A number that two processes share. It is a trait, so that a test can try every order of memory accesses.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A number in shared memory.
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Sets these bits and returns the number before.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Replaces `current`. Returns what is there instead if that is another number.
    fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<(), u64>;
    /// A memory fence.
    fn fence(order: Ordering);
}

macro_rules! impl_word {
    ($atomic:ty, $fence:path) => {
        impl Word for $atomic {
            fn load(&self, order: Ordering) -> u64 {
                self.load(order)
            }

            fn store(&self, value: u64, order: Ordering) {
                self.store(value, order);
            }

            fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
                self.fetch_or(bits, order)
            }

            fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<(), u64> {
                self.compare_exchange(current, new, order, Ordering::Relaxed).map(drop)
            }

            fn fence(order: Ordering) {
                $fence(order);
            }
        }
    };
}

impl_word!(AtomicU64, fence);

// A number that loom watches.
#[cfg(test)]
impl_word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence);
