//! The terminal at standard input in raw mode. Dropping it restores the modes.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::termios::{FlushArg, SetArg, Termios, cfmakeraw, tcflush, tcgetattr, tcsetattr};
use nix::unistd::{read, ttyname};
use terminal_size::{Height, Width};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::session::pty::watch::watch;

/// A terminal with non-blocking reads.
#[derive(Debug)]
pub struct RawTerminal {
    tty: AsyncFd<OwnedFd>,
    before: Termios,
}

impl RawTerminal {
    /// Opens the terminal at standard input, not yet in raw mode.
    ///
    /// # Errors
    /// The kernel's error: `ENOTTY` when standard input is not a terminal.
    pub fn open() -> io::Result<Self> {
        Self::at(&ttyname(io::stdin())?)
    }

    /// Opens the terminal at a path, not yet in raw mode.
    pub fn at(path: &Path) -> io::Result<Self> {
        // Opens it again, because `O_NONBLOCK` on standard input would affect every process that shares it.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let tty =
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path)?;
        let before = tcgetattr(&tty)?;
        Ok(Self { tty: watch(tty, Interest::READABLE | Interest::WRITABLE)?, before })
    }

    /// The descriptor.
    pub fn tty(&self) -> &AsyncFd<OwnedFd> {
        &self.tty
    }

    /// Switches to raw mode.
    pub fn enter(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        Ok(tcsetattr(self.tty.get_ref(), SetArg::TCSANOW, &raw)?)
    }

    /// Restores the terminal's modes.
    pub fn leave(&self) {
        // A closed terminal has no modes to restore.
        let _ = tcsetattr(self.tty.get_ref(), SetArg::TCSANOW, &self.before);
    }

    /// Drops unread input.
    pub fn discard_typed(&self) {
        let _ = tcflush(self.tty.get_ref(), FlushArg::TCIFLUSH);
    }

    /// The rows and columns; 24 and 80 when the terminal does not report them.
    pub fn size(&self) -> (u16, u16) {
        let size = terminal_size::terminal_size_of(self.tty.get_ref());
        let size = size.filter(|(width, height)| width.0 > 0 && height.0 > 0);
        size.map_or((24, 80), |(Width(cols), Height(rows))| (rows, cols))
    }

    /// Waits for input and returns its length in bytes; 0 when the terminal is closed.
    pub async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tty.readable().await?.try_io(|tty| Ok(read(tty, into)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return read,
                Err(_would_block) => {}
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.leave();
    }
}
