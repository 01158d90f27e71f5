//! What a program leaves as it found it for the one that takes its place in the same process.
//!
//! It knows neither sockets nor locks. All that this program opens is closed by an exec unless it was
//! said here that it is not, so a descriptor that would stay open was open before the program began.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};

/// The descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Keeps a descriptor open for the next program.
///
/// # Errors
/// What the kernel said.
pub fn keep_open(descriptor: impl AsFd) -> io::Result<()> {
    fcntl(descriptor.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// A descriptor of the same file that the program before this one kept open, if it did; it is ours
/// from now on, and found once.
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

/// Makes a descriptor ours that was there before this program began.
#[allow(unsafe_code)]
fn adopt(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the calls do nothing but read and set a flag of a number, open or not.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 || flags & libc::FD_CLOEXEC != 0 {
        return None;
    }
    // SAFETY: without that flag it is none that this program opened, so nobody here closes it; with
    // the flag that is set now, nobody finds it again.
    let ours = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&ours, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(ours)
}

/// Whether the process ignores SIGHUP, as nohup has it; the runtime's own handler must not be there
/// yet.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (libc::SIGHUP - 1)) != 0)
}

/// Ignores SIGHUP from now on, whatever the runtime made of it.
///
/// # Errors
/// What the kernel said.
#[allow(unsafe_code)]
pub fn ignore_hangup() -> io::Result<()> {
    // SAFETY: no handler of ours is installed, so nothing is called in the middle of anything.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }?;
    Ok(())
}
