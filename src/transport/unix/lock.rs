//! The lock that makes one process the daemon of a directory.
//!
//! It knows nothing of sockets. The lock is the kernel's and ends with the process, however that
//! ends, so it can be neither forgotten nor left behind; the file itself says nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::libc;

use crate::session::pty::ProcessId;
use crate::session::pty::processes::is_stopped;
use crate::transport::unix::handed::onward::{inherited, keep_open};

/// How often the file may be replaced under our hands before we give up.
const ATTEMPTS_MAX: usize = 8;

/// Says why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it; the number is what that one wrote, and only good for telling.
    #[error("{}", of_owner(*pid))]
    Held { pid: Option<i32> },
    #[error("cannot lock {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

fn of_owner(pid: Option<i32>) -> String {
    match pid {
        Some(pid) if is_stopped(ProcessId(pid)) => {
            format!("process {pid} has the daemon's lock and stands still, since it was stopped")
        }
        Some(pid) => format!("another daemon is running as process {pid}"),
        None => "another daemon is running".to_owned(),
    }
}

/// The right to replace what lies in the lock's directory; held until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct DaemonLock {
    held: Arc<Held>,
    path: PathBuf,
}

impl DaemonLock {
    /// Takes the lock, without waiting, and writes our process number into the file; on a full disk
    /// the file says nothing, and the lock is taken all the same.
    ///
    /// # Errors
    /// Who has it, or why the file cannot be locked.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        for _ in 0..ATTEMPTS_MAX {
            let mut file = open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                // We may be the daemon already, by the program before this one: then the lock is ours.
                Err(TryLockError::WouldBlock) => match inherited(&file).map(File::from) {
                    Some(left) if left.try_lock().is_ok() => file = left,
                    Some(_) | None => {
                        return Err(LockError::Held { pid: written_pid(&mut file) });
                    }
                },
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            // Between opening and locking, the file may have been removed and made anew; then
            // another process can hold the lock that counts.
            if is_at(&file, path) {
                tell_pid(&mut file);
                return Ok(Self { held: Arc::new(Held(file)), path: path.to_owned() });
            }
        }
        Err(failed(io::ErrorKind::ResourceBusy.into()))
    }

    /// The process that wrote its number into the lock at `path`, if somebody has that lock. Asking
    /// takes a shared lock for a moment, no longer.
    pub fn owner(path: &Path) -> Option<i32> {
        let mut file = File::open(path).ok()?;
        let taken = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        taken.then(|| written_pid(&mut file)).flatten()
    }

    /// Leaves the lock to the program that takes the place of this one in this process; if none
    /// does, it ends with the process.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pass_on(self) -> io::Result<()> {
        keep_open(&self.held.0)?;
        std::mem::forget(self.held);
        Ok(())
    }

    /// Whether the lock decides about this path: whether it lies in the lock's directory or below.
    pub fn covers(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        path.starts_with(directory) && !climbs
    }

    /// Whether it is the lock that counts: its file was not removed, so that another could be taken.
    pub fn counts(&self) -> bool {
        is_at(&self.held.0, &self.path)
    }
}

#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // A child between its fork and its exec shares the open file; closing ours alone would
        // leave the lock with it. If this fails, that child's exec ends the lock.
        let _ = self.0.unlock();
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), path.symlink_metadata()) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

fn written_pid(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn tell_pid(file: &mut File) {
    if let Err(error) = write_pid(file) {
        tracing::warn!(%error, "the lock does not say whose it is");
        // Better nobody's number than that of the daemon before.
        let _ = file.set_len(0);
    }
}

/// Writes over what is there, since that needs no room on the disk.
fn write_pid(file: &mut File) -> io::Result<()> {
    let text = format!("{}\n", std::process::id());
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests;
