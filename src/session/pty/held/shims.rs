//! The shims of a directory: how they are set up, whether they are ours, and which run.
//! They are found in `/proc`: a socket file proves nothing, and connecting would take the session over.
//! A program in a session can move any file of its user and imitate a shim's name.
//! It cannot leave its session.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Uid;

use crate::core::ids::SessionId;
use crate::session::pty::ProcessId;
use crate::session::pty::held::starter::ShimStarter;
use crate::session::pty::processes::{Process, told_of};
use crate::session::pty::signal::Signal;
use crate::shim::family::listens_inside;
use crate::shim::stat::ProcessStat;
use crate::shim::wire::to_shim::Unread;
use crate::shim::{NAME, WORD};

/// The running program, even if its file on disk was replaced.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The shim directory, and whether this daemon still owns it.
///
/// A shim serves the daemon that attached last. A daemon that was stopped while another took over must not
/// attach again, because it would take sessions from the other.
#[derive(Clone)]
pub struct Shims {
    /// It must exist and belong to this user only.
    pub directory: PathBuf,
    ours: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Shims {
    /// A directory that no other daemon uses.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::claimed(directory, || true)
    }

    /// A directory that this daemon owns while `ours` returns true.
    pub fn claimed(
        directory: impl Into<PathBuf>,
        ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { directory: directory.into(), ours: Arc::new(ours) }
    }

    pub fn are_ours(&self) -> bool {
        (self.ours)()
    }
}

impl fmt::Debug for Shims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shims").field(&self.directory).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct ShimSetup {
    pub shims: Shims,
    pub starter: ShimStarter,
}

/// What becomes of a session while no daemon is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldingLimits {
    /// How long it waits for one; for ever when it is none.
    pub orphan_ttl: Option<Duration>,
    /// How much output is kept that no checkpoint covers, in bytes: a multiple of 4096, from 64 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// What becomes of output for which there is no room.
    pub unread: Unread,
}

#[derive(Clone, Debug)]
pub struct HoldOptions {
    pub shims: Shims,
    pub starter: ShimStarter,
    pub limits: HoldingLimits,
}

pub fn socket_of(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}

/// The processes that claim to be shims with sockets in `directory`, by session. Includes processes inside
/// sessions: a session does not count as ended while a process may still keep it.
///
/// # Errors
/// Returns the kernel's error if not all processes could be read.
pub fn living_shims(directory: &Path) -> io::Result<BTreeMap<SessionId, ProcessId>> {
    let entries = fs::read_dir("/proc")?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(ProcessId));
    let shim = |pid| {
        let socket = claimed_by(pid).filter(|socket| is_in(socket, directory))?;
        Some((session_of(&socket)?, pid))
    };
    let found = pids.filter_map(shim).collect();
    // Without a free descriptor the scan finds no process, so this open reports the error.
    fs::File::open("/proc/self/stat").map(|_| found)
}

/// Ends the shim that should listen at a socket, if one lives. Its program does not end with it.
pub fn end_shim(socket: &Path) {
    let Some(found) = socket.parent().and_then(|directory| living_shims(directory).ok()) else {
        return;
    };
    let shim = session_of(socket).and_then(|session| found.get(&session).copied());
    let Some(handle) = shim.and_then(|pid| Process::find(pid)?.open().ok()) else { return };
    // The number may be another process's by now.
    if shim.and_then(|pid| holds(pid, socket)) == Some(true) {
        let _ = handle.signal(Signal::Kill.number());
    }
}

/// Whether a process is the shim with this socket; `None` if unknown.
pub(super) fn holds(pid: ProcessId, socket: &Path) -> Option<bool> {
    if !is_of_own_user(pid)? {
        return Some(false);
    }
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Some(false);
    };
    match claimed_by(pid) {
        Some(at) if at.file_name() == Some(name) && is_in(&at, directory) => {
            listens_inside(pid.0, own()).ok().map(|inside| !inside)
        }
        Some(_) | None => Some(false),
    }
}

/// Where a process with the name of a shim claims to listen, by its command line. Other command lines are not read,
/// because they could delay the read.
fn claimed_by(pid: ProcessId) -> Option<PathBuf> {
    let is_shim = ProcessStat::find(pid.0).is_some_and(|found| found.is_shim);
    let line = (is_shim && is_of_own_user(pid) != Some(false)).then(|| told_of(pid, "cmdline"));
    socket_in(&line.flatten()?)
}

fn socket_in(line: &str) -> Option<PathBuf> {
    let mut words = line.split('\0');
    let program = words.next()?.rsplit('/').next()?;
    let is_shim = program == NAME && words.next()? == WORD;
    is_shim.then(|| words.next()).flatten().map(PathBuf::from)
}

/// Whether a socket is in a directory, even if the two paths differ.
fn is_in(socket: &Path, directory: &Path) -> bool {
    let Some(parent) = socket.parent() else { return false };
    let identity = |path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    parent == directory || identity(parent).is_some_and(|it| Some(it) == identity(directory))
}

fn session_of(socket: &Path) -> Option<SessionId> {
    socket.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

fn own() -> i32 {
    std::process::id().cast_signed()
}

/// Whether all user ids of a process are ours; `None` if it is gone.
fn is_of_own_user(pid: ProcessId) -> Option<bool> {
    let status = told_of(pid, "status")?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let ours = Uid::effective().to_string();
    Some(users.split_ascii_whitespace().all(|user| user == ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_shim_say_where_it_listens() {
        let socket = |line| socket_in(line).map(|path| path.display().to_string());
        assert_eq!(socket("termgate\0shim\0/r/h/x.sock\0").as_deref(), Some("/r/h/x.sock"));
        assert_eq!(socket("/usr/bin/termgate\0shim\0y\0").as_deref(), Some("y"));
        for line in ["termgate\0serve\0shim\0", "cat\0shim\0x\0", "termgate\0shim", ""] {
            assert_eq!(socket(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_directory_is_the_same_by_whatever_name() {
        let ground = tempfile::tempdir().unwrap();
        let (real, other) = (ground.path().join("real"), ground.path().join("other"));
        let link = ground.path().join("link");
        fs::create_dir(&real).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let socket = real.join("0123456789ab.sock");
        assert!(is_in(&socket, &real) && is_in(&socket, &link));
        assert!(!is_in(&socket, &other) && !is_in(&socket, ground.path()));
        fs::remove_dir(&real).unwrap();
        assert!(is_in(&socket, &real), "also when it is gone");
    }

    #[test]
    fn this_process_holds_nothing_and_is_of_its_own_user() {
        let own = ProcessId(own());
        assert_eq!(is_of_own_user(own), Some(true));
        assert_eq!(holds(own, Path::new("/r/h/0123456789ab.sock")), Some(false));
        assert_eq!(is_of_own_user(ProcessId(i32::MAX)), None);
    }
}
