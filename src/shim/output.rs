//! Moves the terminal's output into the ring, and decides when the output is complete.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::shim::memory;
use crate::shim::ring::Ring;
use crate::shim::terminal::{DRAIN_MAX, DRAIN_QUIET};
use crate::shim::wire::to_shim::Unread;

/// The most bytes to read in a row before the loop serves other descriptors.
const BATCH: usize = 64 * 1024;
/// How many of the oldest bytes to drop at once to make room. One read from the kernel returns fewer.
const LOST_AT_ONCE: usize = 8 * 1024;

#[derive(Debug)]
pub struct OutputRelay {
    ring: Ring,
    /// A read-only descriptor of the ring, for daemons.
    reading: OwnedFd,
    bell: EventFd,
    committed: u64,
    /// Set once the leader has ended.
    since_exit: Option<SinceExit>,
    over: bool,
}

#[derive(Clone, Copy, Debug)]
struct SinceExit {
    /// When the last output arrived, or when room became free again.
    active_at: Duration,
    bytes: usize,
}

impl OutputRelay {
    /// An empty output with a ring of this many bytes.
    pub fn new(ring_bytes: usize) -> io::Result<Self> {
        let ring = Ring::create(ring_bytes)?;
        let reading = memory::read_only(ring.file())?;
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { ring, reading, bell, committed: 0, since_exit: None, over: false })
    }

    /// The read-only ring, and the eventfd that wakes the daemon.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.reading.as_fd(), self.bell.as_fd()]
    }

    pub fn head(&self) -> u64 {
        self.ring.head()
    }

    pub fn tail(&self) -> u64 {
        self.ring.tail()
    }

    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Whether the leader has ended and all output is in the ring.
    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn has_room(&self, when_full: Unread) -> bool {
        !self.over && (self.ring.room() > 0 || when_full == Unread::Overwrite)
    }

    /// Reads from the terminal into the ring, up to one batch.
    pub fn take(&mut self, now: Duration, master: BorrowedFd<'_>, when_full: Unread) {
        let before = self.ring.head();
        while self.has_room(when_full) && self.ring.head() - before < BATCH as u64 {
            if self.ring.room() < LOST_AT_ONCE && when_full == Unread::Overwrite {
                self.ring.make_room(LOST_AT_ONCE);
            }
            match self.ring.fill(master, BATCH) {
                Ok(count) if count > 0 => {}
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                // EIO means that no process has the terminal open.
                Ok(_) | Err(_) => {
                    self.over = self.since_exit.is_some();
                    break;
                }
            }
        }
        let taken = (self.ring.head() - before) as usize;
        if let Some(since) = self.since_exit.as_mut().filter(|_| taken > 0) {
            since.active_at = now;
            since.bytes += taken;
            self.over |= since.bytes > DRAIN_MAX;
        }
        if taken > 0 || self.over {
            self.ring_bell();
        }
    }

    /// Records that the leader has ended.
    pub fn on_exit(&mut self, now: Duration) {
        self.since_exit.get_or_insert(SinceExit { active_at: now, bytes: 0 });
    }

    /// When the output counts as complete, unless more arrives.
    pub fn deadline(&self, when_full: Unread) -> Option<Duration> {
        let since = self.since_exit.filter(|_| self.has_room(when_full))?;
        Some(since.active_at + DRAIN_QUIET)
    }

    /// Reads what is left. If nothing arrived during the quiet time, the output is complete.
    pub fn on_time(&mut self, now: Duration, master: BorrowedFd<'_>, when_full: Unread) {
        if self.deadline(when_full).is_some_and(|deadline| deadline <= now) {
            let before = self.ring.head();
            self.take(now, master, when_full);
            if self.ring.head() == before && !self.over {
                self.over = true;
                self.ring_bell();
            }
        }
    }

    /// Records that a checkpoint covers the output before `offset`. `quiet` also returns free memory to the
    /// kernel.
    pub fn commit(&mut self, now: Duration, offset: u64, quiet: bool) {
        if self.ring.room() == 0
            && let Some(since) = &mut self.since_exit
        {
            since.active_at = now;
        }
        self.committed = self.committed.max(offset.min(self.ring.head()));
        self.ring.release(self.committed);
        if quiet {
            self.ring.give_back();
        }
    }

    /// Wakes the daemon.
    pub fn ring_bell(&self) {
        // The write fails only at 2^64 unread signals, and then the eventfd is readable anyway.
        let _ = self.bell.write(1);
    }
}
