//! A snapshot of all processes, indexed for the code that ends sessions.
//! It reads no process memory such as environments, because a process can delay such a read at will.
//! Concurrent callers share one scan, which runs in a thread of its own.

use std::collections::HashMap;
use std::io;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use crate::session::pty::ProcessId;
use crate::session::pty::condemned::{Condemned, strike};
use crate::session::pty::processes::{self, Process};
use crate::session::pty::reaper;
use crate::shim::mark::{self, Depth};
use crate::shim::stat::Unseen;

/// The processes of the machine at one moment.
#[derive(Debug, Default)]
pub struct Census {
    table: Vec<Process>,
    numbers: HashMap<ProcessId, usize>,
    children: HashMap<ProcessId, Vec<usize>>,
    sessions: HashMap<ProcessId, Vec<usize>>,
    marks: HashMap<u64, Vec<usize>>,
    strays: Vec<usize>,
}

impl Census {
    /// Indexes processes. `marked` returns the session number in the mark of a process. Both questions about a
    /// process are asked before the next one is read.
    pub fn of(
        processes: impl IntoIterator<Item = Process>,
        marked: impl Fn(&Process) -> Option<u64>,
        is_stray: impl Fn(&Process) -> bool,
    ) -> Self {
        let mut census = Self::default();
        for (index, process) in processes.into_iter().enumerate() {
            census.numbers.insert(process.pid, index);
            census.children.entry(process.parent).or_default().push(index);
            census.sessions.entry(process.session).or_default().push(index);
            if let Some(mark) = marked(&process) {
                census.marks.entry(mark).or_default().push(index);
            }
            if is_stray(&process) {
                census.strays.push(index);
            }
            census.table.push(process);
        }
        census
    }

    fn look(condemned: &[Condemned]) -> io::Result<Self> {
        strike(condemned)?;
        let marked = |process: &Process| mark::session_of(process.pid.0);
        let census = Self::of(processes::each()?, marked, is_stray);
        // Adopted zombies have no other parent that would reap them.
        reaper::sweep(&census.table);
        Ok(census)
    }

    pub fn find(&self, pid: ProcessId) -> Option<&Process> {
        self.numbers.get(&pid).map(|index| &self.table[*index])
    }

    /// The children of a process.
    pub fn children(&self, parent: ProcessId) -> impl Iterator<Item = &Process> {
        self.all(self.children.get(&parent))
    }

    /// The processes in the kernel session of this leader, even if the leader is gone.
    pub fn in_session(&self, leader: ProcessId) -> impl Iterator<Item = &Process> {
        self.all(self.sessions.get(&leader))
    }

    /// The processes that carry the mark of this session number.
    pub fn marked(&self, session: u64) -> impl Iterator<Item = &Process> {
        self.all(self.marks.get(&session))
    }

    /// Processes that this daemon adopted because their shim died. Their marks may have changed.
    pub fn strays(&self) -> impl Iterator<Item = &Process> {
        self.all(Some(&self.strays))
    }

    fn all(&self, indices: Option<&Vec<usize>>) -> impl Iterator<Item = &Process> {
        indices.into_iter().flatten().map(|index| &self.table[*index])
    }
}

/// Whether a process belongs to a session whose shim has died, so that this daemon adopted it.
///
/// A shim is as deep as its daemon, and programs are deeper. The name of a process proves nothing.
fn is_stray(process: &Process) -> bool {
    let lies_deeper = |pid: i32| Ok::<_, Unseen>(Depth::of(pid)? < Depth::own()?);
    reaper::is_left_to_us(process)
        && !reaper::is_child(process.pid)
        && lies_deeper(process.pid.0) == Ok(true)
}

#[derive(Debug)]
struct ScanRequest {
    condemned: Option<Condemned>,
    answer: oneshot::Sender<Result<Arc<Census>, io::ErrorKind>>,
}

type Look = fn(&[Condemned]) -> io::Result<Census>;

/// The callers that wait for the next scan; `None` while no thread runs.
#[derive(Debug)]
struct Queue(Mutex<Option<Vec<ScanRequest>>>);

static QUEUE: Queue = Queue::new();

/// Scans all processes. The result is at least as new as the call. A condemned session's processes are killed
/// first; those that have not ended yet are in the result.
///
/// # Errors
/// Returns the error from `/proc`, or from the thread's start.
pub async fn take(condemned: Option<Condemned>) -> io::Result<Arc<Census>> {
    QUEUE.take(condemned, Census::look).await
}

impl Queue {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    async fn take(
        &'static self,
        condemned: Option<Condemned>,
        look: Look,
    ) -> io::Result<Arc<Census>> {
        let (sender, answer) = oneshot::channel();
        let asked = ScanRequest { condemned, answer: sender };
        let is_first = {
            let mut waiting = self.waiting();
            let is_first = waiting.is_none();
            waiting.get_or_insert_default().push(asked);
            is_first
        };
        let looking = move || self.serve(look);
        if is_first
            && let Err(error) = thread::Builder::new().name("census".to_owned()).spawn(looking)
        {
            // Dropping the senders reports the failure to callers that queued up meanwhile.
            *self.waiting() = None;
            return Err(error);
        }
        match answer.await {
            Ok(census) => census.map_err(io::Error::from),
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Scans until no caller waits.
    fn serve(&self, look: Look) {
        loop {
            let asked = {
                let mut waiting = self.waiting();
                let asked = waiting.as_mut().map(std::mem::take).unwrap_or_default();
                if asked.is_empty() {
                    *waiting = None;
                    return;
                }
                asked
            };
            let condemned: Vec<_> = asked.iter().filter_map(|one| one.condemned).collect();
            // A panic ends only this scan.
            let looked = catch_unwind(|| look(&condemned))
                .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            let census = looked.map(Arc::new).map_err(|error| error.kind());
            for one in asked {
                // The caller may have stopped waiting.
                let _ = one.answer.send(census.clone());
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Vec<ScanRequest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn this_process_is_found_by_its_number_its_parent_and_its_session() {
        let own = ProcessId(std::process::id().cast_signed());
        let census = take(None).await.unwrap();
        let found = *census.find(own).unwrap();
        assert_eq!(Process::find(own).map(|process| process.started), Some(found.started));
        assert!(census.children(found.parent).any(|process| process.pid == own));
        assert!(census.in_session(found.session).any(|process| process.pid == own));
    }

    #[tokio::test]
    async fn whoever_asks_finds_what_was_started_before_and_all_are_answered() {
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..64 {
            asking.spawn(async {
                let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
                let pid = ProcessId(child.id().cast_signed());
                let found = take(None).await.unwrap().find(pid).is_some();
                child.kill().unwrap();
                child.wait().unwrap();
                found
            });
        }
        assert_eq!(asking.join_all().await, [true; 64]);
    }

    #[tokio::test]
    async fn a_look_that_panics_fails_and_the_next_one_is_taken() {
        static QUEUE: Queue = Queue::new();
        assert!(QUEUE.take(None, |_| panic!("on purpose")).await.is_err());
        // Who asks before its thread is done is seen to by the same one, which fails again.
        while QUEUE.waiting().is_some() {
            tokio::task::yield_now().await;
        }
        let next =
            tokio::time::timeout(Duration::from_secs(20), QUEUE.take(None, Census::look)).await;
        assert!(next.expect("somebody looks").is_ok());
    }

    #[tokio::test]
    async fn all_who_ask_before_a_look_begins_share_it() {
        static QUEUE: Queue = Queue::new();
        // A thread is about to look, which is this one.
        *QUEUE.waiting() = Some(Vec::new());
        let mut asking: Vec<Pin<Box<dyn Future<Output = _>>>> = Vec::new();
        asking.resize_with(64, || Box::pin(QUEUE.take(None, Census::look)));
        let mut asked = Context::from_waker(Waker::noop());
        let mut poll = |one: &mut Pin<Box<dyn Future<Output = _>>>| one.as_mut().poll(&mut asked);
        assert!(asking.iter_mut().all(|one| poll(one).is_pending()), "nobody has looked");
        QUEUE.serve(Census::look);
        let found = asking.iter_mut().map(|one| match poll(one) {
            Poll::Ready(looked) => looked.unwrap(),
            Poll::Pending => panic!("it was answered"),
        });
        let found: Vec<_> = found.collect();
        assert!(found.iter().all(|one| Arc::ptr_eq(one, &found[0])));
    }
}
