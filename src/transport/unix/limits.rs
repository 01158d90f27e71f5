//! The kernel's limit of descriptors.
//!
//! It must not know what they are used for. Every connection and session costs some, and the usual
//! limit of a thousand is meant for programs that know no better.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The user this daemon runs as.
pub fn own_uid() -> u32 {
    nix::unistd::Uid::effective().as_raw()
}

/// How many descriptors the process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// What it was at the start; programs of sessions should be started with this.
    pub before: u64,
    pub now: u64,
}

impl DescriptorLimit {
    /// Makes the limit what it was at the start, for a program that takes this one's place.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn restore(self) -> io::Result<()> {
        Ok(setrlimit(Resource::RLIMIT_NOFILE, self.before, self.now)?)
    }
}

/// How many descriptors a process started from here may give itself.
///
/// # Errors
/// What the kernel said.
pub fn hard_descriptor_limit() -> io::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(hard)
}

/// Raises the limit of descriptors as far as the process may.
///
/// # Errors
/// What the kernel said.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(DescriptorLimit { before: soft, now: hard })
}

#[cfg(test)]
mod tests;
