//! The log of a daemon that a command started: its path, its bound, its last line.
//!
//! Only the user can read the file.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use nix::libc;
use nix::unistd::dup2_stderr;

use crate::config::paths::{RuntimePaths, state_directory};
use crate::core::code::Code;

/// A log above this size in bytes is rotated; one rotated file is kept.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many bytes at the end are searched for the failure.
const TAIL: u64 = 16 * 1024;
/// The most lines of a failure that an error repeats, and characters of each.
const FAILURE_LINES_MAX: usize = 10;
const FAILURE_LINE_MAX: usize = 300;

const NAME: &str = "daemon.log";
/// What the line of a failure begins with.
const FAILURE: &str = "termgate: ";

/// The log file of a daemon that a command starts.
pub fn log_path(paths: &RuntimePaths) -> PathBuf {
    directory(paths).join(NAME)
}

/// The user's state directory, or the directory of the sockets if there is none.
fn directory(paths: &RuntimePaths) -> PathBuf {
    state_directory(|name| env::var_os(name)).unwrap_or_else(|| paths.root().to_owned())
}

/// The log of one daemon.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    /// Where this daemon's own lines start.
    begin: u64,
}

impl Log {
    /// Opens the log in [`directory`].
    pub(super) fn open(paths: &RuntimePaths) -> anyhow::Result<Self> {
        Self::in_directory(&directory(paths))
    }

    fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(NAME);
        let failed = || format!("cannot open {}", path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(failed)?;
        if path.symlink_metadata().is_ok_and(|there| there.len() > BYTES_MAX) {
            fs::rename(&path, aside(&path)).with_context(failed)?;
        }
        let (file, begin) = open(&path).with_context(failed)?;
        Ok(Self { file, path, begin })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for the daemon's standard error.
    pub(super) fn writer(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// The failure with which the daemon ended, or the last line since the log was opened.
    pub(super) fn failure(&self) -> Option<String> {
        let mut file = &self.file;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(self.begin.max(length.saturating_sub(TAIL)))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        let lines =
            tail.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("hint: "));
        let lines: Vec<&str> = lines.collect();
        let failure = lines.iter().rposition(|line| line.starts_with(FAILURE));
        let lines = &lines[failure.unwrap_or(lines.len().checked_sub(1)?)..];
        let shown = lines.iter().take(FAILURE_LINES_MAX);
        let cut =
            |line: &&str| line.trim_start_matches(FAILURE).chars().take(FAILURE_LINE_MAX).collect();
        let mut shown: Vec<String> = shown.map(cut).collect();
        if let Some(more @ 1..) = lines.len().checked_sub(FAILURE_LINES_MAX) {
            shown.push(format!("and {more} more"));
        }
        // The caller's error has a code of its own.
        if let Some((text, code)) = shown.first_mut().and_then(|line| line.rsplit_once(" ("))
            && code.strip_suffix(')').and_then(Code::parse).is_some()
        {
            shown[0] = text.to_owned();
        }
        Some(shown.join("\n"))
    }
}

/// Opens a log that only the user can read, and returns its length.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The log of this process. With the rotated file it takes at most twice its bound.
#[derive(Debug)]
pub struct BoundedLog {
    path: PathBuf,
    bytes_max: u64,
    file: Mutex<File>,
    /// Redirects standard error to this file.
    follow: fn(&File) -> io::Result<()>,
}

impl BoundedLog {
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
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_log_is_made_for_the_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("state/termgate");
        let log = Log::in_directory(&directory).unwrap();
        assert_eq!((mode(&directory), mode(log.path())), (0o700, 0o600));
    }

    #[test]
    fn a_log_above_its_bound_is_put_aside_and_one_below_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let (path, aside) = (home.path().join("daemon.log"), home.path().join("daemon.log.1"));
        fs::write(&path, vec![b'x'; BYTES_MAX as usize]).unwrap();
        Log::in_directory(home.path()).unwrap();
        assert!(!aside.exists());
        fs::write(&path, vec![b'x'; BYTES_MAX as usize + 1]).unwrap();
        Log::in_directory(home.path()).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 0);
        assert_eq!(aside.metadata().unwrap().len(), BYTES_MAX + 1);
    }

    #[test]
    fn a_failure_is_that_of_this_daemon_with_all_its_lines() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("daemon.log"), "of another one\n").unwrap();
        let log = Log::in_directory(home.path()).unwrap();
        assert_eq!(log.failure(), None);
        (&log.file).write_all(b"first\n").unwrap();
        assert_eq!(log.failure().unwrap(), "first");
        (&log.file).write_all(b"termgate: one (internal)\ntwo (code)\nhint: none\n\n").unwrap();
        assert_eq!(log.failure().unwrap(), "one\ntwo (code)");
        (&log.file).write_all(b"termgate: x\n").unwrap();
        (&log.file).write_all("x\n".repeat(11).as_bytes()).unwrap();
        assert_eq!(log.failure().unwrap(), format!("{}and 2 more", "x\n".repeat(10)));
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("target");
        symlink(&target, home.path().join("daemon.log")).unwrap();
        assert!(Log::in_directory(home.path()).is_err());
        assert!(!target.exists());
    }

    const MOST: u64 = 100;

    fn bounded(directory: &Path) -> BoundedLog {
        let path = directory.join("daemon.log");
        let (file, _) = open(&path).unwrap();
        BoundedLog { path, bytes_max: MOST, file: Mutex::new(file), follow: |_| Ok(()) }
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
