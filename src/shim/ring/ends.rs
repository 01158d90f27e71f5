//! The lock-free protocol of a ring: one process writes, others read.
//! It is generic over the memory, so that a test can try every order of memory accesses.

use crate::shim::ring::Unread;
use crate::shim::ring::marks::{Marks, Word};

/// No program writes this many bytes: at 10 GB/s it takes ten days.
const HEAD_MAX: u64 = 1 << 53;

/// Memory that both ends share: the marks, and data that wraps around at its end.
pub trait Memory {
    /// The atomic type of the marks.
    type Word: Word;

    fn marks(&self) -> &Marks<Self::Word>;

    /// The capacity in bytes.
    fn bytes(&self) -> usize;

    /// Appends `count` bytes from position `at` to `into`. They do not wrap around, and may change during the
    /// copy.
    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>);
}

/// The position of the byte at `offset`, and the bytes from there to the wrap-around.
fn place(memory: &impl Memory, offset: u64) -> (usize, usize) {
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

impl<M: Memory> WritingEnd<M> {
    /// Starts at offset 0.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The bytes written since the start.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The offset of the oldest byte in the ring.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The free bytes.
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
    ///
    /// # Errors
    /// Returns the error of `write`.
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

/// A reading end. Readers disturb neither each other nor the writer.
#[derive(Debug)]
pub struct ReadingEnd<M> {
    memory: M,
}

impl<M: Memory> ReadingEnd<M> {
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
    pub fn copy(&self, offset: u64, most: usize, into: &mut Vec<u8>) -> Result<usize, Unread> {
        let marks = self.memory.marks();
        let head = marks.head();
        if head > HEAD_MAX {
            return Err(Unread::Damaged);
        }
        let there = head.checked_sub(offset).ok_or(Unread::NotThere)?;
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
    fn gone(&self, offset: u64) -> Unread {
        let marks = self.memory.marks();
        let tail = marks.tail();
        if tail > offset && tail <= marks.head() { Unread::NotThere } else { Unread::Damaged }
    }
}

#[cfg(test)]
mod tests;
