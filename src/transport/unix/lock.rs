//! The lock that makes one process the daemon of a directory.
//!
//! It knows nothing of sockets. The lock is the kernel's and ends with the process, however that
//! ends, so it can be neither forgotten nor left behind; the file itself says nothing. Any program of the user can
//! remove the file, or lock it: one in a session takes no place by that.

mod owner;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::libc;

use crate::session::pty::ProcessId;
use crate::session::pty::processes::is_stopped;
use crate::transport::unix::handed::onward::{inherited, keep_open};
use crate::transport::unix::lock::owner::Owner;

/// How often the file may be replaced under our hands before we give up.
const ATTEMPTS_MAX: usize = 8;

/// Says why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it; where the kernel does not say which, the number is what that one wrote.
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
    /// A file that only programs in sessions have locked is replaced.
    ///
    /// # Errors
    /// Who has it, or why the file cannot be locked.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        match seize(path) {
            Ok(file) => Ok(Self { held: Arc::new(Held(Mutex::new(file))), path: path.to_owned() }),
            Err(Refused::By(pid)) => Err(LockError::Held { pid: Some(pid) }),
            Err(Refused::Unclear(pid)) => Err(LockError::Held { pid }),
            Err(Refused::Io(source)) => Err(LockError::Io { path: path.to_owned(), source }),
        }
    }

    /// Takes the lock anew if its file was removed or replaced, and says whose the place is. Blocks for
    /// milliseconds.
    pub fn keep(&self) -> Keeping {
        if self.counts() {
            return Keeping::Ours;
        }
        match seize(&self.path) {
            Ok(file) => {
                *self.held.file() = file;
                tracing::warn!(path = %self.path.display(), "the file of the lock is made anew");
                Keeping::Ours
            }
            Err(Refused::By(_)) => Keeping::Lost,
            Err(Refused::Unclear(_) | Refused::Io(_)) => Keeping::Unclear,
        }
    }

    /// The process that has the lock at `path`, if one outside of all sessions does. Asking takes a shared
    /// lock for a moment, no longer.
    pub fn owner(path: &Path) -> Option<i32> {
        let mut file = File::open(path).ok()?;
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        match Owner::of(&file) {
            Owner::Outside(pid) => Some(pid),
            Owner::Inside => None,
            Owner::Unknown => written_pid(&mut file),
        }
    }

    /// Leaves the lock to the program that takes the place of this one in this process; if none
    /// does, it ends with the process.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pass_on(self) -> io::Result<()> {
        keep_open(&*self.held.file())?;
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
        is_at(&self.held.file(), &self.path)
    }
}

/// Whose the place of a daemon is that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    Ours,
    /// Another daemon has it.
    Lost,
    /// It could not be taken anew, and nobody is seen who has it.
    Unclear,
}

#[derive(Debug)]
struct Held(Mutex<File>);

impl Held {
    fn file(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A child between its fork and its exec shares the open file; closing ours alone would
        // leave the lock with it. If this fails, that child's exec ends the lock.
        let _ = self.file().unlock();
    }
}

/// Why the lock is not to be had.
enum Refused {
    /// This process outside of all sessions has it.
    By(i32),
    /// Somebody has it, who wrote this number or none.
    Unclear(Option<i32>),
    Io(io::Error),
}

/// Locks the file at a path and writes our number into it.
fn seize(path: &Path) -> Result<File, Refused> {
    for _ in 0..ATTEMPTS_MAX {
        let mut file = open(path).map_err(Refused::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            // We may be the daemon already, by the program before this one: then the lock is ours.
            Err(TryLockError::WouldBlock) => match inherited(&file).map(File::from) {
                Some(left) if left.try_lock().is_ok() => file = left,
                Some(_) | None => match Owner::of(&file) {
                    Owner::Outside(pid) => return Err(Refused::By(pid)),
                    Owner::Unknown => return Err(Refused::Unclear(written_pid(&mut file))),
                    Owner::Inside => {
                        if is_at(&file, path) {
                            fs::remove_file(path).map_err(Refused::Io)?;
                        }
                        continue;
                    }
                },
            },
            Err(TryLockError::Error(source)) => return Err(Refused::Io(source)),
        }
        // Between opening and locking, the file may have been removed and made anew; then
        // another process can hold the lock that counts.
        if is_at(&file, path) {
            tell_pid(&mut file);
            return Ok(file);
        }
    }
    Err(Refused::Io(io::Error::other("a program keeps replacing it")))
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
