//! Counts the file descriptors that this process can still open.
//! The kernel has limits per process and in total, but no call that reports the rest. So this opens
//! descriptors for a moment.

use std::fs::File;
use std::io;

use nix::libc;

/// The descriptors that a session keeps open, plus a few for short use.
pub const OF_A_SESSION: usize = 8;

/// The number of free descriptors, up to `most`.
pub fn spare_descriptors(most: usize) -> usize {
    let opened: Vec<File> = (0..most).map_while(|_| File::open("/dev/null").ok()).collect();
    opened.len()
}

/// Whether an error means that no file descriptor was left.
pub fn is_want_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
