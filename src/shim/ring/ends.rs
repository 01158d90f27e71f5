//! The lock-free protocol of a ring: one process writes, others read.
//! It is generic over the memory, so that a test can try every order of memory accesses.

use std::sync::atomic::Ordering;

use crate::shim::ring::RingError;
use crate::shim::word::Word;

/// No program writes this many bytes: at 10 GB/s it takes ten days.
const HEAD_MAX: u64 = 1 << 53;

/// The end of the written data, and the start of the data that is still valid.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingMarks<W> {
    head: W,
    tail: W,
}

impl<W: Word> RingMarks<W> {
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

/// Memory that both ends share: the marks, and data that wraps around at its end.
pub trait RingMemory {
    /// The atomic type of the marks.
    type Word: Word;

    fn marks(&self) -> &RingMarks<Self::Word>;

    fn bytes(&self) -> usize;

    /// Appends `count` bytes from position `at` to `into`. They do not wrap around, and may change during the
    /// copy.
    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>);
}

/// The position of the byte at `offset`, and the bytes from there to the wrap-around.
fn place(memory: &impl RingMemory, offset: u64) -> (usize, usize) {
    let at = (offset % memory.bytes() as u64) as usize;
    (at, memory.bytes() - at)
}

/// The writing end; a ring has one.
#[derive(Debug)]
pub struct WritingEnd<M> {
    memory: M,
    head: u64,
    tail: u64,
}

impl<M: RingMemory> WritingEnd<M> {
    /// Starts at offset 0.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    pub fn head(&self) -> u64 {
        self.head
    }

    pub fn tail(&self) -> u64 {
        self.tail
    }

    pub fn room(&self) -> usize {
        self.memory.bytes() - (self.head - self.tail) as usize
    }

    /// Releases the output before `offset`.
    pub fn release(&mut self, offset: u64) {
        self.tail = self.tail.max(offset.min(self.head));
        self.memory.marks().release(self.tail);
    }

    /// Drops the oldest output until `bytes` bytes are free.
    pub fn make_room(&mut self, bytes: usize) {
        let bytes = bytes.min(self.memory.bytes());
        self.release((self.head + bytes as u64).saturating_sub(self.memory.bytes() as u64));
    }

    /// Calls `write` with a position and a maximum, then publishes the number of bytes that `write` returns.
    pub fn fill<E>(
        &mut self,
        most: usize,
        write: impl FnOnce(&M, usize, usize) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let (at, in_one_piece) = place(&self.memory, self.head);
        let most = most.min(in_one_piece).min(self.room());
        let count = write(&self.memory, at, most)?;
        self.head += count as u64;
        self.memory.marks().publish(self.head);
        Ok(count)
    }

    /// The free areas: the position and length of each.
    pub fn unused(&self) -> [(usize, usize); 2] {
        let (at, to_the_end) = place(&self.memory, self.head);
        let in_one_piece = self.room().min(to_the_end);
        [(at, in_one_piece), (0, self.room() - in_one_piece)]
    }
}

#[derive(Debug)]
pub struct ReadingEnd<M> {
    memory: M,
}

impl<M: RingMemory> ReadingEnd<M> {
    pub fn new(memory: M) -> Self {
        Self { memory }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Appends output from `offset`, at most `most` bytes. Returns the byte count; 0 if there is no more yet.
    ///
    /// # Errors
    /// If some of it was overwritten, `offset` is beyond the output, or the marks are damaged. Nothing is
    /// appended then.
    pub fn copy(&self, offset: u64, most: usize, into: &mut Vec<u8>) -> Result<usize, RingError> {
        let marks = self.memory.marks();
        let head = marks.head();
        if head > HEAD_MAX {
            return Err(RingError::Damaged);
        }
        let there = head.checked_sub(offset).ok_or(RingError::NotThere)?;
        if there > self.memory.bytes() as u64 {
            return Err(self.gone(offset));
        }
        let count = (there as usize).min(most);
        let length = into.len();
        into.reserve(count);
        let (at, in_one_piece) = place(&self.memory, offset);
        self.memory.append(at, count.min(in_one_piece), into);
        if count > in_one_piece {
            self.memory.append(0, count - in_one_piece, into);
        }
        if marks.has_released(offset) {
            into.truncate(length);
            return Err(self.gone(offset));
        }
        Ok(count)
    }

    /// Why the output at `offset` is missing. A correct writer releases what it overwrites, and never more
    /// than it wrote.
    fn gone(&self, offset: u64) -> RingError {
        let marks = self.memory.marks();
        let tail = marks.tail();
        if tail > offset && tail <= marks.head() { RingError::NotThere } else { RingError::Damaged }
    }
}

#[cfg(test)]
mod tests;
