//! Opening a pseudo-terminal, its size, and when its output is over.
//!
//! It knows no program and no screen.

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

/// How long nothing must come after the exit before the output is over, when a process in the
/// background keeps the terminal open.
pub const DRAIN_QUIET: Duration = Duration::from_millis(50);

/// How much is read after the exit at most, in bytes, should such a process write without a pause;
/// more than the kernel can have held at the exit.
pub const DRAIN_MAX: usize = 1024 * 1024;

/// The two ends of a pseudo-terminal, both close-on-exec.
#[derive(Debug)]
pub struct Ends {
    /// Never blocks.
    pub master: OwnedFd,
    pub slave: OwnedFd,
}

/// Opens a terminal of this size.
///
/// # Errors
/// What the kernel said.
pub fn open_terminal(window: Window) -> io::Result<Ends> {
    // Both are opened close-on-exec, which openpty(3) does not do: a child that another thread
    // starts at the same time must inherit neither.
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
    Ok(Ends { master, slave })
}

/// Sets the size of a terminal by either of its ends.
///
/// # Errors
/// What the kernel said.
pub fn set_size(terminal: BorrowedFd<'_>, window: Window) -> io::Result<()> {
    let size = Winsize { ws_row: window.rows, ws_col: window.cols, ws_xpixel: 0, ws_ypixel: 0 };
    set_window_size(terminal, &size)?;
    Ok(())
}

/// The size of a terminal, asked at either of its ends.
///
/// # Errors
/// What the kernel said.
#[allow(unsafe_code)]
pub fn size(terminal: BorrowedFd<'_>) -> io::Result<Window> {
    let mut size = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the size outlives the call that fills it.
    let asked = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    Errno::result(asked)?;
    Ok(Window { rows: size.ws_row, cols: size.ws_col })
}

/// The number of a terminal below `/dev/pts`, by its master.
///
/// # Errors
/// What the kernel said.
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
    // SAFETY: the only caller has just taken the descriptor out of its owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[allow(unsafe_code)]
fn set_window_size(terminal: BorrowedFd<'_>, size: &Winsize) -> Result<(), Errno> {
    // SAFETY: the descriptor and the size outlive the call, and the size is what it reads.
    let set = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const *size) };
    Errno::result(set).map(drop)
}
