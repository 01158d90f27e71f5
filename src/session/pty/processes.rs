//! Processes in `/proc`, and signals that cannot hit the wrong process.
//! The kernel reuses pids, so a pid together with its start time identifies a process.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;

use crate::core::frame::Frame;
use crate::core::moment::Moment;
use crate::session::pty::ProcessId;
use crate::shim::stat::{ProcessStat, read};

/// A process at the moment when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: ProcessId,
    pub parent: ProcessId,
    pub group: ProcessId,
    pub session: ProcessId,
    /// The foreground process group of its terminal, if it has one.
    pub foreground: Option<ProcessId>,
    /// Whether it is a zombie.
    pub ended: bool,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Process {
    /// Reads one process; `None` if the pid is free.
    pub fn find(pid: ProcessId) -> Option<Self> {
        let stat = ProcessStat::find(pid.0)?;
        Some(Self {
            pid,
            parent: ProcessId(stat.parent),
            group: ProcessId(stat.group),
            session: ProcessId(stat.session),
            foreground: Some(ProcessId(stat.foreground)).filter(|group| group.0 > 0),
            ended: matches!(stat.state, b'Z' | b'X' | b'x'),
            started: stat.started,
        })
    }

    /// Opens a pidfd for this very process.
    ///
    /// # Errors
    /// `NotFound` if it is gone, even if its pid was reused.
    pub fn open(&self) -> io::Result<ProcessHandle> {
        let handle = ProcessHandle::open(self.pid)?;
        // The pidfd refers to whatever process has the pid now. Only an equal start time proves the identity.
        let same = Self::find(self.pid).is_some_and(|found| found.started == self.started);
        if same { Ok(handle) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// How much of a file of a process is read.
pub const PAGE: usize = 4096;

/// The text of a `/proc/PID` file, up to a [`PAGE`]; `None` without such a process. Only command lines and
/// environments can be longer.
///
/// A single read shows one moment.
pub fn told_of(pid: ProcessId, what: &str) -> Option<String> {
    told_in(pid, what, &mut [0; PAGE]).map(Cow::into_owned)
}

/// As [`told_of`], in memory of the caller's.
pub fn told_in<'a>(pid: ProcessId, what: &str, page: &'a mut [u8; PAGE]) -> Option<Cow<'a, str>> {
    read(pid.0, what, page).ok().map(String::from_utf8_lossy)
}

/// Where the program in front works, as the kernel says; `None` if nothing is known to be in front, or it is another
/// user's.
pub fn directory_in_front(frame: &Frame) -> Option<String> {
    let group = frame.activity.value.foreground.as_ref()?.group;
    let directory = fs::read_link(format!("/proc/{group}/cwd")).ok()?;
    Some(directory.to_string_lossy().into_owned())
}

/// A moment as a process start time, in clock ticks since boot.
pub fn ticks(moment: Moment) -> u64 {
    /// The clock ticks per second on every supported machine.
    const A_SECOND: u128 = 100;
    let ticks = moment.since_boot().as_millis() * A_SECOND / 1_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Sends a signal to every process of a group. `session` is the pid of the terminal's session leader.
///
/// The group is searched only in this session, so that a reused group number cannot hit unrelated processes.
///
/// # Errors
/// `NotFound` if the group is empty.
pub fn signal_group(session: ProcessId, group: ProcessId, number: i32) -> io::Result<()> {
    let table = table()?;
    // The oldest first: a shell must not see its child end before it has the signal itself.
    let mut members = table
        .iter()
        .rev()
        .filter(|process| process.session == session && process.group == group)
        .filter(|process| !process.ended)
        .peekable();
    members.peek().ok_or(io::ErrorKind::NotFound)?;
    for process in members {
        match process.open().and_then(|handle| handle.signal(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether a signal or a tracer has stopped a process.
pub fn is_stopped(pid: ProcessId) -> bool {
    is_in(pid, b"Tt")
}

/// Whether a process runs or waits for a processor.
pub fn is_running(pid: ProcessId) -> bool {
    is_in(pid, b"R")
}

fn is_in(pid: ProcessId, states: &[u8]) -> bool {
    ProcessStat::find(pid.0).is_some_and(|stat| states.contains(&stat.state))
}

/// The resident memory of this process, in bytes; `None` if the system does not say.
pub fn own_memory() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Parses the line `VmRSS:   1234 kB`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A pidfd: readable once the process has ended.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens the process that has this pid now. Safe for a child that is not yet reaped.
    ///
    /// # Errors
    /// `NotFound` if no process has it.
    pub fn open(pid: ProcessId) -> io::Result<Self> {
        let fd = pidfd_open(pid).map_err(not_found)?;
        Ok(Self(fd))
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// `NotFound` if the process has ended.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        pidfd_send_signal(self.0.as_fd(), number).map_err(not_found)
    }
}

impl From<ProcessHandle> for OwnedFd {
    fn from(handle: ProcessHandle) -> Self {
        handle.0
    }
}

pub type Table = Vec<Process>;

/// Reads a table that is at least as new as the call.
///
/// Blocks for some milliseconds. Concurrent callers share one scan of `/proc`.
///
/// # Errors
/// Returns the error from `/proc`.
pub fn table() -> io::Result<Arc<Table>> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static NEWEST: Mutex<(u64, Option<Arc<Table>>)> = Mutex::new((0, None));

    let mine = ASKED.fetch_add(1, Ordering::SeqCst) + 1;
    let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let (answers, Some(table)) = &*newest
        && *answers >= mine
    {
        return Ok(Arc::clone(table));
    }
    let answers = ASKED.load(Ordering::SeqCst);
    let table = Arc::new(read_table()?);
    *newest = (answers, Some(Arc::clone(&table)));
    Ok(table)
}

/// Reads the table now.
///
/// # Errors
/// Returns the error from `/proc`.
pub fn read_table() -> io::Result<Table> {
    Ok(each()?.collect())
}

/// Reads the processes one by one, without those that end meanwhile. The newest numbers come first, since
/// a process that was just started may soon have ended.
///
/// # Errors
/// What the kernel said about `/proc`.
pub fn each() -> io::Result<impl Iterator<Item = Process>> {
    Ok(newest_first()?.into_iter().filter_map(Process::find))
}

/// The pids of all processes, the highest first.
///
/// # Errors
/// What the kernel said about `/proc`.
pub fn newest_first() -> io::Result<Vec<ProcessId>> {
    let mut pids: Vec<i32> = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    pids.sort_unstable_by(|one, other| other.cmp(one));
    Ok(pids.into_iter().map(ProcessId).collect())
}

fn not_found(errno: Errno) -> io::Error {
    if errno == Errno::ESRCH { io::ErrorKind::NotFound.into() } else { errno.into() }
}

#[allow(unsafe_code)]
fn pidfd_open(pid: ProcessId) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes two numbers and touches no memory of ours. The descriptor that it returns is new
    // and close-on-exec, and has no other owner.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.0, 0))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

#[allow(unsafe_code)]
fn pidfd_send_signal(handle: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    let fd = handle.as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call, and a null `siginfo` is allowed.
    let sent = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, fd, number, std::ptr::null::<()>(), 0)
    };
    Errno::result(sent).map(drop)
}

#[cfg(test)]
mod tests;
