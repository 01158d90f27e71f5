//! A person's terminal, taken for a while and given back as it was, whatever happens.
//!
//! It knows bytes, sizes and modes of the line discipline, and nothing of what they are for.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::{read, ttyname, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::cli::attach::canvas::{Canvas, ENTER, Picture, Room};
use crate::session::pty::watch::watch;

/// How long a terminal that takes nothing is waited for when it is given back, in milliseconds.
const LEAVING_MS: u16 = 500;

/// Why a terminal cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("standard input is no terminal")]
    NoTerminal,
    #[error("this terminal cannot be painted on (TERM=dumb)")]
    Dumb,
    #[error("the terminal failed: {0}")]
    Failed(#[from] io::Error),
}

/// What happened at a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The person typed so many bytes.
    Typed(usize),
    /// It took some of what it has to take.
    Flushed,
    /// There is nobody any more.
    Gone,
}

/// A terminal in raw mode, with the canvas on it; dropping it gives the terminal back.
#[derive(Debug)]
pub struct Terminal {
    tty: AsyncFd<OwnedFd>,
    before: Termios,
    canvas: Canvas,
    /// What the terminal has not taken yet.
    unsent: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal at standard input.
    ///
    /// # Errors
    /// Why there is none to take; it is as it was then.
    pub fn take() -> Result<Self, TerminalError> {
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return Err(TerminalError::Dumb);
        }
        let path = ttyname(io::stdin()).map_err(|_| TerminalError::NoTerminal)?;
        // Opened anew, so that not blocking is a matter of ours alone: whoever shares standard input
        // with us would not expect it.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let tty =
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path)?;
        let before = tcgetattr(&tty).map_err(io::Error::from)?;
        let mut terminal = Self {
            tty: watch(tty, Interest::READABLE | Interest::WRITABLE)?,
            before,
            canvas: Canvas::default(),
            unsent: Vec::new(),
        };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Makes it raw and starts painting anew, at first and after it was given back for a while.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(self.tty.get_ref(), SetArg::TCSADRAIN, &raw)?;
        self.unsent.extend_from_slice(ENTER.as_bytes());
        self.resize();
        Ok(())
    }

    /// Looks how large it is now; everything is painted again.
    pub fn resize(&mut self) {
        let size = terminal_size::terminal_size_of(self.tty.get_ref());
        let (cols, rows) = size.map_or((80, 24), |(cols, rows)| (cols.0, rows.0));
        self.canvas.resize(Room { rows: rows.max(1), cols: cols.max(1) });
    }

    /// The room on it.
    pub fn room(&self) -> Room {
        self.canvas.room()
    }

    /// Whether it still has to take what was painted last: a new picture would have to wait.
    pub fn is_behind(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Paints a picture; what the terminal does not take at once is kept.
    pub fn paint(&mut self, picture: &Picture) {
        self.unsent.extend_from_slice(self.canvas.paint(picture).as_bytes());
    }

    /// Waits until the person has typed, or the terminal takes more of what it has to.
    ///
    /// Without `reading` what is typed is left for later.
    ///
    /// # Errors
    /// That the terminal is gone.
    pub async fn turn(&mut self, into: &mut [u8], reading: bool) -> io::Result<Turn> {
        let behind = self.is_behind();
        loop {
            // Each waits for its own readiness: finding out that there is nothing to read must not
            // make the terminal look as if it took nothing either.
            tokio::select! {
                guard = self.tty.readable(), if reading => {
                    match guard?.try_io(|tty| Ok(read(tty, into)?)) {
                        Ok(Ok(0)) => return Ok(Turn::Gone),
                        Ok(Ok(count)) => return Ok(Turn::Typed(count)),
                        Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok(Err(error)) => return Err(error),
                        Err(_would_block) => {}
                    }
                }
                guard = self.tty.writable(), if behind => {
                    if let Ok(written) = guard?.try_io(|tty| Ok(write(tty, &self.unsent)?)) {
                        self.unsent.drain(..written?);
                        return Ok(Turn::Flushed);
                    }
                }
                () = std::future::pending() => {}
            }
        }
    }

    /// Gives the terminal back as it was found.
    pub fn leave(&mut self) {
        let leaving = self.canvas.leave();
        self.unsent.extend_from_slice(leaving.as_bytes());
        // What the terminal does not take now, after what it had to take before, is lost with it.
        let tty = self.tty.get_ref();
        let mut poll = [PollFd::new(tty.as_fd(), PollFlags::POLLOUT)];
        while !self.unsent.is_empty() && nix::poll::poll(&mut poll, LEAVING_MS) == Ok(1) {
            let Ok(written) = write(tty, &self.unsent) else { break };
            self.unsent.drain(..written);
        }
        self.unsent.clear();
        let _ = tcsetattr(tty, SetArg::TCSANOW, &self.before);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}
