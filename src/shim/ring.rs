//! A ring buffer in shared memory for output that no snapshot covers yet.
//! The shim writes, and daemons read without a request. Two marks in the first page bound the valid data.
//! Offsets count bytes since the program started.

pub mod ends;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use crate::shim::memory::{self, Access, Mapping};
use crate::shim::ring::ends::{ReadingEnd, RingMarks, RingMemory, WritingEnd};

/// One page before the data. Only the marks use it.
pub const HEADER_BYTES: usize = 4096;
/// The offset of the marks in the header.
const MARKS_AT: usize = 64;

#[derive(Debug)]
struct Shape {
    view: Mapping,
    bytes: usize,
}

#[allow(unsafe_code)]
impl Shape {
    fn new(file: impl AsFd, bytes: usize, access: Access) -> io::Result<Self> {
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { view: Mapping::new(file, HEADER_BYTES + bytes, access)?, bytes })
    }

    /// The address of `count` bytes of data at position `at`.
    fn data(&self, at: usize, count: usize) -> *mut u8 {
        assert!(at <= self.bytes && count <= self.bytes - at, "the ends know how much there is");
        // SAFETY: `at` is not above `bytes`, and the view is that much longer than its header.
        unsafe { self.view.start().add(HEADER_BYTES + at).as_ptr() }
    }
}

#[allow(unsafe_code)]
impl RingMemory for Shape {
    type Word = AtomicU64;

    fn marks(&self) -> &RingMarks<AtomicU64> {
        // SAFETY: the marks are two atomic numbers, for which any bytes are valid. They lie aligned in the
        // first page of a view that `self` owns, and no other code accesses them.
        unsafe { self.view.start().add(MARKS_AT).cast::<RingMarks<AtomicU64>>().as_ref() }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        let start = self.data(at, count);
        into.reserve(count);
        // SAFETY: the source lies in a view that `self` owns, the room was reserved, and the two do not
        // overlap. The caller discards bytes that change during the copy.
        unsafe {
            start.copy_to_nonoverlapping(into.as_mut_ptr().add(into.len()), count);
            into.set_len(into.len() + count);
        }
    }
}

#[derive(Debug)]
pub struct Ring {
    file: File,
    end: WritingEnd<Shape>,
}

impl Ring {
    pub fn create(bytes: usize) -> io::Result<Self> {
        let file = memory::create(c"termgate-output", (HEADER_BYTES + bytes) as u64)?;
        memory::seal_size(&file)?;
        let end = WritingEnd::new(Shape::new(&file, bytes, Access::Write)?);
        Ok(Self { file, end })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn head(&self) -> u64 {
        self.end.head()
    }

    pub fn tail(&self) -> u64 {
        self.end.tail()
    }

    pub fn room(&self) -> usize {
        self.end.room()
    }

    /// Releases the output before `offset`.
    pub fn release(&mut self, offset: u64) {
        self.end.release(offset);
    }

    /// Drops the oldest output until this many bytes are free.
    pub fn make_room(&mut self, bytes: usize) {
        self.end.make_room(bytes);
    }

    /// Reads once from a descriptor, at most `most` bytes and not past the end of the buffer. Returns the
    /// byte count.
    #[allow(unsafe_code)]
    pub fn fill(&mut self, from: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
        self.end.fill(most, |shape, at, most| {
            let start = shape.data(at, most);
            // SAFETY: the kernel writes at most `most` bytes into the view, where no reader expects output:
            // before `tail` or after `head`.
            let count = unsafe { libc::read(from.as_raw_fd(), start.cast(), most) };
            Ok(Errno::result(count)?.cast_unsigned())
        })
    }

    /// Returns unused memory to the kernel.
    pub fn give_back(&self) {
        for (at, bytes) in self.end.unused().into_iter().filter(|(_, bytes)| *bytes > 0) {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let (at, bytes) = ((HEADER_BYTES + at) as i64, bytes as i64);
            // A kernel without hole punching just keeps the memory.
            let _ = fallocate(&self.file, flags, at, bytes);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The output was overwritten, or is not written yet.
    #[error("the output is not there, or not any more")]
    NotThere,
    /// A process other than the shim has changed the marks.
    #[error("the marks of the ring are damaged")]
    Damaged,
}

/// Readers disturb neither each other nor the writer.
#[derive(Debug)]
pub struct RingReader {
    end: ReadingEnd<Shape>,
}

impl RingReader {
    /// Opens a ring of this many bytes.
    ///
    /// # Errors
    /// `InvalidData` if the memory is not such a ring; otherwise the kernel's error.
    pub fn open(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        Ok(Self { end: ReadingEnd::new(Shape::new(file, bytes, Access::Read)?) })
    }

    pub fn bytes(&self) -> usize {
        self.end.memory().bytes()
    }

    pub fn head(&self) -> u64 {
        self.end.memory().marks().head()
    }

    /// The offset of the oldest byte in the ring; never beyond the head.
    pub fn tail(&self) -> u64 {
        self.end.memory().marks().tail().min(self.head())
    }

    /// Appends output from `offset`, at most `most` bytes. Returns the byte count; 0 if there is no more yet.
    ///
    /// # Errors
    /// If some of it was overwritten, `offset` is beyond the output, or the marks are damaged. Nothing is
    /// appended then.
    pub fn copy(&self, offset: u64, most: usize, into: &mut Vec<u8>) -> Result<usize, RingError> {
        self.end.copy(offset, most, into)
    }
}

#[cfg(test)]
mod tests;
