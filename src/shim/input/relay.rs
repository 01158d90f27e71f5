//! Moves input from the memories of daemons to the terminal. Nothing here allocates once it runs.
//! What a daemon has put into its memory is written even if that daemon is gone, and before all that the next
//! one puts into its own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::write;

use crate::shim::input::ends::{AnsweredQuestion, InputClosed, InputReceiver, Wake};
use crate::shim::input::log::InputLog;
use crate::shim::input::{InputHeader, InputMap, WAITING_MAX};

/// The most bytes that are taken and not written: what the terminal did not take of one memory, and all that is
/// left in it when it is closed.
const OWED_MAX: usize = 2 * WAITING_MAX;

#[derive(Debug)]
pub struct InputRelay {
    /// Wakes the shim.
    bell: EventFd,
    /// The memory of the daemon; `None` without one.
    from: Option<InputReceiver<InputMap>>,
    owed: Owed,
    log: InputLog,
    /// The program has ended, and takes nothing.
    ended: bool,
}

/// Bytes that are taken and not written.
#[derive(Debug)]
struct Owed {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Owed {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Room for so many more bytes behind the others, if there is.
    fn room(&mut self, count: usize) -> Option<&mut [u8]> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.bytes[self.end..].get_mut(..count)
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// What to do after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relayed {
    Nothing,
    /// The daemon waits for its bell.
    Ring,
    /// The daemon has damaged its memory, which is closed now.
    Damaged,
}

impl Relayed {
    fn of(wake: Wake) -> Self {
        match wake {
            Wake::Ring => Self::Ring,
            Wake::Nothing => Self::Nothing,
        }
    }
}

impl InputRelay {
    pub fn new() -> io::Result<Self> {
        let owed = Owed { bytes: vec![0; OWED_MAX].into_boxed_slice(), start: 0, end: 0 };
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { bell, from: None, owed, log: InputLog::default(), ended: false })
    }

    /// Makes the memory of the next daemon and closes the one before. Returns the file of it.
    ///
    /// # Errors
    /// Returns the kernel's error; nothing has changed then.
    pub fn begin(&mut self) -> io::Result<OwnedFd> {
        let (file, memory): (File, _) = InputMap::create()?;
        self.close();
        let from = InputReceiver::new(memory, !self.owed.is_empty());
        if self.ended {
            // Nothing is in it.
            let _ = from.close(true);
        }
        self.from = Some(from);
        Ok(file.into())
    }

    /// Closes the memory of the daemon, and takes what is left in it. It counts as taken from now on.
    pub fn close(&mut self) {
        let Some(mut from) = self.from.take() else { return };
        if !self.ended
            && let Ok(waiting) = from.close(false)
        {
            // A daemon that keeps to the protocol has never put in what does not fit, nor anything that is no
            // record.
            let _ = take(&mut from, waiting, &mut self.owed, &mut self.log);
        }
    }

    /// The eventfd by which daemons wake the shim.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub fn log(&self) -> &InputLog {
        &self.log
    }

    /// Whether to wait until the terminal takes more.
    pub fn is_blocked(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Takes no more input, because the program has ended: the kernel would accept and keep it. What is left is lost
    /// with the program.
    pub fn end(&mut self) -> Relayed {
        self.ended = true;
        self.owed.clear();
        let Some(from) = &mut self.from else { return Relayed::Nothing };
        if let Ok(waiting) = from.close(true) {
            from.skip(waiting);
        }
        Relayed::of(from.publish(false))
    }

    /// Takes what the daemon has put in, once all before is written, and writes it as far as the terminal takes
    /// it.
    pub fn relay(&mut self, master: BorrowedFd<'_>) -> Relayed {
        if self.ended {
            return Relayed::Nothing;
        }
        let mut taken = Ok(());
        let had_owed = !self.owed.is_empty();
        self.write(master);
        let mut news = had_owed;
        if self.owed.is_empty()
            && let Some(from) = &mut self.from
        {
            let waiting = from.waiting();
            news |= waiting != Ok(0);
            taken = waiting.and_then(|waiting| take(from, waiting, &mut self.owed, &mut self.log));
            self.write(master);
        }
        if taken.is_err() {
            if let Some(from) = self.from.take() {
                let _ = from.close(false);
            }
            return Relayed::Damaged;
        }
        match &mut self.from {
            Some(from) if news => Relayed::of(from.publish(!self.owed.is_empty())),
            Some(_) | None => Relayed::Nothing,
        }
    }

    fn write(&mut self, master: BorrowedFd<'_>) {
        while !self.owed.is_empty() {
            match write(master, self.owed.rest()) {
                Ok(count) => self.owed.start += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // The terminal takes nothing any more.
                Err(_) => self.owed.clear(),
            }
        }
    }

    /// A question of the daemon that was not answered.
    pub fn question(&self) -> Option<u64> {
        self.from.as_ref().and_then(InputReceiver::question)
    }

    /// Answers a question. The daemon's bell must be rung then.
    pub fn answer(&mut self, answered: AnsweredQuestion) {
        if let Some(from) = &mut self.from {
            from.answer(answered);
        }
    }

    /// Whether the shim may sleep until its bell rings. Call [`Self::wake`] in any case.
    pub fn may_sleep(&self) -> bool {
        let Some(from) = &self.from else { return true };
        from.sleep();
        let nothing = self.ended || !self.owed.is_empty() || from.waiting() == Ok(0);
        nothing && from.question().is_none()
    }

    /// Ends the sleep. `rang` says whether the bell rang.
    pub fn wake(&self, rang: bool) {
        if let Some(from) = &self.from {
            from.wake();
        }
        if rang {
            // It does not wait, and another reader does not matter.
            let _ = self.bell.read();
        }
    }
}

/// Takes all records of so many bytes.
///
/// # Errors
/// If they are no records; what precedes the damage is taken.
fn take(
    from: &mut InputReceiver<InputMap>,
    mut waiting: usize,
    owed: &mut Owed,
    log: &mut InputLog,
) -> Result<(), InputClosed> {
    while waiting > 0 {
        waiting = waiting.checked_sub(InputHeader::BYTES).ok_or(InputClosed::Closed)?;
        let mut header = [0; InputHeader::BYTES];
        from.read(&mut header);
        let header = InputHeader::decode(&header);
        let length = header.length as usize;
        waiting = waiting.checked_sub(length).ok_or(InputClosed::Closed)?;
        let room = owed.room(length).ok_or(InputClosed::Closed)?;
        from.read(room);
        if log.admits(&header) {
            owed.end += length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
