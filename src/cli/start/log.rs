//! The log of a daemon that a command started: its path, its bound, its last line.
//!
//! Only the user can read the file.

pub mod bounded;

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use nix::libc;

use crate::cli::start::log::bounded::aside;
use crate::config::paths::{RuntimePaths, state_directory};

/// A log above this size in bytes is rotated; one rotated file is kept.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many bytes at the end are searched for the last line.
const TAIL: u64 = 4 * 1024;
/// The longest last line in an error, in characters.
const LAST_WORDS_MAX: usize = 300;

const NAME: &str = "daemon.log";

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

    /// The last line since the log was opened.
    pub(super) fn last_words(&self) -> Option<String> {
        let mut file = &self.file;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(self.begin.max(length.saturating_sub(TAIL)))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        let line = tail.lines().rfind(|line| !line.trim().is_empty())?;
        Some(line.trim_start_matches("termgate: ").chars().take(LAST_WORDS_MAX).collect())
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
    fn the_last_words_are_those_of_this_daemon() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("daemon.log"), "of another one\n").unwrap();
        let log = Log::in_directory(home.path()).unwrap();
        assert_eq!(log.last_words(), None);
        (&log.file).write_all(b"first\ntermgate: the reason\n\n").unwrap();
        assert_eq!(log.last_words().unwrap(), "the reason");
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("target");
        symlink(&target, home.path().join("daemon.log")).unwrap();
        assert!(Log::in_directory(home.path()).is_err());
        assert!(!target.exists());
    }
}
