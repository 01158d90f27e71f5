//! The children of a shim: how the leader ended, and how the shim ends all of them.
//! The shim is a subreaper and adopts orphaned descendants.
//! The kernel reuses a child's pid only after the shim has reaped it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::shim::readiness::{self, READABLE};
use crate::shim::stat::ProcessStat;
use crate::shim::wire::ProgramEnd;
use crate::shim::wire::from_shim::ProcessIdentity;

/// The longest time to wait until all children have ended.
const END_MAX: Duration = Duration::from_secs(2);
/// The shortest time between two scans for new children.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The children of this process. The leader is the process that the session started.
#[derive(Debug)]
pub struct Children {
    ends: SignalFd,
    leader: ProcessIdentity,
    leader_ended: Option<ProgramEnd>,
}

impl ProcessIdentity {
    /// The process that has this pid now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let started = ProcessStat::find(pid).ok_or(io::ErrorKind::NotFound)?.started;
        Ok(Self { pid, started })
    }
}

/// A descriptor that is readable when a child has ended.
#[derive(Debug)]
pub struct ChildEnds(SignalFd);

impl ChildEnds {
    /// Starts to watch. Call this before the first child starts.
    pub fn watch() -> io::Result<Self> {
        let mut ends = SigSet::empty();
        ends.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ends), None)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&ends, flags)?))
    }
}

impl Children {
    /// The children of this process. `leader` has just started.
    pub fn new(ChildEnds(ends): ChildEnds, leader: ProcessIdentity) -> Self {
        Self { ends, leader, leader_ended: None }
    }

    /// Readable when a child has ended.
    pub fn ends(&self) -> BorrowedFd<'_> {
        self.ends.as_fd()
    }

    pub fn leader(&self) -> ProcessIdentity {
        self.leader
    }

    /// How the leader ended; `None` while it runs.
    pub fn leader_ended(&self) -> Option<ProgramEnd> {
        self.leader_ended
    }

    /// Notes how the leader ended, which another process has reaped.
    pub(super) fn on_leader_ended(&mut self, ended: ProgramEnd) {
        self.leader_ended.get_or_insert(ended);
    }

    /// Reaps all children that have ended. Returns whether any child is left.
    pub fn reap(&mut self) -> bool {
        // One signal can stand for several children, so the loop below asks until no ended child is left.
        while let Ok(Some(_)) = self.ends.read_signal() {}
        loop {
            match wait(libc::WNOHANG) {
                Ok(Some((pid, ended))) if pid == self.leader.pid => {
                    // Once reaped, the pid can belong to another child.
                    self.leader_ended.get_or_insert(ended);
                }
                Ok(Some(_)) | Err(Errno::EINTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Kills all children and their descendants, which this process adopts one by one.
    pub fn end_all(&mut self) {
        let until = readiness::now() + END_MAX;
        while self.reap() && readiness::now() < until {
            for child in children() {
                // The pid stays valid until the child is reaped.
                let _ = kill(child, Signal::SIGKILL);
            }
            let _ = readiness::wait([(Some(self.ends.as_fd()), READABLE)], Some(LOOK_AGAIN));
        }
    }
}

fn children() -> Vec<Pid> {
    let own = std::process::id().cast_signed();
    let number = |name: &str| name.parse::<i32>().ok();
    // This process has one thread. A kernel without this file needs a scan of all processes.
    let pids: Vec<i32> = match fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(number).collect(),
        Err(_) => {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = processes.filter_map(|entry| number(entry.file_name().to_str()?));
            let is_ours =
                |pid: &i32| ProcessStat::find(*pid).is_some_and(|found| found.parent == own);
            pids.filter(is_ours).collect()
        }
    };
    pids.into_iter().map(Pid::from_raw).collect()
}

/// Kills all children and their descendants of a process that has not begun to watch for their ends.
pub(super) fn end_children() {
    loop {
        for child in children() {
            // The pid stays valid until the child is reaped.
            let _ = kill(child, Signal::SIGKILL);
        }
        if wait_for_child().is_none() {
            return;
        }
    }
}

/// Waits for the end of a child; `None` without any.
pub(super) fn wait_for_child() -> Option<(i32, ProgramEnd)> {
    loop {
        match wait(0) {
            Ok(Some(ended)) => return Some(ended),
            Ok(None) | Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
}

/// Reaps one child that has ended; `None` while all children run.
#[allow(unsafe_code)]
fn wait(flags: i32) -> Result<Option<(i32, ProgramEnd)>, Errno> {
    let mut status = 0;
    // SAFETY: the status outlives the call that fills it.
    let pid = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, flags) })?;
    let ended = if libc::WIFEXITED(status) {
        ProgramEnd::Code(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        ProgramEnd::Signal(libc::WTERMSIG(status))
    } else {
        ProgramEnd::Unknown
    };
    Ok((pid > 0).then_some((pid, ended)))
}
