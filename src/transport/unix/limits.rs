//! The kernel's limit of file descriptors per process.
//!
//! Connections and sessions need several each, and the usual soft limit of 1024 is too low.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The soft limit at the start; programs of sessions are started with it.
    pub before: u64,
    pub now: u64,
}

impl DescriptorLimit {
    /// Restores the soft limit of the start, before an exec.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn restore(self) -> io::Result<()> {
        Ok(setrlimit(Resource::RLIMIT_NOFILE, self.before, self.now)?)
    }
}

/// The hard limit, which a child process can raise its own limit to.
///
/// # Errors
/// Returns the kernel's error.
pub fn hard_descriptor_limit() -> io::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(hard)
}

/// Raises the soft limit to the hard limit.
///
/// # Errors
/// Returns the kernel's error.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(DescriptorLimit { before: soft, now: hard })
}

#[cfg(test)]
mod tests;
