//! The terminal at standard input in raw mode, and as it was before when this is dropped.

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

/// A terminal that does not block.
#[derive(Debug)]
pub struct RawTerminal {
    tty: AsyncFd<OwnedFd>,
    before: Termios,
}

impl RawTerminal {
    /// Opens the terminal at standard input; it is not raw yet.
    ///
    /// # Errors
    /// What the kernel said: `ENOTTY` where there is none.
    pub fn open() -> io::Result<Self> {
        Self::at(&ttyname(io::stdin())?)
    }

    /// The same for the terminal at a path.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn at(path: &Path) -> io::Result<Self> {
        // Opened again: `O_NONBLOCK` on standard input would affect every process that shares it.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let tty =
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path)?;
        let before = tcgetattr(&tty)?;
        Ok(Self { tty: watch(tty, Interest::READABLE | Interest::WRITABLE)?, before })
    }

    /// Its descriptor.
    pub fn tty(&self) -> &AsyncFd<OwnedFd> {
        &self.tty
    }

    /// Makes it raw.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn enter(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        Ok(tcsetattr(self.tty.get_ref(), SetArg::TCSANOW, &raw)?)
    }

    /// Restores its modes.
    pub fn leave(&self) {
        // A terminal that is gone has no modes.
        let _ = tcsetattr(self.tty.get_ref(), SetArg::TCSANOW, &self.before);
    }

    /// Drops what was typed and not read.
    pub fn discard_typed(&self) {
        let _ = tcflush(self.tty.get_ref(), FlushArg::TCIFLUSH);
    }

    /// Its rows and columns; 24 and 80 where it does not say.
    pub fn size(&self) -> (u16, u16) {
        let size = terminal_size::terminal_size_of(self.tty.get_ref());
        let size = size.filter(|(width, height)| width.0 > 0 && height.0 > 0);
        size.map_or((24, 80), |(Width(cols), Height(rows))| (rows, cols))
    }

    /// Waits for what is typed, and says how many bytes it is; 0 when the terminal is gone.
    ///
    /// # Errors
    /// What the kernel said.
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
