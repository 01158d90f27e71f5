//! The write switches of the running daemon, shared by those who ask and those who switch.
//!
//! A change is pushed into every session before the switching call returns, so that "off" means
//! off; those who must tell clients wait for the next change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::core::ids::{SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::switches::{Scope, Switches};
use crate::core::policy::{Denial, Permit, Standing, decide_write};
use crate::session::registry::Registry;

/// The switches, and the news that they changed.
#[derive(Debug)]
pub struct Switchboard {
    switches: Mutex<Switches>,
    changes: watch::Sender<u64>,
}

impl Switchboard {
    /// A board with these switches.
    pub fn new(switches: Switches) -> Self {
        Self { switches: Mutex::new(switches), changes: watch::Sender::new(0) }
    }

    /// Sets one switch and tells every session what it may now do.
    pub fn set(&self, _permit: &Permit, sessions: &Registry, scope: Scope, window: WriteWindow) {
        let mut switches = self.lock();
        switches.set(scope, window);
        self.tell(&switches, sessions);
    }

    /// Closes the switches whose time has come.
    pub fn on_time(&self, sessions: &Registry, now: Moment) {
        let mut switches = self.lock();
        if switches.on_time(now) {
            self.tell(&switches, sessions);
        }
    }

    /// When the next switch closes by itself.
    pub fn deadline(&self) -> Option<Moment> {
        self.lock().deadline()
    }

    /// The window that the switches leave open for one session, or for sessions yet to be created.
    pub fn window_of(&self, tenant: &TenantId, session: Option<SessionId>) -> WriteWindow {
        self.lock().window(tenant, session)
    }

    /// Every switch that is on.
    pub fn open(&self, now: Moment) -> Vec<(Scope, WriteWindow)> {
        self.lock().open(now)
    }

    /// Decides whether a caller may change a session, or create one.
    ///
    /// # Errors
    /// The reason, when it may not.
    pub fn decide(
        &self,
        standing: &Standing,
        session: Option<SessionId>,
        now: Moment,
    ) -> Result<Permit, Denial> {
        decide_write(standing, &self.lock(), session, now)
    }

    /// Whether a caller has anything it could write to, so that write tools are worth listing.
    pub fn could_write(&self, sessions: &Registry, standing: &Standing, now: Moment) -> bool {
        if !standing.could_write() {
            return false;
        }
        let seen = |id| sessions.get(id).is_some_and(|session| standing.sees(id, session.tenant()));
        match standing.bound_session() {
            Some(session) => self.window_of(&standing.caller.tenant, Some(session)).is_open(now),
            None => self.lock().any_open(&standing.caller.tenant, seen, now),
        }
    }

    /// The news of changes; the number only says that there was one more.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets the switch of a session that is gone.
    pub fn forget(&self, session: SessionId) {
        self.lock().forget(session);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Posts to every session while the switches are locked, so that an older state cannot come
    /// after a newer one.
    fn tell(&self, switches: &Switches, sessions: &Registry) {
        for session in sessions.all() {
            session.set_window(switches.window(session.tenant(), Some(session.id())));
        }
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Switches> {
        // The switches are plain values that no panic can leave half changed.
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
