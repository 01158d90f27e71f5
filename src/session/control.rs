//! What reaches a session's task without standing in the line of its commands.
//!
//! Each entry is a state rather than a message, so that the box is bounded by what exists (waiters,
//! connections, writes in flight), nothing is ever refused, and posting needs no await: it can be
//! done from a destructor.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::core::caller::PrincipalName;
use crate::core::ids::{ConnectionId, LeaseId, PrincipalId};
use crate::core::input::WriteWindow;
use crate::core::input::request::WriteId;
use crate::core::lease::request::WaiterId;
use crate::session::interrupt::GivenUp;

/// How a daemon that ends parts from a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parting {
    /// It goes on without the daemon, and the next one finds it.
    Leave,
    /// It ends with everything that runs in it.
    End,
}

/// The entries posted since the task last looked.
#[derive(Debug, Default)]
pub struct Entries {
    /// The window that the switches now leave open for this session.
    pub window: Option<WriteWindow>,
    /// Whoever had the lease with a daemon before can come from now on.
    pub reclaim: bool,
    /// Connections that have ended.
    pub closed: BTreeSet<ConnectionId>,
    /// Those who may not write any more.
    pub ended_rights: BTreeSet<PrincipalId>,
    /// People who are no longer attached.
    pub detached: BTreeSet<PrincipalId>,
    /// Waiters whose callers have gone.
    pub cancelled: BTreeSet<WaiterId>,
    /// Waiting writes that no longer keep their lease alive.
    pub let_go: BTreeSet<WriteId>,
    /// Commands that their callers gave up and want interrupted, with who has to be allowed to write;
    /// bounded by the calls that their connections may have in flight.
    pub interrupts: VecDeque<GivenUp>,
    /// Whoever goes from now on was sent away and gives no command up.
    pub spare_commands: bool,
    /// The daemon ends.
    pub parting: Option<Parting>,
    /// Operators who end the lease; bounded by the calls their connections may have in flight.
    pub preempts: VecDeque<(PrincipalName, oneshot::Sender<bool>)>,
    /// Operators who ask for the id of the lease that the command line holds; bounded in the same way.
    pub finders: VecDeque<oneshot::Sender<Option<LeaseId>>>,
    /// New names, each with where the one before is told; bounded in the same way.
    pub renames: VecDeque<(Arc<str>, oneshot::Sender<Arc<str>>)>,
}

impl Entries {
    /// Takes in what was posted later.
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
            renames,
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
        self.renames.extend(renames);
    }
}

/// The box of one session.
#[derive(Debug)]
pub struct Urgent {
    /// None once the session's task has ended: what is posted then goes nowhere.
    entries: Mutex<Option<Entries>>,
    posted: Notify,
}

impl Default for Urgent {
    fn default() -> Self {
        Self { entries: Mutex::new(Some(Entries::default())), posted: Notify::new() }
    }
}

impl Urgent {
    /// Changes the entries and wakes the session's task.
    pub fn post(&self, change: impl FnOnce(&mut Entries)) {
        if let Some(entries) = self.lock().as_mut() {
            change(entries);
        }
        self.posted.notify_one();
    }

    /// Waits until something is posted; cancel-safe.
    pub async fn posted(&self) {
        self.posted.notified().await;
    }

    /// Takes all that was posted.
    pub fn take(&self) -> Entries {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes nothing more; whoever waits for an answer learns that the session is gone.
    pub fn close(&self) {
        // What was posted may post when it is dropped.
        let left = self.lock().take();
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Entries>> {
        // A panic elsewhere cannot leave the sets half changed, so a poisoned lock is still good.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
