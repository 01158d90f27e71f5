//! Waits for descriptors with `poll`, and reads the monotonic clock. Nothing here allocates.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::time::{ClockId, clock_gettime};

/// `poll` events.
pub type Events = i16;

/// Data to read, or a connection to accept.
pub const READABLE: Events = libc::POLLIN;
/// Room to write.
pub const WRITABLE: Events = libc::POLLOUT;
/// The peer has closed its side, or the connection is broken.
pub const HANGUP: Events = libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR;

/// Waits for an event on any descriptor, up to `most`. Returns the events of each descriptor; hang-ups are
/// always included.
///
/// A missing descriptor, or one with no requested events, gets no events.
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
    // Rounded up, so that the deadline has passed when the wait ends.
    let millis =
        most.map_or(-1, |most| i32::try_from(most.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX));
    // SAFETY: the list outlives the call and has the given length.
    let ready = unsafe { libc::poll(descriptors.as_mut_ptr(), N as libc::nfds_t, millis) };
    match Errno::result(ready) {
        Ok(_) => Ok(descriptors.map(|one| one.revents)),
        Err(Errno::EINTR) => Ok([0; N]),
        Err(errno) => Err(errno),
    }
}

/// The events of a descriptor right now, without waiting.
pub fn look(descriptor: BorrowedFd<'_>, events: Events) -> Result<Events, Errno> {
    let [ready] = wait([(Some(descriptor), events)], Some(Duration::ZERO))?;
    Ok(ready)
}

/// The time on the monotonic clock, which stands still while the machine sleeps.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel has this clock");
    Duration::from(now)
}
