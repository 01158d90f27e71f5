//! The lock that makes one process the daemon of a directory.
//!
//! The kernel releases it when the process ends. Any program of the user can remove or lock the file, but a program in
//! a session cannot become the daemon that way.

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
use crate::transport::unix::lock::owner::LockOwner;

/// How often another program may replace the file before we give up.
const ATTEMPTS_MAX: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has the lock. If the kernel does not name it, `pid` is the number written in the file.
    #[error("{}", of_owner(*pid))]
    Held { pid: Option<i32> },
    #[error("cannot lock {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

fn of_owner(pid: Option<i32>) -> String {
    match pid {
        Some(pid) if is_stopped(ProcessId(pid)) => {
            format!("process {pid} is the daemon, but is suspended")
        }
        Some(pid) => format!("another daemon is running as process {pid}"),
        None => "another daemon is running".to_owned(),
    }
}

/// The right to replace files in the lock's directory, until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct DaemonLock {
    held: Arc<Held>,
    path: PathBuf,
}

impl DaemonLock {
    /// Takes the lock without waiting and writes our process number into the file.
    ///
    /// On a full disk the file stays empty, and the lock is still taken. A file that only programs in sessions have
    /// locked is replaced.
    ///
    /// # Errors
    /// Returns [`LockError::Held`] when another process has it, [`LockError::Io`] when the file cannot be locked.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        match seize(path) {
            Ok(file) => Ok(Self { held: Arc::new(Held(Mutex::new(file))), path: path.to_owned() }),
            Err(Refused::By(pid)) => Err(LockError::Held { pid: Some(pid) }),
            Err(Refused::Unclear(pid)) => Err(LockError::Held { pid }),
            Err(Refused::Io(source)) => Err(LockError::Io { path: path.to_owned(), source }),
        }
    }

    /// Takes the lock again if its file was removed or replaced. Blocks for milliseconds.
    pub fn keep(&self) -> LockState {
        if self.counts() {
            return LockState::Ours;
        }
        match seize(&self.path) {
            Ok(file) => {
                *self.held.file() = file;
                tracing::warn!(path = %self.path.display(), "the lock file is created again");
                LockState::Ours
            }
            Err(Refused::By(_)) => LockState::Lost,
            Err(Refused::Unclear(_) | Refused::Io(_)) => LockState::Unclear,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process outside all sessions that has the lock at `path`. The check takes a shared lock for a moment.
    pub fn owner(path: &Path) -> Option<i32> {
        let mut file = File::open(path).ok()?;
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        match LockOwner::of(&file) {
            LockOwner::Outside(pid) => Some(pid),
            LockOwner::Inside => None,
            LockOwner::Unknown => written_pid(&mut file),
        }
    }

    /// Leaves the lock to the program that this process executes next. Without an exec, the lock ends with the
    /// process.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn pass_on(self) -> io::Result<()> {
        keep_open(&*self.held.file())?;
        std::mem::forget(self.held);
        Ok(())
    }

    /// Whether the path is in the lock's directory or below it.
    pub fn covers(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        path.starts_with(directory) && !climbs
    }

    /// Whether the lock's file is still at its path; otherwise another process can take the lock.
    pub fn counts(&self) -> bool {
        is_at(&self.held.file(), &self.path)
    }
}

/// Which daemon has the lock, after [`DaemonLock::keep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    Ours,
    /// Another daemon has it.
    Lost,
    /// The lock could not be taken again, and no other daemon is known to have it.
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
        // A child between its fork and its exec shares the open file, so closing ours would leave it locked. If
        // unlocking fails, the child's exec releases the lock.
        let _ = self.file().unlock();
    }
}

enum Refused {
    /// This process outside all sessions has it.
    By(i32),
    /// An unknown process has it; the file contains this number or none.
    Unclear(Option<i32>),
    Io(io::Error),
}

fn seize(path: &Path) -> Result<File, Refused> {
    for _ in 0..ATTEMPTS_MAX {
        let mut file = open(path).map_err(Refused::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            // Before an exec, this process may have taken the lock already. Then the lock is ours.
            Err(TryLockError::WouldBlock) => match inherited(&file).map(File::from) {
                Some(left) if left.try_lock().is_ok() => file = left,
                Some(_) | None => match LockOwner::of(&file) {
                    LockOwner::Outside(pid) => return Err(Refused::By(pid)),
                    LockOwner::Unknown => return Err(Refused::Unclear(written_pid(&mut file))),
                    LockOwner::Inside => {
                        if is_at(&file, path) {
                            fs::remove_file(path).map_err(Refused::Io)?;
                        }
                        continue;
                    }
                },
            },
            Err(TryLockError::Error(source)) => return Err(Refused::Io(source)),
        }
        // Between open and lock, another process may have replaced the file and locked the new one.
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
        tracing::warn!(%error, "the lock file names no process");
        // An empty file is better than the number of an earlier daemon.
        let _ = file.set_len(0);
    }
}

/// Overwrites the text in place, which needs no space on a full disk.
fn write_pid(file: &mut File) -> io::Result<()> {
    let text = format!("{}\n", std::process::id());
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests;
