//! The daemon's files: the directory, its sockets, the log.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::{DoctorFacts, FoundDaemon};
use crate::cli::start::log::log_path;
use crate::cli::status::bytes;
use crate::config::paths::{RuntimePaths, SOCKET_PATH_MAX};
use crate::transport::unix::directory::{self, DirectoryError};

/// `doctor` warns about a log larger than this, in bytes.
const LOG_LARGE: u64 = 64 * 1024 * 1024;

/// Whether the directory is safe for sockets.
pub(super) fn runtime_directory(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "runtime directory";
    let Ok(paths) = &ground.paths else { return Vec::new() };
    let shown = paths.root().display();
    vec![match directory::inspect(paths) {
        Ok(()) => Check::ok(NAME, format!("{shown}, yours alone (0700)")),
        Err(DirectoryError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Check::ok(NAME, format!("{shown} is not there yet; a daemon makes it"))
        }
        // The error itself says how to fix it.
        Err(error) => Check::fail(NAME, error.to_string(), "No daemon starts until that is fixed."),
    }]
}

/// Whether the socket paths are short enough for the kernel.
pub(super) fn socket_paths(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "socket paths";
    vec![match &ground.paths {
        Ok(paths) => {
            let sessions = paths.sessions().as_os_str().as_bytes().len();
            // A slash, the digits of an id and the longest suffix.
            let longest = sessions + 1 + crate::core::ids::SessionId::DIGITS + ".ro.sock".len();
            Check::ok(NAME, format!("{longest} of {SOCKET_PATH_MAX} bytes at most"))
        }
        Err(error) => Check::fail(NAME, error.to_string(), "No daemon starts until that is fixed."),
    }]
}

/// Which sockets exist, and whether a daemon answers.
pub(super) fn sockets(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "sockets";
    let Ok(paths) = &ground.paths else { return Vec::new() };
    let there = sockets_of(paths);
    let open: Vec<&PathBuf> = there.iter().filter(|path| is_open_to_others(path)).collect();
    if let Some(path) = open.first() {
        let path = path.display();
        return vec![Check::fail(
            NAME,
            format!("{path} can be used by others"),
            format!("Run: chmod 600 {path}"),
        )];
    }
    let count = there.len();
    vec![match (&ground.daemon, count) {
        (_, 0) => Check::ok(NAME, "none"),
        (FoundDaemon::Running(_), _) => {
            Check::ok(NAME, format!("{count}, all of them yours alone (0600)"))
        }
        (FoundDaemon::Broken(_), _) => Check::warn(
            NAME,
            format!("{count} of a daemon that does not answer"),
            "See what is said of the daemon.",
        ),
        (FoundDaemon::Absent, _) => Check::warn(
            NAME,
            format!("{count} stale, left by a daemon that was killed"),
            "Nothing to do: the next daemon replaces them.",
        ),
    }]
}

/// The log of a daemon that a command started.
pub(super) fn log(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "log";
    let Ok(paths) = &ground.paths else { return Vec::new() };
    let path = log_path(paths);
    let shown = path.display();
    vec![match path.metadata() {
        Ok(log) if log.len() > LOG_LARGE => Check::warn(
            NAME,
            format!("{shown} has {}", bytes(log.len())),
            format!("Empty it with: : > {shown}"),
        ),
        Ok(log) => Check::ok(NAME, format!("{shown}, {}", bytes(log.len()))),
        Err(_) => Check::ok(NAME, format!("none yet; it will be {shown}")),
    }]
}

fn sockets_of(paths: &RuntimePaths) -> Vec<PathBuf> {
    let directories = [paths.root().to_owned(), paths.sessions()];
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let files = entries.flatten().flatten();
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    files.filter(is_socket).map(|entry| entry.path()).collect()
}

fn is_open_to_others(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}
