//! The daemon's files: the directory, its sockets, the log.

use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::{DoctorFacts, FoundDaemon};
use crate::cli::start::log::log_path;
use crate::cli::status::bytes;
use crate::config::paths::{RuntimePaths, SOCKET_PATH_MAX};
use crate::config::sockets::{SocketAccess, SocketAudience};
use crate::config::sources::Sources;
use crate::surface::TOOL_NAMES;
use crate::transport::unix::directory::{self, DirectoryError};

/// `doctor` warns about a log larger than this, in bytes.
const LOG_LARGE: u64 = 64 * 1024 * 1024;

/// Whether the directory is safe for sockets.
pub(super) fn runtime_directory(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "runtime directory";
    let Ok(paths) = &ground.paths else { return Vec::new() };
    let shown = paths.root().display();
    vec![match directory::inspect(paths) {
        Ok(()) => Check::ok(NAME, format!("{shown}, {}", openness(paths.root()))),
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
    let access = access_as_configured(ground);
    let mode_of = |path: &Path| audience_of(path, paths, access).socket_mode();
    if let Some(path) = there.iter().find(|path| is_open_beyond(path, mode_of(path))) {
        let (mode, path) = (mode_of(path), path.display());
        return vec![Check::fail(
            NAME,
            format!("{path} can be used by others than [sockets] of the configuration names"),
            format!("Run: chmod {mode:03o} {path}"),
        )];
    }
    let open = if access == SocketAccess::default() {
        "yours alone (0600)"
    } else {
        "open only to whom [sockets] of the configuration names"
    };
    let count = there.len();
    vec![match (&ground.daemon, count) {
        (_, 0) => Check::ok(NAME, "none"),
        (FoundDaemon::Running(_), _) => Check::ok(NAME, format!("{count}, all of them {open}")),
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

/// Who can pass through a directory of sockets.
fn openness(directory: &Path) -> String {
    let Ok(found) = directory.symlink_metadata() else { return "yours".to_owned() };
    let mode = found.permissions().mode() & 0o777;
    match mode & 0o011 {
        0 => format!("yours alone ({mode:04o})"),
        0o010 => format!("yours; group {} may connect in it ({mode:04o})", found.gid()),
        _ => format!("yours; other users may connect in it ({mode:04o})"),
    }
}

/// Whom the sockets are open to; only the owner where the configuration cannot be read, of which another check tells.
fn access_as_configured(ground: &DoctorFacts) -> SocketAccess {
    let directory = env::current_dir().unwrap_or_default();
    let effective = Sources::new(None, &directory, &ground.environment, TOOL_NAMES).load();
    let access = effective.ok().and_then(|read| SocketAccess::of(&read.config.sockets).ok());
    access.unwrap_or_default()
}

fn audience_of(socket: &Path, paths: &RuntimePaths, access: SocketAccess) -> SocketAudience {
    if socket == paths.operator() {
        return SocketAudience::Owner;
    }
    let read_only = socket.to_string_lossy().ends_with(".ro.sock");
    if read_only { access.observers() } else { access.clients() }
}

fn is_open_beyond(path: &Path, mode: u32) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.permissions().mode() & 0o077 & !mode != 0)
}
