//! The sessions of one daemon, and what each of them is created with.
//!
//! It finds sessions and never waits for one; a session that ended its task is forgotten here.

pub mod confining;
pub mod creating;
mod events;
pub mod limits;
mod names;
mod recordings;
pub mod silent;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::core::event::LeaseOf;
use crate::core::ids::{LeaseId, SessionId, TenantId};
use crate::core::lease::view::LeaseEvent;
use crate::session::actor::Outlets;
use crate::session::clock::Clock;
use crate::session::control::Parting;
use crate::session::error::{CreateError, SessionError};
use crate::session::facts::Board;
use crate::session::handle::Session;
use crate::session::pty::environment::{ClientEnvironment, Environment, clean_environment};
use crate::session::pty::held::shims::{HoldOptions, ShimSetup, Shims};
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::recorder::ActRecorder;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::limits::SessionLimits;
use crate::session::registry::silent::Known;
use crate::session::stats::{Counters, Live};

/// What every session of a daemon is created with, as long as the daemon runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: SessionLimits,
    /// The tenant of the user the daemon runs as.
    pub own_tenant: TenantId,
    /// The environment that sessions start from.
    pub environment: BTreeMap<OsString, OsString>,
    pub default_cwd: PathBuf,
    /// None where sessions end with the daemon.
    pub holding: Option<ShimSetup>,
    /// Where the scripts of [`SCRIPTS`](crate::session::pty::shell::SCRIPTS) are; none where shells
    /// are started as they are.
    pub scripts: Option<PathBuf>,
    /// What sandboxed programs may not see or change.
    pub sandbox: SandboxPlaces,
    pub recorder: ActRecorder,
    /// The directory of recordings, which need not exist.
    pub recordings: PathBuf,
}

/// Why a session did not get another name.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// It cannot have the name.
    #[error(transparent)]
    Name(#[from] CreateError),
    /// The session is gone.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A session that was just created, for whoever opens doors for it.
#[derive(Debug)]
pub struct Announcement {
    pub session: Session,
    /// Dropped when the doors are open.
    pub opened: oneshot::Sender<()>,
}

/// A session of which something did not end with the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unended {
    pub session: SessionId,
    pub name: Arc<str>,
    /// What did not, and why.
    pub what: String,
}

/// The sessions of one daemon; clones are the same registry.
#[derive(Clone, Debug)]
pub struct Registry(Arc<RegistryState>);

#[derive(Debug)]
struct RegistryState {
    own_tenant: TenantId,
    environment: BTreeMap<OsString, OsString>,
    default_cwd: PathBuf,
    holding: Option<ShimSetup>,
    scripts: Option<PathBuf>,
    sandbox: SandboxPlaces,
    recorder: ActRecorder,
    recordings: PathBuf,
    limits: watch::Sender<Arc<SessionLimits>>,
    clock: Clock,
    entries: DashMap<SessionId, SessionEntry>,
    /// What [`Registry::known`] answers; none after a change.
    ordered: Mutex<Option<Arc<[Known]>>>,
    /// It is locked last: whoever has it looks at no entry.
    index: Mutex<Index>,
    facts: Board,
    announcements: mpsc::Sender<Announcement>,
    changes: watch::Sender<u64>,
    renames: watch::Sender<u64>,
    counters: Arc<Counters>,
    tasks: TaskTracker,
    ending: AtomicBool,
    /// What did not end, once all sessions were told to.
    unended: watch::Sender<Option<Arc<[Unended]>>>,
}

/// What is known of one session.
#[derive(Debug, Default)]
struct SessionEntry {
    session: Option<Session>,
    /// It was left, and nobody answers for its terminal; with what is known of it.
    silent: Option<Option<Arc<SessionRecord>>>,
    /// The ids of its leases, oldest first.
    leases: VecDeque<LeaseId>,
}

/// What names a session, be it there already or not.
#[derive(Debug, Default)]
struct Index {
    names: HashMap<TenantId, HashMap<Arc<str>, SessionId>>,
    leases: HashMap<LeaseId, SessionId>,
}

/// What a registry tells the floors above.
#[derive(Debug)]
pub struct Listening {
    pub facts: Board,
    pub announcements: mpsc::Receiver<Announcement>,
}

impl Registry {
    pub fn new(settings: Settings, clock: Clock) -> (Self, Listening) {
        let facts = Board::default();
        let (announcements, announced) = mpsc::channel(64);
        let Settings { limits, own_tenant, environment, default_cwd, .. } = settings;
        let Settings { holding, scripts, sandbox, recorder, recordings, .. } = settings;
        let shared = RegistryState {
            own_tenant,
            environment,
            default_cwd,
            holding,
            scripts,
            sandbox,
            recorder,
            recordings,
            limits: watch::Sender::new(Arc::new(limits)),
            clock,
            entries: DashMap::new(),
            ordered: Mutex::default(),
            index: Mutex::default(),
            facts: facts.clone(),
            announcements,
            changes: watch::Sender::new(0),
            renames: watch::Sender::new(0),
            counters: Arc::default(),
            tasks: TaskTracker::new(),
            ending: AtomicBool::new(false),
            unended: watch::Sender::new(None),
        };
        let listening = Listening { facts, announcements: announced };
        (Self(Arc::new(shared)), listening)
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn get(&self, id: SessionId) -> Option<Session> {
        self.0.entries.get(&id)?.session.clone()
    }

    pub fn all(&self) -> Vec<Session> {
        self.0.entries.iter().filter_map(|entry| entry.session.clone()).collect()
    }

    /// Whether there is no session, neither running nor ended nor one that is still to be found.
    pub fn is_empty(&self) -> bool {
        self.0.entries.iter().all(|entry| entry.session.is_none() && entry.silent.is_none())
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts up whenever a session comes, goes, ends, is renamed or falls silent, or a lease has another holder.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Counts the sessions that got another name.
    pub fn renames(&self) -> watch::Receiver<u64> {
        self.0.renames.subscribe()
    }

    /// Waits until a session that is being removed is forgotten.
    pub async fn forgotten(&self, session: SessionId) {
        let mut changes = self.changes();
        while self.get(session).is_some() && changes.changed().await.is_ok() {}
    }

    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Has those look again who follow the list of leases.
    pub fn note_change(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// Has the holder of a lease told what became of it.
    pub fn tell_lease(&self, of: LeaseOf, event: LeaseEvent) {
        self.0.facts.tell_lease(of, event);
    }

    /// The session whose lease has, or had, this id.
    pub fn of_lease(&self, lease: LeaseId) -> Option<Session> {
        let id = self.index().leases.get(&lease).copied()?;
        self.get(id)
    }

    /// Has a listed session found by this lease, as long as it is listed.
    pub fn remember_lease(&self, lease: LeaseId, session: SessionId) {
        /// So many ids of one session are kept; older ones are answered as unknown.
        const LEASES_MAX: usize = 64;
        let Some(mut entry) = self.0.entries.get_mut(&session) else { return };
        if self.index().leases.insert(lease, session).is_some() {
            return;
        }
        entry.leases.push_back(lease);
        if entry.leases.len() > LEASES_MAX
            && let Some(oldest) = entry.leases.pop_front()
        {
            self.index().leases.remove(&oldest);
        }
    }

    /// Where shims listen; none where sessions end with the daemon.
    pub(in crate::session) fn shims(&self) -> Option<&Shims> {
        self.0.holding.as_ref().map(|holding| &holding.shims)
    }

    /// The variables that sessions of the daemon's user have, unless their creator sets them.
    pub fn usual_environment(&self) -> Environment {
        let (client, own) = (ClientEnvironment::default(), BTreeMap::new());
        // Only variables of the creator can be wrong.
        clean_environment(&self.0.environment, &client, &own).unwrap_or_default()
    }

    pub fn own_tenant(&self) -> &TenantId {
        &self.0.own_tenant
    }

    /// How the terminals of sessions created now are held; none where they end with the daemon.
    pub(in crate::session) fn hold_options(&self) -> Option<HoldOptions> {
        let ShimSetup { shims, starter } = self.0.holding.clone()?;
        Some(HoldOptions { shims, starter, limits: self.limits().holding })
    }

    pub(in crate::session) fn outlets(&self, live: Arc<Live>) -> Outlets {
        let (facts, changes) = (self.0.facts.clone(), self.0.changes.clone());
        let counters = Arc::clone(&self.0.counters);
        let (urgent, recorder) = (Arc::default(), self.0.recorder.clone());
        Outlets { facts, changes, live, counters, urgent, recorder }
    }

    /// Has a session found by everybody, and by the lease that it begins with.
    pub(in crate::session) fn list(&self, session: &Session, lease: Option<LeaseId>) {
        let mut entry = self.0.entries.entry(session.id()).or_default();
        entry.session = Some(session.clone());
        if let Some(lease) = lease {
            entry.leases.push_back(lease);
            self.index().leases.insert(lease, session.id());
        }
        drop(entry);
        self.tell_listed(session);
    }

    /// Forgets a listed session when its task has ended.
    pub(in crate::session) fn look_after(&self, session: Session, task: JoinHandle<()>) {
        let registry = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = task.await {
                tracing::error!(session = %session.id(), %error, "the session's task failed");
            }
            registry.forget(&session);
        });
    }

    /// Waits until the doors of a new session are open.
    pub(in crate::session) async fn announce(&self, session: &Session) {
        let (opened, open) = oneshot::channel();
        let announcement = Announcement { session: session.clone(), opened };
        if self.0.announcements.send(announcement).await.is_ok() {
            // The sender is dropped, not used, once the doors are open.
            let _ = open.await;
        }
    }

    fn forget(&self, session: &Session) {
        // Once it is not found any more, another may have its name.
        self.free_name(session.tenant(), &session.name(), session.id());
        let entry = self.remove_entry(session.id());
        for lease in entry.into_iter().flat_map(|entry| entry.leases) {
            self.index().leases.remove(&lease);
        }
        self.remove_scratch(session);
        self.tell_listed(session);
    }

    fn tell_listed(&self, session: &Session) {
        self.tell_known();
        self.0.facts.tell_listed(session.id());
    }

    /// Ends every session and waits until all their processes are gone, for so long at most; says what is
    /// left.
    pub async fn shut_down(&self, most: Duration) -> Arc<[Unended]> {
        let sessions = self.all();
        let late = timeout(most, self.part(Parting::End)).await.is_err();
        let left = |session: &Session| {
            let told = session.live().unended().map(str::to_owned);
            let is_late = late && self.get(session.id()).is_some();
            let what = told.or_else(|| is_late.then(|| "it takes longer to end".to_owned()))?;
            Some(Unended { session: session.id(), name: session.name(), what })
        };
        let silent = self.silent_names().into_iter().map(|(session, name)| Unended {
            session,
            name,
            what: "the process that holds its terminal does not answer as it should, or is of a \
                   former version"
                .to_owned(),
        });
        let left: Arc<[Unended]> = sessions.iter().filter_map(left).chain(silent).collect();
        self.0.unended.send_replace(Some(Arc::clone(&left)));
        left
    }

    /// Waits until all sessions were told to end, and says what was left then.
    pub async fn ended(&self) -> Arc<[Unended]> {
        let mut unended = self.0.unended.subscribe();
        // The sender lives as long as this registry.
        let told = unended.wait_for(Option::is_some).await;
        told.ok().and_then(|told| told.clone()).unwrap_or_default()
    }

    /// Leaves every session to the next daemon, and waits until each has handed over what that one
    /// needs. A session whose terminal is this daemon's own ends.
    ///
    /// To a caller who still waits here its session is gone, so those should have been let go.
    pub async fn leave(&self) {
        self.part(Parting::Leave).await;
    }

    /// Tells every session that callers are sent away now, which gives no command up.
    pub fn spare_commands(&self) {
        for session in self.all() {
            session.spare_commands();
        }
    }

    async fn part(&self, parting: Parting) {
        self.0.ending.store(true, Ordering::SeqCst);
        for session in self.all() {
            session.part(parting);
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
