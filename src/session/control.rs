//! Requests that reach a session's task ahead of its command queue.
//! Each entry is a state, not a message: its size is bounded, it is never refused, and a destructor can post
//! it without an await.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId};
use crate::core::input::WriteWindow;
use crate::core::input::request::WriteId;
use crate::core::lease::request::WaiterId;
use crate::core::shell::commands::record::CommandId;
use crate::session::recording::RecordingPlan;

/// How an ending daemon leaves a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parting {
    /// The session continues, and the next daemon finds it.
    Leave,
    /// The session ends with everything in it.
    End,
}

/// The entries posted since the task last looked.
#[derive(Debug, Default)]
pub struct Entries {
    /// What the write switches now allow for this session.
    pub window: Option<WriteWindow>,
    /// Previous lease holders can reclaim their lease from now on.
    pub reclaim: bool,
    pub closed: BTreeSet<ConnectionId>,
    /// Principals that may no longer write.
    pub ended_rights: BTreeSet<PrincipalId>,
    pub detached: BTreeSet<PrincipalId>,
    /// Waiters whose callers are gone.
    pub cancelled: BTreeSet<WaiterId>,
    /// Waiting writes that no longer keep their lease alive.
    pub let_go: BTreeSet<WriteId>,
    /// Commands to interrupt because their callers gave them up, each with the caller whose right to write
    /// counts. Bounded by the requests in flight.
    pub interrupts: VecDeque<GivenUp>,
    /// From now on, a caller that leaves was disconnected by the daemon; its command is not interrupted.
    pub spare_commands: bool,
    /// The daemon ends.
    pub parting: Option<Parting>,
    /// Operators that end the lease. Bounded by the requests in flight.
    pub preempts: VecDeque<(PrincipalName, oneshot::Sender<bool>)>,
    /// Operators that ask for the id of the lease that the command line holds. Bounded by the requests in
    /// flight.
    pub finders: VecDeque<oneshot::Sender<Option<LeaseId>>>,
    /// Callers that ask whether the terminal hides what is typed. Bounded by the requests in flight.
    pub secrecy: VecDeque<oneshot::Sender<bool>>,
    /// New names, each with the channel for the previous name. Bounded by the requests in flight.
    pub renames: VecDeque<(Arc<str>, oneshot::Sender<Arc<str>>)>,
    /// Recordings to begin or to end, each with the channel for whether that was to be done. Bounded by the
    /// requests in flight.
    pub recordings: VecDeque<(RecordingOrder, oneshot::Sender<io::Result<bool>>)>,
    /// Markers for a recording; further ones are left out.
    pub markers: Vec<String>,
}

/// The most markers that wait.
const MARKERS_MAX: usize = 64;

/// What is asked about the recording of a session.
#[derive(Debug)]
pub enum RecordingOrder {
    Begin(Box<RecordingPlan>),
    /// By somebody of this name.
    End(PrincipalName),
}

impl Entries {
    /// Merges entries that were posted later.
    pub fn add(&mut self, later: Self) {
        let Self {
            window,
            reclaim,
            mut closed,
            mut ended_rights,
            mut detached,
            mut cancelled,
            mut let_go,
            interrupts,
            spare_commands,
            parting,
            preempts,
            finders,
            secrecy,
            renames,
            recordings,
            markers,
        } = later;
        self.window = window.or(self.window);
        self.reclaim |= reclaim;
        self.closed.append(&mut closed);
        self.ended_rights.append(&mut ended_rights);
        self.detached.append(&mut detached);
        self.cancelled.append(&mut cancelled);
        self.let_go.append(&mut let_go);
        self.interrupts.extend(interrupts);
        self.spare_commands |= spare_commands;
        self.parting = self.parting.max(parting);
        self.preempts.extend(preempts);
        self.finders.extend(finders);
        self.secrecy.extend(secrecy);
        self.renames.extend(renames);
        self.recordings.extend(recordings);
        self.add_markers(markers);
    }

    /// Adds markers, as far as there is room.
    pub fn add_markers(&mut self, markers: impl IntoIterator<Item = String>) {
        let room = MARKERS_MAX.saturating_sub(self.markers.len());
        self.markers.extend(markers.into_iter().take(room));
    }
}

/// The control entries of one session.
#[derive(Debug)]
pub struct Urgent {
    /// `None` once the session's task has ended; later entries are dropped.
    entries: Mutex<Option<Entries>>,
    /// Something was posted since they were taken.
    news: AtomicBool,
    posted: Notify,
}

impl Default for Urgent {
    fn default() -> Self {
        let entries = Mutex::new(Some(Entries::default()));
        Self { entries, news: AtomicBool::new(false), posted: Notify::new() }
    }
}

impl Urgent {
    /// Changes the entries and wakes the session's task.
    pub fn post(&self, change: impl FnOnce(&mut Entries)) {
        if let Some(entries) = self.lock().as_mut() {
            change(entries);
            self.news.store(true, Ordering::Release);
        }
        self.posted.notify_one();
    }

    /// Waits until an entry is posted. Cancel-safe.
    pub async fn posted(&self) {
        self.posted.notified().await;
    }

    /// What was posted since this was last asked.
    pub fn take(&self) -> Option<Entries> {
        self.news.swap(false, Ordering::AcqRel).then(|| self.lock().as_mut().map(std::mem::take))?
    }

    /// Accepts no more entries. Callers that wait for an answer learn that the session is gone.
    pub fn close(&self) {
        // Dropping an entry can post another, so the lock must be free.
        let left = self.lock().take();
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Entries>> {
        // A panic elsewhere cannot leave the entries half changed, so a poisoned lock is safe to use.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a lease from expiring while its holder waits for what a write brings about.
#[derive(Debug)]
#[must_use = "the lease is kept alive until this is dropped"]
pub struct KeepAlive {
    urgent: Arc<Urgent>,
    write: WriteId,
}

impl KeepAlive {
    /// Keeps alive the lease that this write holds.
    pub(in crate::session) fn new(urgent: Arc<Urgent>, write: WriteId) -> Self {
        Self { urgent, write }
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        let write = self.write;
        self.urgent.post(|entries| {
            entries.let_go.insert(write);
        });
    }
}

/// A command that its caller gave up.
#[derive(Debug)]
pub struct GivenUp {
    pub command: CommandId,
    /// The caller that must be allowed to write when the interrupt is sent.
    pub by: Caller,
    /// The epoch of the lease under which the caller sent the command, if it had one.
    pub sent_in: Option<Epoch>,
    /// Keeps that lease alive until the interrupt is sent, so that no other caller can acquire it first.
    pub kept: Option<KeepAlive>,
}

/// Interrupts a command when dropped, unless disarmed.
#[derive(Debug)]
#[must_use = "the command is interrupted when this is dropped"]
pub struct Interrupt {
    urgent: Arc<Urgent>,
    armed: Option<GivenUp>,
}

impl Interrupt {
    pub(in crate::session) fn new(urgent: Arc<Urgent>, given_up: GivenUp) -> Self {
        Self { urgent, armed: Some(given_up) }
    }

    /// The caller did not give the command up.
    pub fn disarm(mut self) {
        self.armed = None;
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(given_up) = self.armed.take() {
            self.urgent.post(|entries| entries.interrupts.push_back(given_up));
        }
    }
}
