//! Child processes and their exits: children of the daemon, and orphans that it adopted.
//! Each child has a pidfd, so nothing depends on a signal handler. Orphans would stay zombies if the daemon
//! did not reap them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::getsid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

use crate::core::frame::Exit;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::{self, Process, ProcessHandle, Table};
use crate::session::pty::watch::watch;

/// The shortest time between two scans for orphans.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// Held shared from a fork until the child is in [`CHILDREN`], and exclusively while an orphan is reaped. So
/// a child that ends at once is not mistaken for an orphan.
static SPAWNING: RwLock<()> = RwLock::new(());

/// Our children that are not yet reaped.
static CHILDREN: Mutex<BTreeSet<ProcessId>> = Mutex::new(BTreeSet::new());

fn children() -> MutexGuard<'static, BTreeSet<ProcessId>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn is_child(pid: ProcessId) -> bool {
    children().contains(&pid)
}

#[derive(Debug)]
pub struct Child {
    pid: ProcessId,
    started: u64,
    ended: AsyncFd<OwnedFd>,
    exit: Mutex<Option<Exit>>,
}

impl Child {
    /// Starts a process with `spawn`, which returns its pid, and watches it.
    ///
    /// Must be called inside a runtime. A child that cannot be watched is killed at once.
    pub fn start(spawn: impl FnOnce() -> io::Result<u32>) -> io::Result<Self> {
        let _spawning = SPAWNING.read().unwrap_or_else(PoisonError::into_inner);
        let pid = spawn()?;
        let pid = ProcessId(i32::try_from(pid).map_err(io::Error::other)?);
        match Self::watched(pid) {
            Ok(child) => {
                children().insert(pid);
                Ok(child)
            }
            Err(error) => {
                put_down(pid);
                Err(error)
            }
        }
    }

    fn watched(pid: ProcessId) -> io::Result<Self> {
        let ended = watch(ProcessHandle::open(pid)?, Interest::READABLE)?;
        let process = Process::find(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, started: process.started, ended, exit: Mutex::new(None) })
    }

    /// Its pid, which the kernel may reuse once the child is reaped.
    pub fn pid(&self) -> ProcessId {
        self.pid
    }

    /// When it started, in clock ticks since boot.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Waits for its end, and does not reap it.
    pub async fn has_ended(&self) {
        // Without a runtime there is nothing to wait for.
        let _ = self.ended.readable().await;
    }

    /// Waits for its end. Every call returns the same answer.
    pub async fn exited(&self) -> Exit {
        loop {
            if let Some(exit) = self.known_exit() {
                return exit;
            }
            match self.ended.readable().await {
                Ok(mut ready) if self.ask_exit().is_none() => ready.clear_ready(),
                Ok(_) => {}
                Err(_) => return Exit::Unknown,
            }
        }
    }

    /// How it ended, once [`Child::exited`] has noticed.
    pub fn known_exit(&self) -> Option<Exit> {
        *self.exit()
    }

    fn exit(&self) -> MutexGuard<'_, Option<Exit>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_exit(&self) -> Option<Exit> {
        let mut exit = self.exit();
        if exit.is_none() {
            *exit = wait_now(self.pid);
            if exit.is_some() {
                children().remove(&self.pid);
            }
        }
        *exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A child that still runs becomes an orphan, which is reaped when it ends.
        if self.ask_exit().is_none() {
            children().remove(&self.pid);
        }
    }
}

/// Makes this process adopt all orphans among its descendants.
pub fn become_subreaper() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// Reaps orphans: the present ones, then again whenever a child ends. Runs until dropped.
pub async fn reap_orphans() -> io::Result<()> {
    let mut child_ended = signal(SignalKind::child())?;
    loop {
        let swept = tokio::task::spawn_blocking(|| processes::table().map(|table| sweep(&table)));
        // After a failed scan, the next end of a child starts another.
        let _ = swept.await;
        tokio::time::sleep(SWEEP_INTERVAL).await;
        if child_ended.recv().await.is_none() {
            return Ok(());
        }
    }
}

/// Whether a process may be an orphan that this process adopted.
///
/// An orphan of a terminal is never in the kernel session of this process. Children of other parts of this
/// process are, and those parts reap them.
pub fn is_left_to_us(process: &Process) -> bool {
    process.parent.0 == std::process::id().cast_signed()
        && getsid(None).map(|session| ProcessId(session.as_raw())) != Ok(process.session)
}

pub fn sweep(table: &Table) {
    let is_orphan = |process: &&Process| process.ended && is_left_to_us(process);
    for orphan in table.iter().filter(is_orphan) {
        let _alone = SPAWNING.write().unwrap_or_else(PoisonError::into_inner);
        if !is_child(orphan.pid) {
            wait_now(orphan.pid);
        }
    }
}

fn put_down(pid: ProcessId) {
    let pid = nix::unistd::Pid::from_raw(pid.0);
    // The child is not yet reaped, so the pid is still its own.
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    let _ = nix::sys::wait::waitpid(pid, None);
}

/// Reaps a child without waiting; `None` while it runs.
#[allow(unsafe_code)]
fn wait_now(pid: ProcessId) -> Option<Exit> {
    let flags = libc::WEXITED | libc::WNOHANG;
    // SAFETY: `siginfo` is plain data for which zero is valid, and it outlives the call that fills it. Its
    // fields are those of a child that ended, because the flags ask for nothing else.
    let (asked, code, ended, status) = unsafe {
        let mut siginfo: libc::siginfo_t = std::mem::zeroed();
        let asked = libc::waitid(libc::P_PID, pid.0.cast_unsigned(), &raw mut siginfo, flags);
        (Errno::result(asked), siginfo.si_code, siginfo.si_pid(), siginfo.si_status())
    };
    match asked {
        Ok(_) if ended == 0 => None,
        Ok(_) if code == libc::CLD_EXITED => Some(Exit::Code(status)),
        Ok(_) => Some(Exit::Signal(status)),
        Err(Errno::EINTR) => None,
        Err(_) => Some(Exit::Unknown),
    }
}

#[cfg(test)]
mod tests;
