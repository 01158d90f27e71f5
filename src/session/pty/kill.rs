//! The ladder that ends a session: a request, a firmer one, then the end of every process left.
//!
//! It knows no terminal: who is to go is found in the process table, also those that left the
//! session, forked twice or closed everything. It waits for processes, never for the end of output,
//! which whoever is left behind could hold back for ever.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Uid;
use tokio::io::Interest;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::core::ids::SessionId;
use crate::session::pty::ProcessId;
use crate::session::pty::census::{self, Census};
use crate::session::pty::processes::{Process, ProcessHandle, told_of};
use crate::session::pty::signal::Signal;
use crate::session::pty::watch::watch;

/// How long the whole ladder takes at most.
pub const LADDER_MAX: Duration = Duration::from_secs(3);

/// How long the look may take that tells who is left after it.
const LAST_LOOK_MAX: Duration = Duration::from_millis(500);

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
    pub shim: Option<Shim>,
}

/// A process that is not to end, though all that descends from it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    pub pid: ProcessId,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Tree {
    /// Whatever carries the mark of a session of which nothing else is known.
    pub fn of_mark(session: SessionId) -> Self {
        // No process has this number, nor a session of it: its shim has died as well.
        const NOBODY: ProcessId = ProcessId(-1);
        let shim = Some(Shim { pid: NOBODY, started: 0 });
        Self { session, leader: NOBODY, started: 0, foreground: None, shim }
    }
}

/// Says why a session could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    #[error("processes that do not end: {}", list(left))]
    Survivors { left: Vec<Survivor> },
    #[error("another daemon may have the session")]
    NotOurs,
    #[error("cannot look for the processes of the session: {0}")]
    Table(#[from] io::Error),
}

fn list(processes: &[Survivor]) -> impl fmt::Display {
    let names: Vec<String> = processes.iter().map(Survivor::to_string).collect();
    names.join(", ")
}

/// A process that did not end when it was told to, and what is known of why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub pid: ProcessId,
    /// What it calls itself.
    pub name: String,
    /// The user it belongs to, if that is another one, whom we may not end.
    pub user: Option<u32>,
    /// Whether it waits for something in the kernel and hears no signal meanwhile.
    pub stuck: bool,
}

impl Survivor {
    fn of(process: &Process) -> Option<Self> {
        Self::parse(process.pid, &told_of(process.pid, "status")?, Uid::effective().as_raw())
    }

    /// Reads the `status` of a process that has not ended.
    fn parse(pid: ProcessId, status: &str, own: u32) -> Option<Self> {
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let name = line("Name:\t")?.chars().filter(|sign| !sign.is_control()).collect();
        let user = line("Uid:\t")?.split_ascii_whitespace().next()?.parse().ok()?;
        let state = line("State:\t")?;
        let runs = !state.starts_with(['Z', 'X']);
        let user = Some(user).filter(|user| *user != own);
        runs.then(|| Self { pid, name, user, stuck: state.starts_with('D') })
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.pid, self.name)?;
        if let Some(user) = self.user {
            write!(f, ", of user {user}")?;
        }
        if self.stuck {
            f.write_str(", waiting in the kernel")?;
        }
        f.write_str(")")
    }
}

/// Ends every process of the tree and returns when none is left, or after [`LADDER_MAX`] and a last look.
///
/// May be called again, also after it was dropped half-way.
///
/// # Errors
/// Who is left, or why nobody could be looked for.
pub async fn end_tree(tree: Tree) -> Result<(), KillError> {
    end_tree_by(tree, census::take).await
}

/// The same by what `look` finds.
async fn end_tree_by<F>(tree: Tree, look: impl Fn() -> F) -> Result<(), KillError>
where
    F: Future<Output = io::Result<Arc<Census>>>,
{
    let mut over = Instant::now();
    for stage in Stage::ALL {
        over += stage.grace();
        if timeout_at(over, climb(stage, tree, &look)).await.is_ok() {
            return Ok(());
        }
    }
    let last = timeout(LAST_LOOK_MAX, look()).await;
    let census = last.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let left: Vec<_> = members(&census, &tree).iter().filter_map(Survivor::of).collect();
    if left.is_empty() { Ok(()) } else { Err(KillError::Survivors { left }) }
}

/// Does what the stage asks for until nobody is left. When nobody can be looked for or waited for, it looks again.
async fn climb<F>(stage: Stage, tree: Tree, look: &impl Fn() -> F)
where
    F: Future<Output = io::Result<Arc<Census>>>,
{
    loop {
        if let Ok(census) = look().await {
            let left = members(&census, &tree);
            if left.is_empty() {
                return;
            }
            let striking = spawn_blocking(move || {
                strike(stage, &tree, &left);
                left
            });
            for process in striking.await.unwrap_or_default() {
                // Who cannot be opened is gone, or is seen again at the next look.
                if let Ok(handle) = process.open()
                    && ended(handle).await.is_err()
                {
                    break;
                }
            }
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Sends the stage's signals.
fn strike(stage: Stage, tree: &Tree, left: &[Process]) {
    for process in left.iter().filter(|process| stage.concerns(process, tree)) {
        let Ok(handle) = process.open() else { continue };
        for signal in stage.signals() {
            // Who is gone needs no signal; who cannot be signalled is reported as a survivor.
            let _ = handle.signal(signal.number());
        }
    }
}

async fn ended(handle: ProcessHandle) -> io::Result<()> {
    watch(handle, Interest::READABLE)?.readable().await.map(drop)
}

/// Finds who belongs to a tree and still runs: the leader's session, whoever carries the mark or is a child
/// of the shim, and all their descendants; once the shim has died, also those that came to us.
fn members(census: &Census, tree: &Tree) -> Vec<Process> {
    let own = ProcessId(i32::try_from(std::process::id()).unwrap_or(0));
    let is_young = |process: &&Process| process.started >= tree.started && process.pid != own;
    // With the leader gone its number may lead somebody else's session by now.
    let usurped = census.find(tree.leader).is_some_and(|leader| leader.started > tree.started);
    let in_session = census.in_session(tree.leader).filter(|_| !usurped);
    let is_same = |shim: &Shim| {
        census.find(shim.pid).is_some_and(|found| found.started == shim.started && !found.ended)
    };
    let shim = tree.shim.filter(is_same);
    // Whoever changed its mark and had its shim killed is known by whom it came to.
    let strays = census.strays().filter(|_| tree.shim.is_some() && shim.is_none());
    let left_to_shim = shim.into_iter().flat_map(|shim| census.children(shim.pid));
    let marked = census.marked(tree.session.number());
    let mut next: Vec<&Process> =
        in_session.chain(left_to_shim).chain(marked).chain(strays).filter(is_young).collect();
    let mut found = BTreeMap::new();
    while let Some(process) = next.pop() {
        if found.insert(process.pid, process).is_none() {
            next.extend(census.children(process.pid).filter(is_young));
        }
    }
    found.into_values().filter(|process| !process.ended).copied().collect()
}

#[cfg(test)]
mod tests;
