//! The output that a program wrote and that no snapshot covers yet, in memory that a daemon sees.
//!
//! It knows no socket. One process writes, others read without asking: the two marks in the first
//! page say what is there. Offsets count the bytes since the program's start.

pub mod marks;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use crate::holder::memory::{self, Access, View};
use crate::holder::ring::marks::Marks;

/// What comes before the data: a page, of which only the marks are used.
pub const HEADER_BYTES: usize = 4096;
/// Where the marks are.
const MARKS_AT: usize = 64;

/// The shape of a ring that was mapped.
#[derive(Debug)]
struct Shape {
    view: View,
    /// How much data it holds.
    bytes: usize,
}

#[allow(unsafe_code)]
impl Shape {
    fn new(file: impl AsFd, bytes: usize, access: Access) -> io::Result<Self> {
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { view: View::new(file, HEADER_BYTES + bytes, access)?, bytes })
    }

    fn marks(&self) -> &Marks<AtomicU64> {
        // SAFETY: the marks are two atomic numbers, for which any bytes are valid; they lie aligned
        // within the first page of a view that `self` keeps, and nobody touches them otherwise.
        unsafe { self.view.start().add(MARKS_AT).cast::<Marks<AtomicU64>>().as_ref() }
    }

    /// Where the byte of this offset is, and how many follow it before the data begins anew.
    fn place(&self, offset: u64) -> (*mut u8, usize) {
        let at = (offset % self.bytes as u64) as usize;
        // SAFETY: `at` is below `bytes`, and the view is that much longer than its header.
        (unsafe { self.view.start().add(HEADER_BYTES + at).as_ptr() }, self.bytes - at)
    }
}

/// The writing end.
#[derive(Debug)]
pub struct Ring {
    file: File,
    shape: Shape,
    head: u64,
    tail: u64,
}

impl Ring {
    /// Makes an empty ring for this much data.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn create(bytes: usize) -> io::Result<Self> {
        let file = memory::create(c"termgate-output", (HEADER_BYTES + bytes) as u64)?;
        memory::seal_size(&file)?;
        let shape = Shape::new(&file, bytes, Access::Write)?;
        Ok(Self { file, shape, head: 0, tail: 0 })
    }

    /// The memory behind it.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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
        self.shape.bytes - (self.head - self.tail) as usize
    }

    /// Lets the output before `offset` go.
    pub fn release(&mut self, offset: u64) {
        self.tail = self.tail.max(offset.min(self.head));
        self.shape.marks().release(self.tail);
    }

    /// Loses the oldest output, so that this much more fits.
    pub fn make_room(&mut self, bytes: usize) {
        let bytes = bytes.min(self.shape.bytes);
        self.release((self.head + bytes as u64).saturating_sub(self.shape.bytes as u64));
    }

    /// Reads once from a descriptor, at most `most` bytes and what fits in one piece, and says how
    /// many it were.
    ///
    /// # Errors
    /// What the kernel said.
    #[allow(unsafe_code)]
    pub fn fill(&mut self, from: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
        let (start, in_one_piece) = self.shape.place(self.head);
        let most = most.min(in_one_piece).min(self.room());
        // SAFETY: the kernel writes at most `most` bytes into memory of the view, at a place that
        // no reader takes for output: before `tail`, or after `head`.
        let count = unsafe { libc::read(from.as_raw_fd(), start.cast(), most) };
        let count = Errno::result(count)?.cast_unsigned();
        self.head += count as u64;
        self.shape.marks().publish(self.head);
        Ok(count)
    }

    /// Gives the memory back in which no output is.
    pub fn give_back(&self) {
        let punch = |at: usize, bytes: usize| {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let (at, bytes) = ((HEADER_BYTES + at) as i64, bytes as i64);
            if bytes > 0 {
                // A kernel that cannot do it keeps the memory, and nothing is wrong.
                let _ = fallocate(&self.file, flags, at, bytes);
            }
        };
        let at = (self.head % self.shape.bytes as u64) as usize;
        let in_one_piece = self.room().min(self.shape.bytes - at);
        punch(at, in_one_piece);
        punch(0, self.room() - in_one_piece);
    }
}

/// Says that output is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output is not there, or not any more")]
pub struct NotThere;

/// A reading end; any number of them do not disturb each other or the writer.
#[derive(Debug)]
pub struct Reader {
    shape: Shape,
}

impl Reader {
    /// Looks at a ring for this much data.
    ///
    /// # Errors
    /// `InvalidData` when the memory is no such ring; otherwise what the kernel said.
    pub fn open(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        Ok(Self { shape: Shape::new(file, bytes, Access::Read)? })
    }

    /// How much data it holds.
    pub fn bytes(&self) -> usize {
        self.shape.bytes
    }

    /// How much was written since the start.
    pub fn head(&self) -> u64 {
        self.shape.marks().head()
    }

    /// From where on the output is still there.
    pub fn tail(&self) -> u64 {
        self.shape.marks().tail()
    }

    /// Appends the output from `offset` on, at most `most` bytes, and says how many; 0 when there
    /// is no more yet.
    ///
    /// # Errors
    /// When some of it was overwritten, or `offset` is beyond all output; nothing is appended then.
    pub fn copy(&self, offset: u64, most: usize, into: &mut Vec<u8>) -> Result<usize, NotThere> {
        let marks = self.shape.marks();
        let there = marks.head().checked_sub(offset).ok_or(NotThere)?;
        let count = usize::try_from(there).unwrap_or(usize::MAX).min(most);
        if count > self.shape.bytes {
            return Err(NotThere);
        }
        let length = into.len();
        into.reserve(count);
        let (start, in_one_piece) = self.shape.place(offset);
        append(into, start, count.min(in_one_piece));
        if count > in_one_piece {
            append(into, self.shape.place(0).0, count - in_one_piece);
        }
        if marks.has_released(offset) {
            into.truncate(length);
            return Err(NotThere);
        }
        Ok(count)
    }
}

/// Appends bytes that another process may change meanwhile, into room that was reserved.
#[allow(unsafe_code)]
fn append(into: &mut Vec<u8>, start: *const u8, count: usize) {
    debug_assert!(into.capacity() - into.len() >= count, "the caller reserved the room");
    // SAFETY: the source lies in a view that the caller keeps, the room was reserved, and the two
    // do not overlap. Bytes that change while they are copied are thrown away by the caller.
    unsafe {
        start.copy_to_nonoverlapping(into.as_mut_ptr().add(into.len()), count);
        into.set_len(into.len() + count);
    }
}

#[cfg(test)]
mod tests;
