//! Waiting for a descriptor of ours to become ready.
//!
//! It knows nothing of what the descriptor is. Owning it is what makes the wait sound: nobody else
//! can close it under the runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Hands a descriptor to the current runtime to watch.
///
/// # Errors
/// What the kernel said; the descriptor is closed then.
///
/// # Panics
/// Outside a runtime.
#[allow(unsafe_code)]
pub fn watch(descriptor: impl Into<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and stays the same until the watch, its only owner, is
    // dropped.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor.into(), interest) };
    Ok(watched?)
}
