//! Takes over a person's terminal and always restores it.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, raise};
use nix::unistd::write;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::cli::attach::renderer::{Canvas, ENTER, Picture, TerminalSize};
use crate::cli::raw_terminal::RawTerminal;
use crate::core::frame::line::Line;

/// How long to wait for a blocked terminal when restoring it, in milliseconds.
const LEAVING_MS: u16 = 500;

/// Why a terminal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("standard input is not a terminal")]
    NoTerminal,
    #[error("this terminal cannot show a session (TERM=dumb)")]
    Dumb,
    #[error("the terminal failed: {0}")]
    Failed(#[from] io::Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// The person typed this many bytes.
    Typed(usize),
    /// The terminal took some of the pending output.
    Flushed,
    /// The terminal was closed.
    Gone,
}

/// A terminal in raw mode with the renderer's state. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Terminal {
    raw: RawTerminal,
    canvas: Canvas,
    /// Output that the terminal has not taken yet.
    unsent: Vec<u8>,
    /// Whether the terminal is taken over now.
    taken: bool,
}

impl Terminal {
    /// Takes over the terminal at standard input.
    ///
    /// # Errors
    /// The terminal cannot be used; it is unchanged then.
    pub fn take() -> Result<Self, TerminalError> {
        Self::check()?;
        Ok(Self::on(RawTerminal::open().map_err(|_| TerminalError::NoTerminal)?)?)
    }

    /// Says whether there is a terminal that can be taken over.
    pub fn check() -> Result<(), TerminalError> {
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return Err(TerminalError::Dumb);
        }
        match io::stdin().is_terminal() {
            true => Ok(()),
            false => Err(TerminalError::NoTerminal),
        }
    }

    fn on(raw: RawTerminal) -> io::Result<Self> {
        let canvas = Canvas::default();
        let mut terminal = Self { raw, canvas, unsent: Vec::new(), taken: false };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Switches to raw mode and repaints everything: at first, after the terminal was restored for a
    /// while, and when other programs may have used it.
    pub fn enter(&mut self) -> io::Result<()> {
        self.raw.enter()?;
        if std::mem::replace(&mut self.taken, true) {
            // `ENTER` pushes state on the terminal's stacks, so each one needs a `leave`.
            self.unsent.extend_from_slice(self.canvas.leave().as_bytes());
        }
        self.unsent.extend_from_slice(ENTER.as_bytes());
        self.resize();
        Ok(())
    }

    /// Reads the terminal's size and marks everything for repainting.
    pub fn resize(&mut self) {
        let (rows, cols) = self.raw.size();
        self.canvas.resize(TerminalSize { rows, cols });
    }

    pub fn room(&self) -> TerminalSize {
        self.canvas.room()
    }

    /// Whether the last picture is still pending, so that a new one would have to wait.
    pub fn is_behind(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Paints a picture, and keeps what the terminal does not take at once.
    pub fn paint(&mut self, picture: &Picture) {
        self.unsent.extend_from_slice(self.canvas.paint(picture).as_bytes());
    }

    /// Paints the bottom row over the current contents and resets keyboard and mouse modes.
    pub fn paint_last_row(&mut self, line: &Line) {
        self.unsent.extend_from_slice(self.canvas.paint_last_row(line).as_bytes());
    }

    /// Has the terminal notify its person. `text` is on one line, without control characters.
    pub fn notify(&mut self, text: &str) {
        // OSC 9, as iTerm2 defined it.
        self.unsent.extend_from_slice(format!("\x1b]9;termgate {text}\x1b\\").as_bytes());
    }

    /// Waits until the person types or the terminal takes pending output.
    ///
    /// Without `reading`, input stays in the terminal.
    pub async fn turn(&mut self, into: &mut [u8], reading: bool) -> io::Result<TerminalEvent> {
        let behind = self.is_behind();
        loop {
            // Separate readiness for both: finding no input must not mark the terminal as not writable.
            tokio::select! {
                count = self.raw.read(into), if reading => {
                    return count.map(|count| if count == 0 { TerminalEvent::Gone } else { TerminalEvent::Typed(count) });
                }
                guard = self.raw.tty().writable(), if behind => {
                    if let Ok(written) = guard?.try_io(|tty| Ok(write(tty, &self.unsent)?)) {
                        self.unsent.drain(..written?);
                        return Ok(TerminalEvent::Flushed);
                    }
                }
                () = std::future::pending() => {}
            }
        }
    }

    /// Drops unread input.
    pub fn discard_typed(&self) {
        self.raw.discard_typed();
    }

    /// Restores the terminal.
    pub fn leave(&mut self) {
        if !std::mem::replace(&mut self.taken, false) {
            return;
        }
        let leaving = self.canvas.leave();
        self.unsent.extend_from_slice(leaving.as_bytes());
        self.send_rest();
        // The shell would read the last pointer reports as input.
        self.raw.discard_typed();
        self.raw.leave();
    }

    /// Restores the terminal, stops this process, and takes the terminal over again on SIGCONT.
    pub fn stop_for_a_while(&mut self) -> io::Result<()> {
        self.leave();
        raise(Signal::SIGSTOP)?;
        self.enter()
    }

    /// Sends the pending output, and drops what the terminal does not take in time.
    fn send_rest(&mut self) {
        let tty = self.raw.tty().get_ref();
        let mut poll = [PollFd::new(tty.as_fd(), PollFlags::POLLOUT)];
        while !self.unsent.is_empty() {
            match nix::poll::poll(&mut poll, LEAVING_MS) {
                Ok(1..) => {}
                Err(Errno::EINTR) => continue,
                Ok(_) | Err(_) => break,
            }
            match write(tty, &self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(_) => break,
            }
        }
        self.unsent.clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

#[derive(Debug)]
pub struct TerminalSignals {
    resized: unix::Signal,
    stop: unix::Signal,
    goes_on: unix::Signal,
    terminate: unix::Signal,
    hang_up: unix::Signal,
    interrupt: unix::Signal,
}

#[derive(Debug)]
pub enum Hint {
    Resized,
    Stop,
    GoesOn,
    Leave,
}

impl TerminalSignals {
    /// Starts to receive the signals.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(nix::libc::SIGTSTP))?,
            goes_on: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub async fn next(&mut self) -> Hint {
        tokio::select! {
            _ = self.terminate.recv() => Hint::Leave,
            _ = self.hang_up.recv() => Hint::Leave,
            _ = self.interrupt.recv() => Hint::Leave,
            _ = self.resized.recv() => Hint::Resized,
            _ = self.stop.recv() => Hint::Stop,
            _ = self.goes_on.recv() => Hint::GoesOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use nix::fcntl::OFlag;
    use nix::pty::openpty;
    use nix::sys::termios::{LocalFlags, tcgetattr};
    use nix::unistd::{read, ttyname};

    use super::*;
    use crate::core::keys::modes::{InputModes, MouseReporting};

    /// A window, and the terminal in it taken.
    fn taken() -> (OwnedFd, OwnedFd, Terminal) {
        let pair = openpty(None, None).unwrap();
        let terminal = RawTerminal::at(&ttyname(&pair.slave).unwrap()).unwrap();
        let terminal = Terminal::on(terminal).unwrap();
        assert!(!is_cooked(&pair.slave));
        (pair.master, pair.slave, terminal)
    }

    fn is_cooked(tty: &OwnedFd) -> bool {
        let flags = tcgetattr(tty).unwrap().local_flags;
        flags.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    /// What the window was shown up to when the terminal was given back so many times.
    fn shown(master: &OwnedFd, times: usize) -> String {
        const SAFETY_MS: u16 = 30_000;
        let mut shown = String::new();
        while shown.matches("\x1b[23;0t").count() < times {
            // The kernel may hand over what was written in several parts.
            let mut ready = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
            assert_eq!(nix::poll::poll(&mut ready, SAFETY_MS), Ok(1), "{shown:?}");
            let mut bytes = [0; 4096];
            let count = read(master, &mut bytes).unwrap();
            shown.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        shown
    }

    fn with_mouse() -> Picture {
        let modes = InputModes { mouse: MouseReporting::Motion, ..InputModes::default() };
        Picture { modes, ..Picture::default() }
    }

    #[tokio::test]
    async fn a_panic_gives_the_terminal_back() {
        let (master, slave, mut terminal) = taken();
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            terminal.paint(&with_mouse());
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert!(is_cooked(&slave));
        let shown = shown(&master, 1);
        let (_, left) = shown.split_once("\x1b[?1003h").expect("the mouse was on");
        assert!(left.contains("\x1b[?1003l") && left.contains("\x1b[?1049l"), "{shown:?}");
    }

    #[tokio::test]
    async fn a_title_is_put_aside_as_often_as_it_is_taken_back() {
        let (master, _slave, mut terminal) = taken();
        terminal.enter().unwrap();
        terminal.leave();
        terminal.enter().unwrap();
        drop(terminal);
        let shown = shown(&master, 3);
        let count = |sequence: &str| shown.matches(sequence).count();
        assert_eq!((count("\x1b[22;0t"), count("\x1b[23;0t")), (3, 3), "{shown:?}");
        assert_eq!((count("\x1b[?1049h"), count("\x1b[?1049l")), (3, 3), "{shown:?}");
    }

    #[tokio::test]
    async fn the_last_reports_of_the_pointer_are_not_left_to_the_shell() {
        for picture in [with_mouse(), Picture::default()] {
            let (master, slave, mut terminal) = taken();
            terminal.paint(&picture);
            write(&master, b"\x1b[<35;1;1M\r").unwrap();
            drop(terminal);
            nix::fcntl::fcntl(&slave, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
            let mut bytes = [0; 64];
            assert_eq!(read(&slave, &mut bytes), Err(Errno::EAGAIN));
        }
    }

    #[tokio::test]
    async fn a_terminal_that_takes_nothing_is_left_all_the_same() {
        let (_master, slave, mut terminal) = taken();
        // More than the kernel holds for a window that nobody reads.
        let line = "x".repeat(60).into();
        let line = crate::core::frame::line::Line { text: line, ..Default::default() };
        for _ in 0..2000 {
            terminal.paint(&Picture { lines: vec![line.clone(); 20], ..Picture::default() });
            terminal.resize();
        }
        drop(terminal);
        assert!(is_cooked(&slave));
    }
}
