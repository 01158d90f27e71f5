//! The output that a program wrote and that no snapshot covers yet, in memory that a daemon sees.
//!
//! It knows no socket. One process writes, others read without asking: the two marks in the first
//! page say what is there. Offsets count the bytes since the program's start.

pub mod ends;
pub mod marks;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use crate::shim::memory::{self, Access, View};
use crate::shim::ring::ends::{Memory, ReadingEnd, WritingEnd};
use crate::shim::ring::marks::Marks;

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

    /// Where this many bytes of data are, from a place on.
    fn data(&self, at: usize, count: usize) -> *mut u8 {
        assert!(at <= self.bytes && count <= self.bytes - at, "the ends know how much there is");
        // SAFETY: `at` is not above `bytes`, and the view is that much longer than its header.
        unsafe { self.view.start().add(HEADER_BYTES + at).as_ptr() }
    }
}

#[allow(unsafe_code)]
impl Memory for Shape {
    type Word = AtomicU64;

    fn marks(&self) -> &Marks<AtomicU64> {
        // SAFETY: the marks are two atomic numbers, for which any bytes are valid; they lie aligned
        // within the first page of a view that `self` keeps, and nobody touches them otherwise.
        unsafe { self.view.start().add(MARKS_AT).cast::<Marks<AtomicU64>>().as_ref() }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        let start = self.data(at, count);
        into.reserve(count);
        // SAFETY: the source lies in a view that `self` keeps, the room was reserved, and the two do
        // not overlap. Bytes that change while they are copied are thrown away by the caller.
        unsafe {
            start.copy_to_nonoverlapping(into.as_mut_ptr().add(into.len()), count);
            into.set_len(into.len() + count);
        }
    }
}

/// The writing end.
#[derive(Debug)]
pub struct Ring {
    file: File,
    end: WritingEnd<Shape>,
}

impl Ring {
    /// Makes an empty ring for this much data.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn create(bytes: usize) -> io::Result<Self> {
        let file = memory::create(c"termgate-output", (HEADER_BYTES + bytes) as u64)?;
        memory::seal_size(&file)?;
        let end = WritingEnd::new(Shape::new(&file, bytes, Access::Write)?);
        Ok(Self { file, end })
    }

    /// The memory behind it.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// How much was written since the start.
    pub fn head(&self) -> u64 {
        self.end.head()
    }

    /// From where on the output is still there.
    pub fn tail(&self) -> u64 {
        self.end.tail()
    }

    /// How much more fits.
    pub fn room(&self) -> usize {
        self.end.room()
    }

    /// Lets the output before `offset` go.
    pub fn release(&mut self, offset: u64) {
        self.end.release(offset);
    }

    /// Loses the oldest output, so that this much more fits.
    pub fn make_room(&mut self, bytes: usize) {
        self.end.make_room(bytes);
    }

    /// Reads once from a descriptor, at most `most` bytes and what fits in one piece, and says how
    /// many it were.
    ///
    /// # Errors
    /// What the kernel said.
    #[allow(unsafe_code)]
    pub fn fill(&mut self, from: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
        self.end.fill(most, |shape, at, most| {
            let start = shape.data(at, most);
            // SAFETY: the kernel writes at most `most` bytes into memory of the view, at a place that
            // no reader takes for output: before `tail`, or after `head`.
            let count = unsafe { libc::read(from.as_raw_fd(), start.cast(), most) };
            Ok(Errno::result(count)?.cast_unsigned())
        })
    }

    /// Gives the memory back in which no output is.
    pub fn give_back(&self) {
        for (at, bytes) in self.end.unused().into_iter().filter(|(_, bytes)| *bytes > 0) {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let (at, bytes) = ((HEADER_BYTES + at) as i64, bytes as i64);
            // A kernel that cannot do it keeps the memory, and nothing is wrong.
            let _ = fallocate(&self.file, flags, at, bytes);
        }
    }
}

/// Says why output cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It was overwritten, or is not written yet.
    #[error("the output is not there, or not any more")]
    NotThere,
    /// Somebody else than the writer wrote the marks. They are never trusted.
    #[error("the marks of the ring are damaged")]
    Damaged,
}

/// A reading end; any number of them do not disturb each other or the writer.
#[derive(Debug)]
pub struct Reader {
    end: ReadingEnd<Shape>,
}

impl Reader {
    /// Looks at a ring for this much data.
    ///
    /// # Errors
    /// `InvalidData` when the memory is no such ring; otherwise what the kernel said.
    pub fn open(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        Ok(Self { end: ReadingEnd::new(Shape::new(file, bytes, Access::Read)?) })
    }

    /// How much data it holds.
    pub fn bytes(&self) -> usize {
        self.end.memory().bytes()
    }

    /// How much was written since the start.
    pub fn head(&self) -> u64 {
        self.end.memory().marks().head()
    }

    /// From where on the output is still there; never beyond the head.
    pub fn tail(&self) -> u64 {
        self.end.memory().marks().tail().min(self.head())
    }

    /// Appends the output from `offset` on, at most `most` bytes, and says how many; 0 when there
    /// is no more yet.
    ///
    /// # Errors
    /// When some of it was overwritten, `offset` is beyond all output, or the marks are none that a writer makes; nothing is appended
    /// then.
    pub fn copy(&self, offset: u64, most: usize, into: &mut Vec<u8>) -> Result<usize, Unread> {
        self.end.copy(offset, most, into)
    }
}

#[cfg(test)]
mod tests;
