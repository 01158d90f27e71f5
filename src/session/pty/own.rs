//! A terminal that the daemon itself keeps: the master end and its child. It does not outlive the daemon.
//! It stores output without a checkpoint, so that the output can be read again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::termios::tcgetattr;
use nix::unistd::tcgetpgrp;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::core::frame::{Exit, Size};
use crate::core::ids::SessionId;
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::kill::{self, KillError, Tree};
use crate::session::pty::reaper::Child;
use crate::session::pty::signal::Signal;
use crate::session::pty::spawn::{self, SpawnError};
use crate::session::pty::watch::watch;
use crate::session::pty::{
    Note, OutputEnd, ProcessId, Pty, READ_MAX, ReadOutput, Stamp, TerminalCheckpoint,
    TerminalEvidence, processes,
};
use crate::shim::readiness::{self, READABLE};
use crate::shim::terminal::{self, DRAIN_MAX, DRAIN_QUIET, TerminalEnds};

const CHUNK: usize = 64 * 1024;

/// How many bytes without a checkpoint make one due, and how many are kept at most.
const OWED: u64 = 256 * 1024;
const KEPT_MAX: usize = 4 * READ_MAX;

/// A terminal whose master this process owns, with the child in it.
#[derive(Debug)]
pub struct OwnPty {
    session: SessionId,
    child: Child,
    master: AsyncFd<OwnedFd>,
    /// The slave end, open until the child has ended. Without it, a program that closes its streams and
    /// reopens the terminal would look as if it had ended.
    slave: Mutex<Option<OwnedFd>>,
    reading: Mutex<ReadState>,
}

/// The read position, and the output that can be read again.
#[derive(Debug, Default)]
struct ReadState {
    offset: u64,
    /// The output right before `offset`.
    kept: Vec<u8>,
    since_exit: usize,
    ended: bool,
}

impl ReadState {
    fn oldest(&self) -> u64 {
        self.offset - self.kept.len() as u64
    }

    /// Earlier output from an offset; `None` if it is no longer kept.
    fn again(&self, offset: u64) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.oldest())?).ok()?;
        let kept = self.kept.get(from..)?;
        Some(&kept[..kept.len().min(READ_MAX)])
    }

    fn on_taken(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        if self.kept.len() + bytes.len() > KEPT_MAX {
            self.kept.clear();
        }
        self.kept.extend_from_slice(bytes);
    }

    fn on_committed(&mut self, checkpoint: &TerminalCheckpoint) {
        let covered = checkpoint.offset.saturating_sub(self.oldest());
        let covered = usize::try_from(covered).unwrap_or(usize::MAX).min(self.kept.len());
        self.kept.drain(..covered);
        if checkpoint.quiet {
            self.kept.shrink_to_fit();
        }
    }
}

impl OwnPty {
    /// Opens a terminal and starts the program in it.
    ///
    /// Must be called inside a runtime. Blocks for a fork and an exec.
    pub fn open(spec: &SpawnSpec) -> Result<Self, SpawnError> {
        let TerminalEnds { master, slave } =
            terminal::open_terminal(spec.size.into()).map_err(SpawnError::Terminal)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let master = watch(master, interest).map_err(SpawnError::Terminal)?;
        let program = spawn::program_of(spec);
        let (descriptors, session) = (spawn::descriptors_of_children(), spec.session.number());
        let child = Child::start(|| program.start(&slave, descriptors, session))
            .map_err(|error| SpawnError::program(spec, error))?;
        Ok(Self {
            session: spec.session,
            child,
            master,
            slave: Mutex::new(Some(slave)),
            reading: Mutex::new(ReadState::default()),
        })
    }

    fn reading(&self) -> MutexGuard<'_, ReadState> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the available output; `None` if there is none yet. With `quiet`, an empty read means that the output
    /// is complete.
    fn look(&self, into: &mut Vec<u8>, quiet: bool) -> io::Result<Option<ReadOutput>> {
        let mut reading = self.reading();
        let exited = self.child.known_exit().is_some();
        let before = into.len();
        let (taken, stopped) = take_all(self.master.as_fd(), into);
        reading.on_taken(&into[before..]);
        if taken > 0 {
            reading.since_exit += if exited { taken } else { 0 };
            reading.ended = reading.since_exit > DRAIN_MAX;
            return Ok(Some(ReadOutput::Bytes(taken)));
        }
        match stopped {
            // EIO means that no process has the terminal open.
            Some(Errno::EIO) | None => reading.ended = true,
            Some(Errno::EAGAIN) => reading.ended = quiet,
            Some(errno) => return Err(errno.into()),
        }
        Ok(reading.ended.then_some(ReadOutput::End))
    }

    /// Waits for the exit, closes the slave end, then waits for the quiet time.
    async fn quiet_after_exit(&self) {
        self.child.exited().await;
        self.slave.lock().unwrap_or_else(PoisonError::into_inner).take();
        tokio::time::sleep(DRAIN_QUIET).await;
    }

    fn foreground(&self) -> Option<ProcessId> {
        let group = tcgetpgrp(&self.master).ok()?;
        Some(ProcessId(group.as_raw())).filter(|group| group.0 > 0)
    }
}

impl Pty for OwnPty {
    async fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<ReadOutput> {
        {
            let reading = self.reading();
            let again = reading.again(offset).ok_or(io::ErrorKind::InvalidInput)?;
            if !again.is_empty() {
                into.extend_from_slice(again);
                return Ok(ReadOutput::Bytes(again.len()));
            }
            if reading.ended {
                return Ok(ReadOutput::End);
            }
        }
        let quiet = self.quiet_after_exit();
        tokio::pin!(quiet);
        loop {
            let found = tokio::select! {
                ready = self.master.readable() => {
                    let mut ready = ready?;
                    let found = self.look(into, false)?;
                    // One look drains the terminal, unless it reached the limit.
                    if found != Some(ReadOutput::Bytes(READ_MAX)) {
                        ready.clear_ready();
                    }
                    found
                }
                () = &mut quiet => self.look(into, true)?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    fn oldest(&self) -> u64 {
        self.reading().oldest()
    }

    fn owes(&self, offset: u64) -> bool {
        offset.saturating_sub(self.reading().oldest()) > OWED
    }

    fn outlives_daemon(&self) -> bool {
        false
    }

    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        self.reading().on_committed(checkpoint);
        Ok(())
    }

    fn remember(&self, _note: Note, _bytes: &[u8]) {}

    fn try_write(&self, bytes: &[u8], _stamp: Stamp) -> io::Result<usize> {
        let write = |master: &OwnedFd| nix::unistd::write(master, bytes).map_err(io::Error::from);
        // The kernel would accept and keep input for a program that has ended.
        if self.child.known_exit().is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match write(self.master.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        // Repeats the write through the readiness, which only then learns that there is no room.
        match self.master.try_io(Interest::WRITABLE, write) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            done => done,
        }
    }

    async fn writable(&self) -> io::Result<()> {
        self.master.writable().await.map(drop)
    }

    fn resize(&self, size: Size) -> io::Result<()> {
        terminal::set_size(self.master.as_fd(), size.into())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let foreground = self.foreground().ok_or(io::ErrorKind::NotFound)?;
        processes::signal_group(self.child.pid(), foreground, signal.number())
    }

    fn evidence(&self) -> io::Result<TerminalEvidence> {
        let modes = tcgetattr(&self.master)?;
        Ok(TerminalEvidence::of(self.child.pid(), self.foreground(), &modes))
    }

    fn unread(&self) -> io::Result<bool> {
        let slave = self.slave.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slave {
            Some(slave) => Ok(readiness::look(slave.as_fd(), READABLE)? != 0),
            None => Ok(false),
        }
    }

    fn ask_output_end(&self) -> io::Result<OutputEnd> {
        // The kernel passes on pending output before it answers.
        let nothing_left = readiness::look(self.master.as_fd(), READABLE)? == 0;
        Ok(OutputEnd::Known(if nothing_left { self.reading().offset } else { u64::MAX }))
    }

    async fn exited(&self) -> Exit {
        self.child.exited().await
    }

    async fn kill(&self) -> Result<(), KillError> {
        kill::end_tree(Tree {
            session: self.session,
            leader: self.child.pid(),
            started: self.child.started(),
            foreground: self.foreground(),
            shim: None,
        })
        .await
    }

    /// The terminal ends when this value is dropped.
    async fn vanished(&self) {}

    fn forget(&self) {}
}

/// Reads until no output is left or [`READ_MAX`] bytes are taken. Returns the byte count and the error that
/// stopped it. No bytes and no error mean the end of the output.
fn take_all(master: BorrowedFd<'_>, into: &mut Vec<u8>) -> (usize, Option<Errno>) {
    let mut taken = 0;
    while taken < READ_MAX {
        match read_once(master, into, CHUNK.min(READ_MAX - taken)) {
            Ok(0) => return (taken, None),
            Ok(count) => taken += count,
            Err(Errno::EINTR) => {}
            Err(errno) => return (taken, Some(errno)),
        }
    }
    (taken, None)
}

/// Appends the bytes of one read, without zeroing the buffer first.
#[allow(unsafe_code)]
fn read_once(master: BorrowedFd<'_>, into: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
    into.reserve(most);
    let room = into.spare_capacity_mut();
    // SAFETY: the kernel writes at most `most` bytes into room that was just reserved, and exactly the bytes
    // that it counts become part of the vector.
    unsafe {
        let count = libc::read(master.as_raw_fd(), room.as_mut_ptr().cast(), most);
        let count = Errno::result(count)?.cast_unsigned();
        into.set_len(into.len() + count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
