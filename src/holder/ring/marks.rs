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
        self.tail.store(tail, Ordering::Relaxed);
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
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::thread;

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

    /// A ring of two places, in which the data at an offset is the offset and one more.
    struct Ring {
        marks: Marks<AtomicU64>,
        places: [AtomicU64; 2],
    }

    impl Ring {
        fn new() -> Arc<Self> {
            let number = || AtomicU64::new(0);
            let marks = Marks::new(number(), number());
            Arc::new(Self { marks, places: [number(), number()] })
        }

        fn write(&self, offset: u64) {
            self.places[offset as usize % 2].store(offset + 1, Ordering::Relaxed);
            self.marks.publish(offset + 1);
        }

        /// Copies what there is from an offset on; none when it was overwritten.
        fn copy(&self, offset: u64) -> Option<Vec<u64>> {
            let count = self.marks.head().checked_sub(offset).filter(|count| *count <= 2)?;
            let place = |offset: u64| self.places[offset as usize % 2].load(Ordering::Relaxed);
            let copied = (offset..offset + count).map(place).collect();
            (!self.marks.has_released(offset)).then_some(copied)
        }
    }

    #[test]
    fn what_is_copied_is_what_was_written_in_every_order_of_two_processors() {
        loom::model(|| {
            let ring = Ring::new();
            let writer = thread::spawn({
                let ring = Arc::clone(&ring);
                move || {
                    ring.write(0);
                    ring.write(1);
                    ring.marks.release(1);
                    ring.write(2);
                }
            });
            for offset in [0, 1] {
                for (at, copied) in (offset..).zip(ring.copy(offset).unwrap_or_default()) {
                    assert_eq!(copied, at + 1, "at offset {at}");
                }
            }
            writer.join().unwrap();
            assert_eq!(ring.copy(1), Some(vec![2, 3]));
        });
    }
}
