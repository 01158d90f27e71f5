//! The processes of the machine as `/proc` shows them, and signals that cannot hit the wrong one.
//!
//! It knows nothing of sessions. A number alone never names a process here: numbers are used
//! again, so a process is its number together with when it started.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;

use crate::core::moment::Moment;
use crate::session::pty::ProcessId;
use crate::shim::stat::{ProcessStat, read};

/// One process, as it was when the table was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: ProcessId,
    pub parent: ProcessId,
    pub group: ProcessId,
    pub session: ProcessId,
    /// The group that uses its terminal, if it has one.
    pub foreground: Option<ProcessId>,
    /// Whether it has ended and only waits for its parent to ask how.
    pub ended: bool,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Process {
    /// Looks one process up; none when there is no such number.
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

    /// Opens a handle that stays with this very process.
    ///
    /// # Errors
    /// `NotFound` when it is gone, also when its number is another's by now.
    pub fn open(&self) -> io::Result<ProcessHandle> {
        let handle = ProcessHandle::open(self.pid)?;
        // The handle pins whoever has the number now; only the same start makes it the same one.
        let same = Self::find(self.pid).is_some_and(|found| found.started == self.started);
        if same { Ok(handle) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// The text of a file that the kernel has about a process; all of it that one page holds, which is more
/// than any but a command line and an environment has. None when there is no such process.
///
/// One read takes it as it is at one moment, where more would ask the kernel again.
pub fn told_of(pid: ProcessId, what: &str) -> Option<String> {
    let mut page = [0; 4096];
    Some(String::from_utf8_lossy(read(pid.0, what, &mut page).ok()?).into_owned())
}

/// How the kernel says when a process starts at this moment, in clock ticks since boot.
pub fn ticks(moment: Moment) -> u64 {
    /// So many make a second, on every machine this runs on.
    const A_SECOND: u128 = 100;
    let ticks = moment.since_boot().as_millis() * A_SECOND / 1_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Sends a signal to every process of a group that belongs to a terminal's session, which its
/// leader gives the number.
///
/// The group's number is looked up among the processes of this terminal, so that it cannot mean a
/// stranger's group that has the same number by now.
///
/// # Errors
/// `NotFound` when nobody is in the group.
pub fn signal_group(session: ProcessId, group: ProcessId, number: i32) -> io::Result<()> {
    let table = table()?;
    let mut members = table
        .iter()
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

/// Whether a process stands still by a signal, or by whoever traces it.
pub fn is_stopped(pid: ProcessId) -> bool {
    is_in(pid, b"Tt")
}

/// Whether a process runs, or does as soon as there is a processor for it.
pub fn is_running(pid: ProcessId) -> bool {
    is_in(pid, b"R")
}

fn is_in(pid: ProcessId, states: &[u8]) -> bool {
    ProcessStat::find(pid.0).is_some_and(|stat| states.contains(&stat.state))
}

/// The memory that this process holds, in bytes; none where the system does not say.
pub fn own_memory() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the line `VmRSS:   1234 kB` among others.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A descriptor of one process: readable once it has ended, and never another one's.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens whoever has this number now; for a child that was not yet waited for.
    ///
    /// # Errors
    /// `NotFound` when nobody has it.
    pub fn open(pid: ProcessId) -> io::Result<Self> {
        let fd = pidfd_open(pid).map_err(not_found)?;
        Ok(Self(fd))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// `NotFound` when the process has ended.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        pidfd_send_signal(self.0.as_fd(), number).map_err(not_found)
    }
}

impl From<ProcessHandle> for OwnedFd {
    fn from(handle: ProcessHandle) -> Self {
        handle.0
    }
}

/// All processes at one time.
pub type Table = Vec<Process>;

/// Reads a table that is at least as new as the call.
///
/// Blocks for some milliseconds. Calls at the same time share one reading, so that ending hundreds
/// of sessions at once does not read `/proc` hundreds of times.
///
/// # Errors
/// What the kernel said about `/proc`.
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
/// What the kernel said about `/proc`.
pub fn read_table() -> io::Result<Table> {
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        // Who ends while the table is read is left out.
        table.extend(pid.and_then(|pid| Process::find(ProcessId(pid))));
    }
    Ok(table)
}

fn not_found(errno: Errno) -> io::Error {
    if errno == Errno::ESRCH { io::ErrorKind::NotFound.into() } else { errno.into() }
}

#[allow(unsafe_code)]
fn pidfd_open(pid: ProcessId) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes two numbers and touches no memory of ours; a descriptor it returns is
    // new, close-on-exec and nobody else's.
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
