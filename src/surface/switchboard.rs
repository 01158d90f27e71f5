//! The write switches of the running daemon, shared by those who ask and those who switch.
//!
//! A change reaches every session before the switching call returns, so that "off" means off.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::core::caller::Caller;
use crate::core::event::{Event, EventScope};
use crate::core::ids::{SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::RightsSubject;
use crate::core::policy::switches::{Scope, Switches};
use crate::core::policy::{Permit, PermittedAct, Standing, decide_write};
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::session::registry::silent::Known;

/// How long whoever switches waits until that is kept; it counts all the same.
const KEPT_MAX: Duration = Duration::from_secs(2);

/// What the next daemon finds of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    Kept,
    /// It could not be written down, so that everything will be off.
    Failed,
    /// That is not known yet.
    Late,
}

/// The switches, and the news that they changed.
#[derive(Debug)]
pub struct Switchboard {
    configured: Switches,
    switches: Mutex<Switches>,
    changes: watch::Sender<u64>,
    /// The last change that was to be kept for the next daemon, and whether it was; none where there
    /// never is a next one.
    kept: watch::Sender<Option<(u64, Keeping)>>,
}

impl Switchboard {
    /// A board with the switches that the configuration says.
    pub fn new(configured: Switches) -> Self {
        Self {
            switches: Mutex::new(configured.clone()),
            configured,
            changes: watch::Sender::new(0),
            kept: watch::Sender::new(None),
        }
    }

    /// Sets all switches as they were in a daemon before, while there is no session yet.
    pub fn resume(&self, switches: Switches) {
        *self.lock() = switches;
    }

    /// Sets one switch for this caller, and tells every session what it may now do.
    pub fn set(
        &self,
        (permit, by): (&Permit, &Caller),
        sessions: &Registry,
        scope: Scope,
        window: WriteWindow,
    ) -> Result<(), Denial> {
        let now = sessions.clock().now();
        permit.check_operates(match &scope {
            Scope::Session(session) => Some(*session),
            Scope::Everything | Scope::Tenant(_) => None,
        })?;
        let mut switches = self.lock();
        switches.set(scope.clone(), window);
        self.tell(&switches, sessions);
        let for_ms = window.closes_at().map(|end| now.until(end).as_millis() as u64);
        let (is_on, by) = (window.is_open(now), Some(by.clone()));
        tell_event(sessions, &scope, Event::WritingSwitched { is_on, for_ms, by });
        Ok(())
    }

    /// Ends the switches whose time has come.
    pub fn on_time(&self, sessions: &Registry, now: Moment) {
        let mut switches = self.lock();
        let before = switches.settings(Moment::default());
        if switches.on_time(now) {
            self.tell(&switches, sessions);
            let left = switches.settings(Moment::default());
            let is_over = |(scope, window): &(Scope, WriteWindow)| {
                let ended = window.closes_at().is_some_and(|end| end <= now);
                ended && !left.iter().any(|(other, it)| other == scope && it == window)
            };
            for (scope, _) in before.into_iter().filter(is_over) {
                let event = Event::WritingSwitched { is_on: false, for_ms: None, by: None };
                tell_event(sessions, &scope, event);
            }
        }
    }

    /// When the next switch ends by itself.
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

    /// The tenants and sessions that stay off while everything is on.
    pub fn protected(&self) -> Vec<Scope> {
        self.lock().protected()
    }

    /// What makes the next daemon's switches the same.
    pub fn settings(&self, now: Moment) -> Vec<(Scope, WriteWindow)> {
        self.lock().settings(now)
    }

    /// Whether the configuration has writing on.
    pub fn is_configured_on(&self) -> bool {
        // It sets no switch for a time, so that it says the same at every moment.
        !self.configured.open(Moment::default()).is_empty()
    }

    /// Whether the switches are as the configuration says.
    pub fn is_as_configured(&self, now: Moment) -> bool {
        self.settings(now) == self.configured.settings(now)
    }

    /// Decides whether a caller may do this to a session, or create one.
    pub fn decide(
        &self,
        standing: &Standing,
        act: PermittedAct,
        session: Option<&impl RightsSubject>,
        now: Moment,
    ) -> Result<Permit, Denial> {
        decide_write(standing, &self.lock(), act, session, now)
    }

    /// Decides whether a caller may create sessions.
    pub fn decide_create(&self, standing: &Standing, now: Moment) -> Result<Permit, Denial> {
        self.decide(standing, PermittedAct::Create, None::<&Session>, now)
    }

    /// Whether a caller may write to a session.
    pub fn may_write(
        &self,
        standing: &Standing,
        session: &impl RightsSubject,
        now: Moment,
    ) -> bool {
        self.decide(standing, PermittedAct::Type, Some(session), now).is_ok()
    }

    /// Whether a caller has anything it could write to, so that write tools are worth listing.
    pub fn could_write(&self, sessions: &Registry, standing: &Standing, now: Moment) -> bool {
        if !standing.could_write() {
            return false;
        }
        match standing.bound_session() {
            Some(session) => {
                sessions.get(session).is_some_and(|it| self.may_write(standing, &it, now))
            }
            None => {
                self.decide_create(standing, now).is_ok()
                    || sessions.all().iter().any(|it| self.may_write(standing, it, now))
            }
        }
    }

    /// The news of changes; the number only says that there was one more.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets the switches of sessions that are not there.
    pub fn keep_sessions(&self, there: impl Fn(SessionId) -> bool) {
        if self.lock().keep_sessions(there) {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Notes what the next daemon will find of all changes up to this one; the first time, that it
    /// will find any.
    pub fn on_kept(&self, change: u64, keeping: Keeping) {
        self.kept.send_replace(Some((change, keeping)));
    }

    /// Waits until it is known what the next daemon will find of all changes so far, for two seconds
    /// at most; not at all where there is none.
    pub async fn kept(&self) -> Keeping {
        let change = *self.changes.borrow();
        let mut kept = self.kept.subscribe();
        let waiting = kept.wait_for(|kept| kept.is_none_or(|(kept, _)| kept >= change));
        match timeout(KEPT_MAX, waiting).await {
            Ok(Ok(kept)) => kept.map_or(Keeping::Kept, |(_, keeping)| keeping),
            // The board has the sending end, so that it is only late.
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("storing the write switches for the next daemon takes long");
                Keeping::Late
            }
        }
    }

    /// Tells a session that is listed by now what it may do.
    pub fn tell_one(&self, session: &Session) {
        let switches = self.lock();
        session.set_window(switches.window(session.tenant(), Some(session.id())));
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

/// Records an event for those whom a switch is about.
fn tell_event(sessions: &Registry, scope: &Scope, event: Event) {
    match scope {
        Scope::Everything => sessions.tell_event(None, event),
        Scope::Tenant(tenant) => {
            sessions.tell_event_in(EventScope { tenant, session: None }, event);
        }
        Scope::Session(id) => {
            let known = sessions.known_by_id(*id);
            let tenant = known.as_ref().map_or(sessions.own_tenant(), Known::tenant);
            sessions.tell_event_in(EventScope { tenant, session: Some(*id) }, event);
        }
    }
}
