//! The lock of a journal: one process writes it at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The error of a journal that another process writes.
pub(super) const TAKEN: io::ErrorKind = io::ErrorKind::ResourceBusy;

#[derive(Debug)]
pub(super) struct JournalLock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
    identity: (u64, u64),
}

impl JournalLock {
    /// Takes the lock. If another process has it, replaces the file where `may_take_over` allows that, and sets
    /// `took_over`: the other one may not know yet that its lock counts no more.
    pub(super) fn take(
        path: &Path,
        may_take_over: &dyn Fn() -> bool,
        took_over: &mut bool,
    ) -> io::Result<Self> {
        let mut replaced = false;
        loop {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            match file.try_lock() {
                Ok(()) => {
                    let identity = identity(&file.metadata()?);
                    let lock = Self { path: path.to_owned(), _file: file, identity };
                    if lock.counts() {
                        return Ok(lock);
                    }
                    // It was replaced meanwhile.
                }
                Err(TryLockError::WouldBlock) if !replaced && may_take_over() => {
                    fs::remove_file(path)?;
                    (replaced, *took_over) = (true, true);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(TAKEN, "another daemon writes it"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether the locked file is still the one at its path.
    pub(super) fn counts(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|there| identity(&there) == self.identity)
    }
}

/// Which file it is.
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
