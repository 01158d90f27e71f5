//! The processes that came of the program: how the first one ended, and the end of all others.
//!
//! It knows no terminal. The shim adopts whoever is left behind, so all of them are its children
//! sooner or later, and a child's number is nobody else's until it was asked how it ended.

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
use crate::shim::wire::Ended;
use crate::shim::wire::from_shim::Process;

/// How long the end of all children is waited for at most.
const END_MAX: Duration = Duration::from_secs(2);
/// The shortest time between two looks for children that came meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The leader and all other children.
#[derive(Debug)]
pub struct Children {
    ends: SignalFd,
    leader: Process,
    leader_ended: Option<Ended>,
}

impl Process {
    /// The process that has this number now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let started = ProcessStat::find(pid).ok_or(io::ErrorKind::NotFound)?.started;
        Ok(Self { pid, started })
    }
}

/// What tells that a child ended.
#[derive(Debug)]
pub struct Ends(SignalFd);

impl Ends {
    /// Begins to be told, before there is any child.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn watch() -> io::Result<Self> {
        let mut ends = SigSet::empty();
        ends.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ends), None)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&ends, flags)?))
    }
}

impl Children {
    /// The children of this process, of which the leader was just started.
    ///
    /// # Errors
    /// When the leader is no child of this process.
    pub fn new(Ends(ends): Ends, leader: u32) -> io::Result<Self> {
        Ok(Self { ends, leader: Process::of(leader)?, leader_ended: None })
    }

    /// Readable when a child has ended.
    pub fn ends(&self) -> BorrowedFd<'_> {
        self.ends.as_fd()
    }

    /// The process the session was started with.
    pub fn leader(&self) -> Process {
        self.leader
    }

    /// How it ended, if it has.
    pub fn leader_ended(&self) -> Option<Ended> {
        self.leader_ended
    }

    /// Asks all children that have ended how they did; says whether any are left.
    pub fn reap(&mut self) -> bool {
        // The signal says that there may be some, and not how many.
        while let Ok(Some(_)) = self.ends.read_signal() {}
        loop {
            match wait_now() {
                Ok(Some((pid, ended))) if pid == self.leader.pid => {
                    // The number may come again once it was asked.
                    self.leader_ended.get_or_insert(ended);
                }
                Ok(Some(_)) | Err(Errno::EINTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends all children, and theirs, which become ours with that.
    pub fn end_all(&mut self) {
        let until = readiness::now() + END_MAX;
        while self.reap() && readiness::now() < until {
            for child in children() {
                // A child that was not yet asked keeps its number.
                let _ = kill(child, Signal::SIGKILL);
            }
            let _ = readiness::wait([(Some(self.ends.as_fd()), READABLE)], Some(LOOK_AGAIN));
        }
    }
}

/// The children of this process, the ended ones too.
fn children() -> Vec<Pid> {
    let own = std::process::id().cast_signed();
    let number = |name: &str| name.parse::<i32>().ok();
    // There is one thread. A kernel without this list has all processes looked at.
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

/// Asks any child that has ended how it did, without waiting; none while all run.
#[allow(unsafe_code)]
fn wait_now() -> Result<Option<(i32, Ended)>, Errno> {
    let mut status = 0;
    // SAFETY: the status outlives the call that fills it.
    let pid = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) })?;
    let ended = if libc::WIFEXITED(status) {
        Ended::Code(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Unknown
    };
    Ok((pid > 0).then_some((pid, ended)))
}
