//! Ends all processes of a session in three stages: hang-up, termination, kill.
//! It finds them in the process table, including processes that left the session or forked twice.
//! It waits for processes, never for the end of output, which a background process could delay forever.

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
use crate::session::pty::condemned::{Condemned, Shim};
use crate::session::pty::processes::{Process, ProcessHandle, told_of};
use crate::session::pty::signal::Signal;
use crate::session::pty::watch::watch;

/// How many looks in a row must find no process where one had ended by itself, and how many are the last ones.
const LAST_LOOKS: usize = 20;

/// How long the whole ladder takes at most.
pub const LADDER_MAX: Duration = Duration::from_secs(3);

/// The longest time for the final scans for survivors.
const LAST_LOOKS_MAX: Duration = Duration::from_millis(1_000);

/// How long to wait for killed processes before the next scan, which kills what they started.
const KILLED_MAX: Duration = Duration::from_millis(50);

/// The shortest time between two scans for new processes.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Tells the leader and the foreground group that the terminal is gone.
    Hangup,
    /// Asks every process to end.
    Terminate,
    /// Kills every process.
    Kill,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 3] = [Self::Hangup, Self::Terminate, Self::Kill];

    /// How long to wait for the processes before the next stage.
    pub fn grace(self) -> Duration {
        match self {
            Self::Hangup => Duration::from_millis(500),
            Self::Terminate => Duration::from_millis(1_000),
            Self::Kill => Duration::from_millis(1_500),
        }
    }

    /// The signals of this stage, in order. A stopped process must continue to receive them.
    fn signals(self) -> &'static [Signal] {
        match self {
            Self::Hangup => &[Signal::Hangup, Signal::Continue],
            // Shells at a prompt ignore SIGTERM. Bash may miss a SIGHUP just before it waits for a key; a
            // second one ends it.
            Self::Terminate => &[Signal::Terminate, Signal::Hangup, Signal::Continue],
            Self::Kill => &[Signal::Kill],
        }
    }

    /// Whether this stage signals a process.
    fn concerns(self, process: &Process, tree: &Tree) -> bool {
        match self {
            Self::Hangup => process.pid == tree.leader || Some(process.group) == tree.foreground,
            Self::Terminate | Self::Kill => true,
        }
    }
}

/// The processes to end: the leader and all its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub session: SessionId,
    pub leader: ProcessId,
    /// When the leader started, in clock ticks since boot. No descendant is older.
    pub started: u64,
    /// The foreground process group of the terminal.
    pub foreground: Option<ProcessId>,
    /// The shim, which adopts orphans of the program and must survive it.
    pub shim: Option<Shim>,
}

impl Tree {
    /// All processes with the mark of a session of which nothing else is known.
    pub fn of_mark(session: SessionId) -> Self {
        // No process and no session has this number. The shim has died as well.
        const NOBODY: ProcessId = ProcessId(-1);
        let shim = Some(Shim { pid: NOBODY, started: 0 });
        Self { session, leader: NOBODY, started: 0, foreground: None, shim }
    }

    fn condemned(&self) -> Condemned {
        let Self { session, started, shim, .. } = *self;
        Condemned { session: session.number(), started, shim }
    }
}

/// Why a session could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    #[error("processes that do not end: {}", list(left))]
    Survivors { left: Vec<Survivor> },
    #[error("its processes start others faster than they can be ended")]
    Fleeing,
    #[error("another daemon may have the session")]
    NotOurs,
    #[error("cannot look for the processes of the session: {0}")]
    Table(#[from] io::Error),
}

fn list(processes: &[Survivor]) -> impl fmt::Display {
    let names: Vec<String> = processes.iter().map(Survivor::to_string).collect();
    names.join(", ")
}

/// A process that survived all stages, and the known reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub pid: ProcessId,
    /// Its name in `/proc/PID/status`.
    pub name: String,
    /// Its user, if that is another one, whose processes the daemon may not signal.
    pub user: Option<u32>,
    /// Whether it is in uninterruptible sleep, where no signal reaches it.
    pub stuck: bool,
}

impl Survivor {
    fn of(process: &Process) -> Option<Self> {
        Self::parse(process.pid, &told_of(process.pid, "status")?, Uid::effective().as_raw())
    }

    /// Parses `/proc/PID/status`; `None` for a process that has ended.
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

/// Ends every process of the tree. Returns when none is left, or after [`LADDER_MAX`] and a final scan.
///
/// May be called again, even after a previous call was dropped halfway.
///
/// # Errors
/// Returns the survivors, or why the processes could not be scanned.
pub async fn end_tree(tree: Tree) -> Result<(), KillError> {
    end_tree_by(tree, census::take).await
}

/// [`end_tree`] with a given scan function, which kills what it is given while it reads.
async fn end_tree_by<F>(tree: Tree, look: impl Fn(Option<Condemned>) -> F) -> Result<(), KillError>
where
    F: Future<Output = io::Result<Arc<Census>>>,
{
    let mut chase = Chase { tree, flees: false, empty: 0 };
    let mut over = Instant::now();
    for stage in Stage::ALL {
        over += stage.grace();
        if timeout_at(over, chase.climb(stage, &look)).await.is_ok() {
            return Ok(());
        }
    }
    over += LAST_LOOKS_MAX;
    for _ in 0..LAST_LOOKS {
        let last = timeout_at(over, chase.look(Stage::Kill, &look)).await;
        let seen = last.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let left: Vec<_> = seen.iter().filter_map(Survivor::of).collect();
        if !left.is_empty() {
            return Err(KillError::Survivors { left });
        }
        if chase.is_done() {
            return Ok(());
        }
    }
    Err(KillError::Fleeing)
}

/// A tree whose processes are being ended.
struct Chase {
    tree: Tree,
    /// Processes of the tree end by themselves, each of which may have started another one that no look saw.
    flees: bool,
    /// How many looks in a row have found no process.
    empty: usize,
}

impl Chase {
    /// Whether enough looks in a row have found no process.
    fn is_done(&self) -> bool {
        self.empty >= if self.flees { LAST_LOOKS } else { 1 }
    }

    /// The processes that are left, by a census during which the shim did not die: the children of a shim that
    /// dies while the processes are read appear under neither parent.
    async fn look<F>(
        &mut self,
        stage: Stage,
        look: &impl Fn(Option<Condemned>) -> F,
    ) -> io::Result<Vec<Process>>
    where
        F: Future<Output = io::Result<Arc<Census>>>,
    {
        let condemned = (stage == Stage::Kill).then(|| self.tree.condemned());
        loop {
            let census = look(condemned).await?;
            let left = members(&census, &self.tree);
            self.flees |= strays(&census, &self.tree).any(|stray| stray.ended);
            let dies = |shim: Shim| lives_in(shim, &census) && !shim.lives();
            if !left.is_empty() || !self.tree.shim.is_some_and(dies) {
                self.empty = if left.is_empty() { self.empty + 1 } else { 0 };
                return Ok(left);
            }
        }
    }

    /// Does what the stage asks for until no process is left. If a look or a wait fails, it looks again.
    async fn climb<F>(&mut self, stage: Stage, look: &impl Fn(Option<Condemned>) -> F)
    where
        F: Future<Output = io::Result<Arc<Census>>>,
    {
        let tree = self.tree;
        while !self.is_done() {
            match self.look(stage, look).await {
                Ok(left) if left.is_empty() => {}
                Ok(left) => {
                    let striking = spawn_blocking(move || (strike(stage, &tree, &left), left));
                    let (all_there, left) = striking.await.unwrap_or((true, Vec::new()));
                    // In the last stage, the scan itself has ended some of them.
                    self.flees |= !all_there && stage != Stage::Kill;
                    match stage {
                        Stage::Hangup | Stage::Terminate => all_ended(&left).await,
                        Stage::Kill => drop(timeout(KILLED_MAX, all_ended(&left)).await),
                    }
                }
                Err(_) => {}
            }
            if !self.is_done() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Sends the stage's signals. `false` if a process had ended by then.
fn strike(stage: Stage, tree: &Tree, left: &[Process]) -> bool {
    let mut all_there = true;
    for process in left.iter().filter(|process| stage.concerns(process, tree)) {
        let Ok(handle) = process.open() else {
            all_there = false;
            continue;
        };
        for signal in stage.signals() {
            // A process that ended needs no signal; one that takes none is reported as a survivor.
            let _ = handle.signal(signal.number());
        }
    }
    all_there
}

/// Waits for the end of processes. One that cannot be opened is gone, or is seen again at the next look.
async fn all_ended(processes: &[Process]) {
    for process in processes {
        if let Ok(handle) = process.open()
            && ended(handle).await.is_err()
        {
            return;
        }
    }
}

async fn ended(handle: ProcessHandle) -> io::Result<()> {
    watch(handle, Interest::READABLE)?.readable().await.map(drop)
}

fn lives_in(shim: Shim, census: &Census) -> bool {
    census.find(shim.pid).is_some_and(|found| shim.is(found))
}

/// The running processes of a tree: the leader's session, processes with the mark, the shim's children, and
/// all their descendants. Once the shim has died, also the processes that this daemon adopted.
fn members(census: &Census, tree: &Tree) -> Vec<Process> {
    let own = ProcessId(i32::try_from(std::process::id()).unwrap_or(0));
    let is_young = |process: &&Process| process.started >= tree.started && process.pid != own;
    // If the leader is gone, its pid may lead an unrelated session by now.
    let usurped = census.find(tree.leader).is_some_and(|leader| leader.started > tree.started);
    let in_session = census.in_session(tree.leader).filter(|_| !usurped);
    let shim = tree.shim.filter(|shim| lives_in(*shim, census));
    let left_to_shim = shim.into_iter().flat_map(|shim| census.children(shim.pid));
    let marked = census.marked(tree.session.number());
    let mut next: Vec<&Process> =
        in_session.chain(left_to_shim).chain(marked).chain(strays(census, tree)).collect();
    next.retain(is_young);
    let mut found = BTreeMap::new();
    while let Some(process) = next.pop() {
        if found.insert(process.pid, process).is_none() {
            next.extend(census.children(process.pid).filter(is_young));
        }
    }
    found.into_values().filter(|process| !process.ended).copied().collect()
}

/// The processes that came to the daemon once the shim of their session had died, whatever their marks say now.
fn strays<'a>(census: &'a Census, tree: &Tree) -> impl Iterator<Item = &'a Process> {
    let died = tree.shim.is_some_and(|shim| !lives_in(shim, census));
    let started = tree.started;
    census.strays().filter(move |stray| died && stray.started >= started)
}

#[cfg(test)]
mod tests;
