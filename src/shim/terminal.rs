//! Opens a pseudo-terminal, sets its size, and defines when its output is complete.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::stat::Mode;
use nix::sys::termios::{InputFlags, SetArg, tcgetattr, tcsetattr};

use crate::shim::wire::Window;

/// How long the terminal must be silent after the exit, if a background process keeps it open.
pub const DRAIN_QUIET: Duration = Duration::from_millis(50);

/// The most bytes to read after the exit, if such a process writes without a pause. The kernel buffers fewer at
/// the exit.
pub const DRAIN_MAX: usize = 1024 * 1024;

/// Both are close-on-exec.
#[derive(Debug)]
pub struct TerminalEnds {
    /// Non-blocking.
    pub master: OwnedFd,
    pub slave: OwnedFd,
}

/// Opens a pseudo-terminal of this size.
pub fn open_terminal(window: Window) -> io::Result<TerminalEnds> {
    // Unlike openpty(3), this opens both ends close-on-exec. A child that another thread starts at the same
    // time must inherit neither.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags | OFlag::O_NONBLOCK)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = open(Path::new(&ptsname_r(&master)?), flags, Mode::empty())?;
    let mut modes = tcgetattr(&slave)?;
    modes.input_flags |= InputFlags::IUTF8;
    tcsetattr(&slave, SetArg::TCSANOW, &modes)?;
    let master = owned(master.into_raw_fd());
    set_size(master.as_fd(), window)?;
    Ok(TerminalEnds { master, slave })
}

/// Sets the size of a terminal. `terminal` is either end.
pub fn set_size(terminal: BorrowedFd<'_>, window: Window) -> io::Result<()> {
    let size = Winsize { ws_row: window.rows, ws_col: window.cols, ws_xpixel: 0, ws_ypixel: 0 };
    set_window_size(terminal, &size)?;
    Ok(())
}

/// The size of a terminal. `terminal` is either end.
#[allow(unsafe_code)]
pub fn size(terminal: BorrowedFd<'_>) -> io::Result<Window> {
    let mut size = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the size outlives the call that fills it.
    let asked = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    Errno::result(asked)?;
    Ok(Window { rows: size.ws_row, cols: size.ws_col })
}

/// The number of a terminal under `/dev/pts`.
#[allow(unsafe_code)]
pub fn number(master: BorrowedFd<'_>) -> io::Result<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the number outlives the call that fills it.
    let asked = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    Errno::result(asked)?;
    Ok(number)
}

#[allow(unsafe_code)]
fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the only caller has just taken the descriptor from its owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[allow(unsafe_code)]
fn set_window_size(terminal: BorrowedFd<'_>, size: &Winsize) -> Result<(), Errno> {
    // SAFETY: the descriptor and the size outlive the call, which only reads the size.
    let set = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const *size) };
    Errno::result(set).map(drop)
}
