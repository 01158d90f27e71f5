//! The two ends of a ring: how one process writes while others read, without a lock.
//!
//! They know no kind of memory, so that a test can try every order in which two processors may see it.

use crate::shim::ring::Unread;
use crate::shim::ring::marks::{Marks, Word};

/// No program writes as much as this, in bytes: at 10 GB a second it takes ten days.
const HEAD_MAX: u64 = 1 << 53;

/// Memory that both ends see: the marks, and data that begins anew at its end.
pub trait Memory {
    /// What its marks are made of.
    type Word: Word;

    /// What the ring holds.
    fn marks(&self) -> &Marks<Self::Word>;

    /// How much data it holds.
    fn bytes(&self) -> usize;

    /// Appends `count` bytes from the place `at` on, none of them behind the end; they may change
    /// meanwhile.
    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>);
}

/// Where the byte of this offset is, and how many follow it before the data begins anew.
fn place(memory: &impl Memory, offset: u64) -> (usize, usize) {
    let at = (offset % memory.bytes() as u64) as usize;
    (at, memory.bytes() - at)
}

/// The end that writes; there is one.
#[derive(Debug)]
pub struct WritingEnd<M> {
    memory: M,
    head: u64,
    tail: u64,
}

impl<M: Memory> WritingEnd<M> {
    /// Writes into memory in which nothing is yet.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    /// The memory behind it.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// How much was written since the start.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// From where on the output is still there.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// How much more fits.
    pub fn room(&self) -> usize {
        self.memory.bytes() - (self.head - self.tail) as usize
    }

    /// Lets the output before `offset` go.
    pub fn release(&mut self, offset: u64) {
        self.tail = self.tail.max(offset.min(self.head));
        self.memory.marks().release(self.tail);
    }

    /// Loses the oldest output, so that this much more fits.
    pub fn make_room(&mut self, bytes: usize) {
        let bytes = bytes.min(self.memory.bytes());
        self.release((self.head + bytes as u64).saturating_sub(self.memory.bytes() as u64));
    }

    /// Has `write` put output at a place, at most so many bytes, and publishes how many it says it put;
    /// readers find these.
    ///
    /// # Errors
    /// What `write` said.
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

    /// The places in which no output is: where each begins and how long it is.
    pub fn unused(&self) -> [(usize, usize); 2] {
        let (at, to_the_end) = place(&self.memory, self.head);
        let in_one_piece = self.room().min(to_the_end);
        [(at, in_one_piece), (0, self.room() - in_one_piece)]
    }
}

/// An end that reads; any number of them do not disturb each other or the writer.
#[derive(Debug)]
pub struct ReadingEnd<M> {
    memory: M,
}

impl<M: Memory> ReadingEnd<M> {
    /// Reads from memory that somebody else writes.
    pub fn new(memory: M) -> Self {
        Self { memory }
    }

    /// The memory behind it.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Appends the output from `offset` on, at most `most` bytes, and says how many; 0 when there
    /// is no more yet.
    ///
    /// # Errors
    /// When some of it was overwritten, `offset` is beyond all output, or the marks are none that a writer makes; nothing is appended
    /// then.
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

    /// Why the output at `offset` is not there: a writer lets go what it overwrites, and no more than
    /// it wrote.
    fn gone(&self, offset: u64) -> Unread {
        let marks = self.memory.marks();
        let tail = marks.tail();
        if tail > offset && tail <= marks.head() { Unread::NotThere } else { Unread::Damaged }
    }
}

#[cfg(test)]
mod tests;
