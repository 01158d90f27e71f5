//! The ladder that ends a session: a request, a firmer one, then the end of every process left.
//!
//! It knows no terminal: who is to go is found in the process table, also those that left the
//! session, forked twice or closed everything. It waits for processes, never for the end of output,
//! which whoever is left behind could hold back for ever.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::{Instant, sleep, timeout_at};

use crate::core::ids::SessionId;
use crate::session::pty::ProcessId;
use crate::session::pty::environment::SESSION_MARK;
use crate::session::pty::processes::{self, Process, ProcessHandle, Table};
use crate::session::pty::reaper;
use crate::session::pty::signal::Signal;
use crate::session::pty::watch::watch;

/// How long the whole ladder takes at most.
pub const LADDER_MAX: Duration = Duration::from_secs(3);

/// The shortest time between two looks for processes that were forked meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// One rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The terminal went away: told to whoever uses it.
    Hangup,
    /// Everybody is asked to end.
    Terminate,
    /// Everybody ends.
    Kill,
}

impl Stage {
    /// All rungs, in order.
    pub const ALL: [Self; 3] = [Self::Hangup, Self::Terminate, Self::Kill];

    /// How long to wait for the processes before the next rung.
    pub fn grace(self) -> Duration {
        match self {
            Self::Hangup => Duration::from_millis(500),
            Self::Terminate => Duration::from_millis(1_000),
            Self::Kill => Duration::from_millis(1_500),
        }
    }

    /// What a process is sent, in order; a stopped one must go on to hear of it.
    fn signals(self) -> &'static [Signal] {
        match self {
            Self::Hangup => &[Signal::Hangup, Signal::Continue],
            // Shells at a prompt ignore the request to terminate, and bash may miss a hangup that
            // comes just before it waits for a key; a second one ends it.
            Self::Terminate => &[Signal::Terminate, Signal::Hangup, Signal::Continue],
            Self::Kill => &[Signal::Kill],
        }
    }

    /// Whether a process of the tree is sent anything.
    fn concerns(self, process: &Process, tree: &Tree) -> bool {
        match self {
            Self::Hangup => process.pid == tree.leader || Some(process.group) == tree.foreground,
            Self::Terminate | Self::Kill => true,
        }
    }
}

/// What is to end: the leader and everything that came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub session: SessionId,
    pub leader: ProcessId,
    /// When the leader started, in clock ticks since boot; nothing that came of it is older.
    pub started: u64,
    /// The group that uses the terminal.
    pub foreground: Option<ProcessId>,
    /// The process that holds the terminal for us and adopts whoever the program leaves behind.
    pub holder: Option<Holder>,
}

/// A process that is not to end, though all that descends from it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: ProcessId,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Tree {
    /// Whatever carries the mark of a session of which nothing else is known.
    pub fn of_mark(session: SessionId) -> Self {
        // No process has this number, nor a session of it.
        Self { session, leader: ProcessId(-1), started: 0, foreground: None, holder: None }
    }
}

/// Says why a session could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    #[error("processes that do not end: {}", list(left))]
    Survivors { left: Vec<ProcessId> },
    #[error("another daemon has the session, or its holder does not answer")]
    NotOurs,
    #[error("cannot look for the processes of the session: {0}")]
    Table(#[from] io::Error),
}

fn list(processes: &[ProcessId]) -> impl fmt::Display {
    let names: Vec<String> = processes.iter().map(ProcessId::to_string).collect();
    names.join(", ")
}

/// Ends every process of the tree and returns when none is left, or after [`LADDER_MAX`].
///
/// May be called again, also after it was dropped half-way.
///
/// # Errors
/// Who is left, or why nobody could be looked for.
pub async fn end_tree(tree: Tree) -> Result<(), KillError> {
    let mut over = Instant::now();
    for stage in Stage::ALL {
        over += stage.grace();
        if let Ok(ended) = timeout_at(over, climb(stage, tree)).await {
            return ended;
        }
    }
    let left = in_background(move || survivors(&tree)).await?;
    let left: Vec<ProcessId> = left.iter().map(|process| process.pid).collect();
    if left.is_empty() { Ok(()) } else { Err(KillError::Survivors { left }) }
}

/// Does what the stage asks for until nobody is left.
async fn climb(stage: Stage, tree: Tree) -> Result<(), KillError> {
    loop {
        let left = in_background(move || {
            let left = survivors(&tree)?;
            Ok(strike(stage, &tree, &left).then_some(left))
        });
        let Some(struck) = left.await? else { return Ok(()) };
        for process in struck {
            // Who cannot be opened is gone, or is seen again at the next look.
            if let Ok(handle) = process.open() {
                ended(handle).await?;
            }
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Sends the stage's signals; says whether there was anybody left.
fn strike(stage: Stage, tree: &Tree, left: &[Process]) -> bool {
    for process in left.iter().filter(|process| stage.concerns(process, tree)) {
        let Ok(handle) = process.open() else { continue };
        for signal in stage.signals() {
            // Who is gone needs no signal; who cannot be signalled is reported as a survivor.
            let _ = handle.signal(signal.number());
        }
    }
    !left.is_empty()
}

async fn ended(handle: ProcessHandle) -> io::Result<()> {
    watch(handle, Interest::READABLE)?.readable().await.map(drop)
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// The processes of the tree that still run; the zombies among our orphans are reaped.
fn survivors(tree: &Tree) -> io::Result<Vec<Process>> {
    let table = processes::table()?;
    reaper::sweep(&table);
    let entry = format!("{SESSION_MARK}={}", tree.session);
    let marked = |process: &Process| {
        // Another terminal's processes are its own affair and need not be read.
        !reaper::is_child(process.session) && process.has_variable(&entry)
    };
    Ok(members(&table, tree, marked))
}

/// Finds who belongs to a tree: the leader's session, whoever is `marked` or a child of the holder,
/// and all their descendants.
fn members(table: &Table, tree: &Tree, marked: impl Fn(&Process) -> bool) -> Vec<Process> {
    let own = ProcessId(i32::try_from(std::process::id()).unwrap_or(0));
    let young: Vec<&Process> = table
        .iter()
        .filter(|process| process.started >= tree.started && process.pid != own)
        .collect();
    // With the leader gone its number may lead somebody else's session by now.
    let usurped =
        young.iter().any(|process| process.pid == tree.leader && process.started != tree.started);
    let in_session = |process: &Process| process.session == tree.leader && !usurped;
    let is_holder = |process: &&Process| {
        tree.holder == Some(Holder { pid: process.pid, started: process.started })
    };
    let holder = table.iter().find(is_holder).map(|holder| holder.pid);
    let left_to_holder = |process: &Process| Some(process.parent) == holder;
    let mut found: HashSet<ProcessId> = young
        .iter()
        .filter(|process| in_session(process) || left_to_holder(process) || marked(process))
        .map(|process| process.pid)
        .collect();
    loop {
        let children = young.iter().filter(|process| found.contains(&process.parent));
        let more: Vec<ProcessId> =
            children.map(|process| process.pid).filter(|pid| !found.contains(pid)).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let running = |process: &&&Process| found.contains(&process.pid) && !process.ended;
    young.iter().filter(running).map(|process| **process).collect()
}

#[cfg(test)]
mod tests;
