//! Kills the processes of a session faster than they start others.
//!
//! A process that only starts the next one and ends is gone before all processes are read. So each is killed when
//! it is read, and further passes read only those that were started since, which takes less time than to start one.

use std::collections::HashSet;
use std::io;

use crate::session::pty::ProcessId;
use crate::session::pty::processes::{self, Process, ProcessHandle};
use crate::session::pty::signal::Signal;
use crate::shim::mark;

/// The most passes before the caller scans all processes.
const PASSES_MAX: usize = 32;

/// The process that keeps a session's terminal, adopts the orphans of its program and survives both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    pub pid: ProcessId,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Shim {
    pub fn lives(self) -> bool {
        Process::find(self.pid).is_some_and(|found| self.is(&found))
    }

    pub fn is(self, found: &Process) -> bool {
        found.started == self.started && !found.ended
    }
}

/// A session whose processes must end.
#[derive(Clone, Copy, Debug)]
pub struct Condemned {
    /// The number in the marks of its processes.
    pub session: u64,
    /// When its first process started, in clock ticks since boot. No other is older.
    pub started: u64,
    /// The process that is spared, whose children are not.
    pub shim: Option<Shim>,
}

impl Condemned {
    fn adopted(&self, process: &Process) -> bool {
        self.shim.is_some_and(|shim| shim.pid == process.parent) && process.started >= self.started
    }

    fn marked(&self, process: &Process, mark: u64) -> bool {
        self.session == mark && process.started >= self.started
    }
}

/// Whether a process belongs to one of these sessions. Its mark is read once, and only where its parent does not
/// answer.
fn is_condemned(process: &Process, condemned: &[Condemned]) -> bool {
    let is_own = process.pid.0 == std::process::id().cast_signed();
    let marked = |mark| condemned.iter().any(|one| one.marked(process, mark));
    !process.ended
        && !is_own
        && (condemned.iter().any(|one| one.adopted(process))
            || mark::session_of(process.pid.0).is_some_and(marked))
}

/// Kills the processes of these sessions that their mark or their parent gives away.
///
/// # Errors
/// Returns the error from `/proc`.
pub fn strike(condemned: &[Condemned]) -> io::Result<()> {
    let living = |one: &Condemned| Condemned { shim: one.shim.filter(|shim| shim.lives()), ..*one };
    let condemned: Vec<_> = condemned.iter().map(living).collect();
    if condemned.is_empty() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    for _ in 0..PASSES_MAX {
        let mut struck = false;
        let mut pids = processes::newest_first()?;
        let is_first = seen.is_empty();
        if is_first {
            // Parents before their children: a script must not see its program end and continue with its next line.
            pids.reverse();
        }
        for pid in pids {
            // A handle that is older than what is read of the process cannot hit another one.
            if seen.insert(pid)
                && let Ok(handle) = ProcessHandle::open(pid)
                && let Some(process) = Process::find(pid)
                && is_condemned(&process, &condemned)
            {
                struck = true;
                // It may have ended by now.
                let _ = handle.signal(Signal::Kill.number());
            }
        }
        // The first pass takes so long that a chain can have left every process that it reads.
        if !struck && !is_first {
            return Ok(());
        }
    }
    Ok(())
}
