//! What a program leaves open for the program that replaces it in the same process.
//!
//! All our descriptors are closed on exec unless [`keep_open`] was called. So an open descriptor without that flag is
//! older than this program.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};

const DESCRIPTORS: &str = "/proc/self/fd";

/// Keeps a descriptor open across an exec.
///
/// # Errors
/// Returns the kernel's error.
pub fn keep_open(descriptor: impl AsFd) -> io::Result<()> {
    fcntl(descriptor.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// Takes over a descriptor of the same file that the previous program kept open. Each is found only once.
pub fn inherited(file: &File) -> Option<OwnedFd> {
    let wanted = file.metadata().ok()?;
    let numbers = fs::read_dir(DESCRIPTORS).ok()?.flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_wanted = |number: &RawFd| {
        let found = fs::metadata(format!("{DESCRIPTORS}/{number}"));
        found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
    };
    numbers.filter(|number| *number > libc::STDERR_FILENO).filter(is_wanted).find_map(adopt)
}

/// Takes over a descriptor that was open before this program started.
#[allow(unsafe_code)]
fn adopt(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the call only reads a flag of a descriptor, open or not.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 || flags & libc::FD_CLOEXEC != 0 {
        return None;
    }
    // SAFETY: without that flag this program did not open the descriptor, so no other code closes it. The flag is set
    // now, so it is not found again.
    let ours = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&ours, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(ours)
}

/// Whether the process ignores SIGHUP, as under `nohup`. Call it before the runtime installs its own handler.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (libc::SIGHUP - 1)) != 0)
}

/// Ignores SIGHUP from now on and replaces the runtime's handler.
///
/// # Errors
/// Returns the kernel's error.
#[allow(unsafe_code)]
pub fn ignore_hangup() -> io::Result<()> {
    // SAFETY: `SIG_IGN` calls no handler of ours.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }?;
    Ok(())
}
