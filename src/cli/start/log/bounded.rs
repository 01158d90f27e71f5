//! The log file behind standard error of a daemon that a command started, rotated at a bound.
//!
//! Other output to standard error, such as a panic message, goes to the same file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::unistd::dup2_stderr;

use crate::cli::start::log::{BYTES_MAX, log_path, open};
use crate::config::paths::RuntimePaths;

/// The log of this process. With the rotated file it takes at most twice its bound.
#[derive(Debug)]
pub struct Bounded {
    path: PathBuf,
    bytes_max: u64,
    file: Mutex<File>,
    /// Redirects standard error to this file.
    follow: fn(&File) -> io::Result<()>,
}

impl Bounded {
    /// The log file behind standard error; none when standard error is something else.
    pub fn of_standard_error(paths: &RuntimePaths) -> Option<Self> {
        let path = log_path(paths);
        let standard_error = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
        if !is_at(&standard_error, &path) {
            return None;
        }
        let (file, _) = open(&path).ok()?;
        let follow = |file: &File| Ok(dup2_stderr(file)?);
        Some(Self { path, bytes_max: BYTES_MAX, file: Mutex::new(file), follow })
    }

    /// Writes a line, and rotates a full file first. A line that cannot be written within the bound is lost.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() + line.len() as u64 > self.bytes_max {
            *file = self.put_aside(&file)?;
        }
        file.write_all(line)
    }

    /// Rotates the full file, unless another process did, and returns the new one.
    fn put_aside(&self, full: &File) -> io::Result<File> {
        if is_at(full, &self.path) {
            fs::rename(&self.path, aside(&self.path))?;
        }
        let (next, _) = open(&self.path)?;
        (self.follow)(&next)?;
        Ok(next)
    }
}

/// The path of the rotated log.
pub(super) fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let there = path.symlink_metadata().map(|there| (there.dev(), there.ino()));
    let ours = file.metadata().map(|ours| (ours.dev(), ours.ino()));
    matches!((there, ours), (Ok(there), Ok(ours)) if there == ours)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const MOST: u64 = 100;

    fn bounded(directory: &Path) -> Bounded {
        let path = directory.join("daemon.log");
        let (file, _) = open(&path).unwrap();
        Bounded { path, bytes_max: MOST, file: Mutex::new(file), follow: |_| Ok(()) }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_log_never_takes_more_than_twice_its_bound_and_ends_with_what_was_said_last() {
        let home = tempfile::tempdir().unwrap();
        let log = bounded(home.path());
        for number in 0..1_000 {
            log.write(format!("line {number:03}\n").as_bytes()).unwrap();
        }
        let (now, before) = (text(&log.path), text(&aside(&log.path)));
        assert!(now.len() <= MOST as usize && before.len() <= MOST as usize);
        let both = before + &now;
        let numbers: Vec<usize> =
            both.lines().map(|line| line.strip_prefix("line ").unwrap().parse().unwrap()).collect();
        let first = numbers[0];
        assert_eq!(numbers, (first..1_000).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_that_somebody_else_put_aside_goes_on_at_its_path() {
        let home = tempfile::tempdir().unwrap();
        let log = bounded(home.path());
        log.write(&[b'x'; MOST as usize]).unwrap();
        fs::rename(&log.path, home.path().join("elsewhere")).unwrap();
        log.write(b"next\n").unwrap();
        assert_eq!(text(&log.path), "next\n");
        assert!(!aside(&log.path).exists());
    }

    #[test]
    fn where_it_cannot_be_put_aside_nothing_is_added() {
        let home = tempfile::tempdir().unwrap();
        let log = bounded(home.path());
        log.write(&[b'x'; MOST as usize]).unwrap();
        fs::remove_file(&log.path).unwrap();
        symlink("/nowhere/at/all", &log.path).unwrap();
        assert!(log.write(b"next\n").is_err());
        assert_eq!(log.file.lock().unwrap().metadata().unwrap().len(), MOST);
    }
}
