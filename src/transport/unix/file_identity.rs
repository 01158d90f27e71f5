//! Recognizes a file at its path.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// Which file it is. The number alone is not enough: when a socket is closed, the next file can get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    /// `None` where the file system does not keep it.
    created: Option<SystemTime>,
}

impl FileIdentity {
    /// The file at a path, without following a link.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = path.symlink_metadata()?;
        Ok(Self { device: found.dev(), inode: found.ino(), created: found.created().ok() })
    }
}
