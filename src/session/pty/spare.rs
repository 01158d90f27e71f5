//! Descriptors that this process could still have.
//!
//! It knows nothing of what they are for. There is no asking the kernel, which has limits for the process
//! and for all processes together, so as many as are wanted are opened for a moment.

use std::fs::File;
use std::io;

use nix::libc;

/// What a session keeps open, and a little of what it opens for a moment.
pub const OF_A_SESSION: usize = 8;

/// How many there are, up to `most`.
pub fn spare_descriptors(most: usize) -> usize {
    let opened: Vec<File> = (0..most).map_while(|_| File::open("/dev/null").ok()).collect();
    opened.len()
}

/// Whether something failed for want of a descriptor.
pub fn is_want_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
