//! From the terminal into the ring, and when that is over.
//!
//! It knows no daemon: whether somebody reads is an argument.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::shim::memory;
use crate::shim::ring::Ring;
use crate::shim::terminal::{DRAIN_MAX, DRAIN_QUIET};

/// How much is read in a row before anybody else has a turn.
const BATCH: usize = 64 * 1024;
/// How much output is lost at once when the oldest makes room for the newest; more than the kernel
/// hands over at once.
const LOST_AT_ONCE: usize = 8 * 1024;

/// What becomes of output for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It stays with the kernel, and the program waits.
    Wait,
    /// The oldest output is lost.
    Overwrite,
}

/// The output of one terminal.
#[derive(Debug)]
pub struct Output {
    ring: Ring,
    /// The ring again, for those who may only read.
    reading: OwnedFd,
    bell: EventFd,
    /// Up to where the output is covered by what was handed over.
    committed: u64,
    /// When the leader was found to have ended.
    since_exit: Option<SinceExit>,
    over: bool,
}

#[derive(Clone, Copy, Debug)]
struct SinceExit {
    /// When something last came, or could come again.
    active_at: Duration,
    bytes: usize,
}

impl Output {
    /// No output yet, and room for this much.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new(ring_bytes: usize) -> io::Result<Self> {
        let ring = Ring::create(ring_bytes)?;
        let reading = memory::read_only(ring.file())?;
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { ring, reading, bell, committed: 0, since_exit: None, over: false })
    }

    /// The ring, for reading only, and what rings when there is more in it.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.reading.as_fd(), self.bell.as_fd()]
    }

    /// How much was written since the start.
    pub fn head(&self) -> u64 {
        self.ring.head()
    }

    /// From where on the output is still there.
    pub fn tail(&self) -> u64 {
        self.ring.tail()
    }

    /// Up to where the output is covered by what was handed over.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Whether the leader has ended and all output is in the ring.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether output could be taken now.
    pub fn has_room(&self, when_full: WhenFull) -> bool {
        !self.over && (self.ring.room() > 0 || when_full == WhenFull::Overwrite)
    }

    /// Takes what the terminal has, up to a batch.
    pub fn take(&mut self, now: Duration, master: BorrowedFd<'_>, when_full: WhenFull) {
        let before = self.ring.head();
        while self.has_room(when_full) && self.ring.head() - before < BATCH as u64 {
            if self.ring.room() < LOST_AT_ONCE && when_full == WhenFull::Overwrite {
                self.ring.make_room(LOST_AT_ONCE);
            }
            match self.ring.fill(master, BATCH) {
                Ok(count) if count > 0 => {}
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                // EIO is the kernel's word for a terminal that nobody has open any more.
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

    /// Notes that the leader has ended.
    pub fn on_exit(&mut self, now: Duration) {
        self.since_exit.get_or_insert(SinceExit { active_at: now, bytes: 0 });
    }

    /// When nothing more is expected, unless something comes.
    pub fn deadline(&self, when_full: WhenFull) -> Option<Duration> {
        let since = self.since_exit.filter(|_| self.has_room(when_full))?;
        Some(since.active_at + DRAIN_QUIET)
    }

    /// Takes what has come until now; when that is nothing after a quiet time, it is over.
    pub fn on_time(&mut self, now: Duration, master: BorrowedFd<'_>, when_full: WhenFull) {
        if self.deadline(when_full).is_some_and(|deadline| deadline <= now) {
            let before = self.ring.head();
            self.take(now, master, when_full);
            if self.ring.head() == before && !self.over {
                self.over = true;
                self.ring_bell();
            }
        }
    }

    /// Notes that the output before `offset` is covered.
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

    fn ring_bell(&self) {
        // It only fails when it has rung 2^64 times unheard, and then it can be heard.
        let _ = self.bell.write(1);
    }
}
