//! Finds the process that holds a file lock.
//!
//! It asks the kernel, because any program of the user can write the file itself.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::shim::family::listens_inside;

const LOCKS: &str = "/proc/locks";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockOwner {
    /// A process outside all sessions.
    Outside(i32),
    /// Only programs in sessions.
    Inside,
    /// No process has the lock, or its process cannot be seen.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    pid: i32,
    exclusive: bool,
}

impl LockOwner {
    pub(super) fn of(file: &File) -> Self {
        let Ok(inode) = file.metadata().map(|found| found.ino()) else { return Self::Unknown };
        let table = fs::read_to_string(LOCKS).unwrap_or_default();
        let own = std::process::id().cast_signed();
        Self::among(taken(&table, inode), |pid| {
            // The children of a process keep its lock after its end. A daemon has none that inherit the lock.
            listens_inside(pid, own).ok().or_else(|| has_ended(pid).then_some(true))
        })
    }

    /// Ignores shared locks: a daemon takes an exclusive one.
    fn among(locks: impl Iterator<Item = Taken>, is_inside: impl Fn(i32) -> Option<bool>) -> Self {
        let mut owner = None;
        for Taken { pid, exclusive } in locks {
            owner = match is_inside(pid) {
                Some(false) if exclusive => return Self::Outside(pid),
                Some(true) if owner != Some(Self::Unknown) => Some(Self::Inside),
                Some(_) | None => Some(Self::Unknown),
            };
        }
        owner.unwrap_or(Self::Unknown)
    }
}

/// Lists the locks on a file by inode number. The device is ignored, because some file systems report another one
/// here. An equal inode on another device counts as well.
fn taken(table: &str, inode: u64) -> impl Iterator<Item = Taken> {
    table.lines().filter_map(move |line| {
        // `1: FLOCK  ADVISORY  WRITE 4711 00:2d:815 0 EOF`; a waiting lock has an arrow.
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, kind, pid, file, ..] = words.as_slice() else { return None };
        let number: u64 = file.rsplit(':').next()?.parse().ok()?;
        let pid = pid.parse().ok()?;
        (number == inode).then_some(Taken { pid, exclusive: *kind == "WRITE" })
    })
}

/// Whether the process exists neither in our PID namespace nor in the one of `/proc`.
fn has_ended(pid: i32) -> bool {
    let unknown = pid > 0 && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
    unknown && !Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes from 100 on live in sessions, and nobody knows where those from 200 on do.
    fn owner(pids: &[(i32, bool)]) -> LockOwner {
        let locks = pids.iter().map(|(pid, exclusive)| Taken { pid: *pid, exclusive: *exclusive });
        LockOwner::among(locks, |pid| (pid < 200).then_some(pid >= 100))
    }

    #[test]
    fn one_outside_has_it_whoever_else_does_and_one_who_is_not_known_is_taken_for_nobody() {
        assert_eq!(owner(&[(100, true), (7, true), (200, true)]), LockOwner::Outside(7));
        assert_eq!(owner(&[(100, false), (101, false)]), LockOwner::Inside);
        for unknown in [&[][..], &[(7, false)], &[(200, true)], &[(200, true), (100, true)]] {
            assert_eq!(owner(unknown), LockOwner::Unknown, "{unknown:?}");
        }
    }

    #[test]
    fn the_locks_of_a_file_are_found_in_the_table_of_all() {
        let table = "1: FLOCK  ADVISORY  WRITE 4711 fe:00:815 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:815 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 4713 fe:00:815 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 4714 00:2d:815 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 4715 fe:00:8150 0 EOF\n";
        let found: Vec<_> = taken(table, 815).map(|it| (it.pid, it.exclusive)).collect();
        assert_eq!(found, [(4711, true), (4714, false)]);
    }

    #[test]
    fn the_lock_of_this_process_is_of_one_outside() {
        let ground = tempfile::tempdir().unwrap();
        let file = File::create(ground.path().join("file")).unwrap();
        assert_eq!(LockOwner::of(&file), LockOwner::Unknown);
        file.lock().unwrap();
        assert_eq!(LockOwner::of(&file), LockOwner::Outside(std::process::id().cast_signed()));
    }
}
