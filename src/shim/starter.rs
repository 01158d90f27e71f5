//! The process that forks shims: one for each daemon, ready to run, so that a session costs no `exec` of this program.
//! What it has in memory all its shims share.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork};

use crate::shim::allocator::take_buffers_fresh;
use crate::shim::memory;
use crate::shim::program::duplicate;
use crate::shim::readiness::{self, READABLE};
use crate::shim::run::RunningShim;
use crate::shim::socket::{self, Descriptors};
use crate::shim::start::{self, failed};
use crate::shim::wire::{Frame, frame};

/// Signals for the daemon's process group or terminal, and signals that a shim never needs.
const IGNORED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGPIPE,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// From this many bytes on buffers are not recycled.
const LARGE_BUFFER: i32 = 32 * 1024;

/// What the daemon sends: where to listen, with a connection to the daemon.
struct Order {
    path: PathBuf,
    daemon: OwnedFd,
}

/// Forks shims as the daemon on standard input asks: `termgate shim ROOM`. Each gets to `hold`, and returns from here
/// as a process of its own. Returns without a shim once the daemon is gone.
///
/// The process is hidden already, so no other process can open the memory of its forked copies.
pub fn serve(words: &[OsString], hold: impl FnOnce(RunningShim, Box<Frame>)) -> ExitCode {
    if words.len() < 3 || !socket::carries_frames(io::stdin().as_fd()) {
        let _ = io::stderr().write_all(b"termgate shim is for termgate itself, which starts it\n");
        return ExitCode::from(2);
    }
    if memory::is_traced() {
        // A forked copy would be traced as well.
        return ExitCode::FAILURE;
    }
    take_buffers_fresh(LARGE_BUFFER);
    let mut room = frame();
    let Ok(orders) = settle() else { return ExitCode::FAILURE };
    let Some(order) = fork_shims(orders, &mut room) else { return ExitCode::SUCCESS };
    match start::start(&order.path, order.daemon, &mut room) {
        Some(shim) => {
            hold(shim, room);
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// Leaves what belongs to the daemon: its descriptors but for the connection, its directory and its signals.
#[allow(unsafe_code)]
fn settle() -> io::Result<OwnedFd> {
    // SAFETY: no value in this process owns these descriptors; the standard streams stay open.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0);
    }
    let orders = duplicate(io::stdin(), 3)?;
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    chdir("/")?;
    for ignored in IGNORED {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(ignored, SigHandler::SigIgn)? };
    }
    Ok(orders)
}

/// Returns in each shim what it was ordered to be, and `None` in the process that forks them once it is over.
fn fork_shims(orders: OwnedFd, room: &mut Frame) -> Option<Order> {
    loop {
        readiness::wait([(Some(orders.as_fd()), READABLE)], None).ok()?;
        let mut descriptors = Descriptors::default();
        let length = match socket::receive(orders.as_fd(), room, &mut descriptors) {
            Ok(length @ 1..) => length,
            // Without a descriptor that is free there is no connection, and the daemon finds that it is closed.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::EMSGSIZE | Errno::EMFILE | Errno::ENFILE) => {
                continue;
            }
            Ok(_) | Err(_) => return None,
        };
        let Some(daemon) = descriptors.take() else { continue };
        let order = Order { path: OsStr::from_bytes(&room[..length]).into(), daemon };
        match fork_away() {
            Ok(Forked::Shim) => return Some(order),
            Ok(Forked::Starter) => {}
            Err(errno) => failed(order.daemon.as_fd(), room, errno),
        }
    }
}

enum Forked {
    Starter,
    Shim,
}

/// Forks twice, so that the shim is a child of neither this process nor the daemon.
#[allow(unsafe_code)]
fn fork_away() -> Result<Forked, Errno> {
    // SAFETY: this process has one thread, so a child may make any call.
    let ForkResult::Parent { child } = (unsafe { fork()? }) else {
        // SAFETY: as above; and what ends here has nothing to clean up.
        unsafe {
            match fork() {
                Ok(ForkResult::Child) => return Ok(Forked::Shim),
                Ok(ForkResult::Parent { .. }) => libc::_exit(0),
                Err(errno) => libc::_exit(errno as i32),
            }
        }
    };
    let ended = waitpid(child, None)?;
    let WaitStatus::Exited(_, errno) = ended else { return Err(Errno::ECHILD) };
    if errno == 0 { Ok(Forked::Starter) } else { Err(Errno::from_raw(errno)) }
}
