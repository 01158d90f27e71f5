//! The sessions of one daemon, and what each of them is created with.
//!
//! It finds sessions and never waits for one; a session that ended its task is forgotten here.

mod creating;
mod names;
pub mod parting;
pub mod silent;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::core::ids::{LeaseId, SessionId, TenantId};
use crate::core::lease::limits::LeaseLimits;
use crate::core::quota::Quota;
use crate::core::screen::ScreenLimits;
use crate::session::actor::{Outlets, Rules};
use crate::session::clock::Clock;
use crate::session::counters::Counters;
use crate::session::create_error::CreateError;
use crate::session::error::SessionError;
use crate::session::facts::Board;
use crate::session::handle::Session;
use crate::session::pty::held::options::{HoldOptions, Holding, Shims};
use crate::session::records::identity::SessionRecord;
use crate::session::registry::parting::Unended;
use crate::session::stats::Live;
use crate::shim::wire::to_shim::Unread;

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
    pub holding: Option<Holding>,
    /// Where the scripts of [`SCRIPTS`](crate::session::pty::shell::SCRIPTS) are; none where shells
    /// are started as they are.
    pub scripts: Option<PathBuf>,
}

/// How much of what sessions may have; other limits hold for those created after they were set.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    pub lease: LeaseLimits,
    pub screen: ScreenLimits,
    /// How many cells a terminal may have, also when it is resized.
    pub cells_max: u32,
    pub frame_interval: Duration,
    pub keep_ended: Duration,
    pub holding: HoldingLimits,
    /// Whether interactive shells mark their prompts and commands.
    pub shell_marks: bool,
    /// How many sessions each tenant may have.
    pub sessions_max: Quota,
}

/// What becomes of a session while no daemon is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldingLimits {
    /// How long it waits for one; for ever when it is none.
    pub orphan_ttl: Option<Duration>,
    /// How much output is kept that no checkpoint covers, in bytes: 64 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// What becomes of output for which there is no room.
    pub unread: Unread,
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

/// The sessions of one daemon; clones are the same registry.
#[derive(Clone, Debug)]
pub struct Registry(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    own_tenant: TenantId,
    environment: BTreeMap<OsString, OsString>,
    default_cwd: PathBuf,
    holding: Option<Holding>,
    scripts: Option<PathBuf>,
    limits: RwLock<Arc<SessionLimits>>,
    clock: Clock,
    sessions: DashMap<SessionId, Session>,
    /// Those that were left and for whose terminals nobody answers, with what is known of each.
    silent: DashMap<SessionId, Option<Arc<SessionRecord>>>,
    names: DashMap<(TenantId, Arc<str>), SessionId>,
    leases: DashMap<LeaseId, SessionId>,
    /// The ids in `leases` of each session, oldest first.
    recent_leases: DashMap<SessionId, VecDeque<LeaseId>>,
    facts: Board,
    announcements: mpsc::Sender<Announcement>,
    changes: watch::Sender<u64>,
    counters: Arc<Counters>,
    tasks: TaskTracker,
    ending: AtomicBool,
    /// What did not end, once all sessions were told to.
    unended: watch::Sender<Option<Arc<[Unended]>>>,
}

/// What a registry tells the floors above.
#[derive(Debug)]
pub struct Listening {
    pub facts: Board,
    pub announcements: mpsc::Receiver<Announcement>,
}

impl Registry {
    /// An empty registry.
    pub fn new(settings: Settings, clock: Clock) -> (Self, Listening) {
        let facts = Board::default();
        let (announcements, announced) = mpsc::channel(64);
        let Settings { limits, own_tenant, environment, default_cwd, holding, scripts } = settings;
        let shared = Shared {
            own_tenant,
            environment,
            default_cwd,
            holding,
            scripts,
            limits: RwLock::new(Arc::new(limits)),
            clock,
            sessions: DashMap::new(),
            silent: DashMap::new(),
            names: DashMap::new(),
            leases: DashMap::new(),
            recent_leases: DashMap::new(),
            facts: facts.clone(),
            announcements,
            changes: watch::Sender::new(0),
            counters: Arc::default(),
            tasks: TaskTracker::new(),
            ending: AtomicBool::new(false),
            unended: watch::Sender::new(None),
        };
        let listening = Listening { facts, announcements: announced };
        (Self(Arc::new(shared)), listening)
    }

    /// The daemon's clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The session with this id.
    pub fn get(&self, id: SessionId) -> Option<Session> {
        self.0.sessions.get(&id).map(|session| session.clone())
    }

    /// Every session, in no order.
    pub fn all(&self) -> Vec<Session> {
        self.0.sessions.iter().map(|session| session.clone()).collect()
    }

    /// Whether there is no session, neither running nor ended nor one that is still to be found.
    pub fn is_empty(&self) -> bool {
        self.0.silent.is_empty() && self.0.sessions.is_empty()
    }

    /// Counts up whenever a session comes, goes, ends, is renamed or falls silent, or a lease has another holder.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Waits until a session that is being removed is forgotten.
    pub async fn forgotten(&self, session: SessionId) {
        let mut changes = self.changes();
        while self.get(session).is_some() && changes.changed().await.is_ok() {}
    }

    /// What all sessions did so far.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// The session whose lease has, or had, this id.
    pub fn of_lease(&self, lease: LeaseId) -> Option<Session> {
        let id = *self.0.leases.get(&lease)?;
        self.get(id)
    }

    /// Remembers which session a lease belongs to.
    pub fn remember_lease(&self, lease: LeaseId, session: SessionId) {
        /// So many ids of one session are kept; older ones are answered as unknown.
        const LEASES_MAX: usize = 64;
        if self.0.leases.insert(lease, session).is_some() {
            return;
        }
        let mut recent = self.0.recent_leases.entry(session).or_default();
        recent.push_back(lease);
        if recent.len() > LEASES_MAX
            && let Some(oldest) = recent.pop_front()
        {
            self.0.leases.remove(&oldest);
        }
    }

    pub(in crate::session) fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.0.environment
    }

    pub(in crate::session) fn default_cwd(&self) -> &Path {
        &self.0.default_cwd
    }

    /// Where shims listen; none where sessions end with the daemon.
    pub(in crate::session) fn shims(&self) -> Option<&Shims> {
        self.0.holding.as_ref().map(|holding| &holding.shims)
    }

    pub(in crate::session) fn own_tenant(&self) -> &TenantId {
        &self.0.own_tenant
    }

    /// How the terminals of sessions created now are held; none where they end with the daemon.
    pub(in crate::session) fn hold_options(&self) -> Option<HoldOptions> {
        let Holding { shims, program } = self.0.holding.clone()?;
        let HoldingLimits { orphan_ttl, ring_bytes, unread } = self.limits().holding;
        Some(HoldOptions { shims, program, ring_bytes, unread, orphan_ttl })
    }

    /// Where files may lie for a moment that the shells of sessions read, if there is such a place.
    pub fn scratch(&self) -> Option<&Path> {
        self.0.scripts.as_deref()
    }

    /// Where the scripts are that shells which are started now read; none where they read none.
    pub(in crate::session) fn scripts(&self) -> Option<&Path> {
        self.0.scripts.as_deref().filter(|_| self.limits().shell_marks)
    }

    /// The limits of sessions that are created now.
    pub fn limits(&self) -> Arc<SessionLimits> {
        Arc::clone(&self.0.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the limits of sessions that are created from now on.
    pub fn set_limits(&self, limits: SessionLimits) {
        *self.0.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    pub(in crate::session) fn rules(&self) -> Rules {
        let SessionLimits { screen, frame_interval, keep_ended, .. } = *self.limits();
        Rules { screen, frame_interval, keep_ended }
    }

    pub(in crate::session) fn outlets(&self, live: Arc<Live>) -> Outlets {
        let (facts, changes) = (self.0.facts.clone(), self.0.changes.clone());
        Outlets { facts, changes, live, counters: Arc::clone(&self.0.counters) }
    }

    /// Has a session found by everybody.
    pub(in crate::session) fn list(&self, session: &Session) {
        self.0.sessions.insert(session.id(), session.clone());
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
        self.0.sessions.remove(&session.id());
        self.free_name(session.tenant(), session.name(), session.id());
        if let Some((_, leases)) = self.0.recent_leases.remove(&session.id()) {
            for lease in leases {
                self.0.leases.remove(&lease);
            }
        }
        self.tell_listed(session);
    }

    fn tell_listed(&self, session: &Session) {
        self.0.changes.send_modify(|count| *count += 1);
        self.0.facts.tell_listed(session.id());
    }
}
