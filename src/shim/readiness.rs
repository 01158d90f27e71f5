//! Waiting for descriptors to become ready, and the time.
//!
//! It knows nothing of what they are and allocates nothing.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::time::{ClockId, clock_gettime};

/// What happened to a descriptor, or is waited for.
pub type Events = i16;

/// There is something to read, or to accept.
pub const READABLE: Events = libc::POLLIN;
/// There is room to write.
pub const WRITABLE: Events = libc::POLLOUT;
/// The other side will send no more, or is gone.
pub const HANGUP: Events = libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR;

/// Waits until something of what is asked for happens to one of the descriptors, or the time is
/// over, and says what happened to each; hang-ups are told without being asked for.
///
/// Nothing happens to a descriptor that is not there, or of which nothing is asked.
///
/// # Errors
/// What the kernel said.
#[allow(unsafe_code)]
pub fn wait<const N: usize>(
    asked: [(Option<BorrowedFd<'_>>, Events); N],
    most: Option<Duration>,
) -> Result<[Events; N], Errno> {
    let mut descriptors = asked.map(|(descriptor, events)| libc::pollfd {
        fd: descriptor.filter(|_| events != 0).map_or(-1, |one| one.as_raw_fd()),
        events,
        revents: 0,
    });
    // Rounded up, so that the time is over when the wait is.
    let millis =
        most.map_or(-1, |most| i32::try_from(most.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX));
    // SAFETY: the list outlives the call, which is told its length.
    let ready = unsafe { libc::poll(descriptors.as_mut_ptr(), N as libc::nfds_t, millis) };
    match Errno::result(ready) {
        Ok(_) => Ok(descriptors.map(|one| one.revents)),
        Err(Errno::EINTR) => Ok([0; N]),
        Err(errno) => Err(errno),
    }
}

/// What happens to a descriptor at this very moment.
///
/// # Errors
/// What the kernel said.
pub fn look(descriptor: BorrowedFd<'_>, events: Events) -> Result<Events, Errno> {
    let [ready] = wait([(Some(descriptor), events)], Some(Duration::ZERO))?;
    Ok(ready)
}

/// How long the machine has been awake.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel has this clock");
    Duration::from(now)
}
