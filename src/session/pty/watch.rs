//! Waits for a descriptor to become ready.
//! The watch owns the descriptor, so that no other code can close it under the runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the current runtime.
///
/// # Errors
/// Returns the kernel's error; the descriptor is closed then.
///
/// # Panics
/// Outside a runtime.
#[allow(unsafe_code)]
pub fn watch(descriptor: impl Into<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and stays the same until its only owner, the watch, is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor.into(), interest) };
    Ok(watched?)
}
