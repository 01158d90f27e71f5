//! The write switches: whether anybody may write, for everything, one tenant or one session, and
//! until when.

use std::collections::BTreeMap;

use crate::core::ids::{SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::moment::Moment;

/// What one switch covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Everything,
    Tenant(TenantId),
    Session(SessionId),
}

/// All the switches; everything is off at first.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    everything: WriteWindow,
    tenants: BTreeMap<TenantId, WriteWindow>,
    sessions: BTreeMap<SessionId, WriteWindow>,
}

impl Switches {
    /// Sets one switch. Closing [`Scope::Everything`] closes all of them.
    pub fn set(&mut self, scope: Scope, window: WriteWindow) {
        let closing = window == WriteWindow::Closed;
        match scope {
            Scope::Everything if closing => *self = Self::default(),
            Scope::Everything => self.everything = window,
            Scope::Tenant(tenant) if closing => {
                self.tenants.remove(&tenant);
            }
            Scope::Tenant(tenant) => {
                self.tenants.insert(tenant, window);
            }
            Scope::Session(session) if closing => {
                self.sessions.remove(&session);
            }
            Scope::Session(session) => {
                self.sessions.insert(session, window);
            }
        }
    }

    /// The widest window of all switches that cover a session, or that cover sessions yet to be
    /// created when none is named.
    pub fn window(&self, tenant: &TenantId, session: Option<SessionId>) -> WriteWindow {
        let tenant = self.tenants.get(tenant).copied().unwrap_or_default();
        let session = session.and_then(|id| self.sessions.get(&id)).copied().unwrap_or_default();
        wider(self.everything, wider(tenant, session))
    }

    /// Whether any switch is open that a caller of this tenant could use.
    pub fn any_open(
        &self,
        tenant: &TenantId,
        seen: impl Fn(SessionId) -> bool,
        now: Moment,
    ) -> bool {
        let sessions = self.sessions.iter().any(|(id, window)| window.is_open(now) && seen(*id));
        sessions || self.window(tenant, None).is_open(now)
    }

    pub fn deadline(&self) -> Option<Moment> {
        self.windows().filter_map(WriteWindow::closes_at).min()
    }

    /// Drops the switches that have closed by themselves; says whether there were any.
    pub fn on_time(&mut self, now: Moment) -> bool {
        let before = self.windows().count();
        let was_open = self.everything != WriteWindow::Closed;
        if !self.everything.is_open(now) {
            self.everything = WriteWindow::Closed;
        }
        self.tenants.retain(|_, window| window.is_open(now));
        self.sessions.retain(|_, window| window.is_open(now));
        let closed = was_open && self.everything == WriteWindow::Closed;
        closed || self.windows().count() != before
    }

    /// Drops the switches of sessions that are not there; says whether there were any.
    pub fn keep_sessions(&mut self, there: impl Fn(SessionId) -> bool) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|id, _| there(*id));
        self.sessions.len() != before
    }

    pub fn open(&self, now: Moment) -> Vec<(Scope, WriteWindow)> {
        let everything = std::iter::once((Scope::Everything, self.everything));
        let tenants = self.tenants.iter().map(|(id, window)| (Scope::Tenant(id.clone()), *window));
        let sessions = self.sessions.iter().map(|(id, window)| (Scope::Session(*id), *window));
        everything
            .chain(tenants)
            .chain(sessions)
            .filter(|(_, window)| window.is_open(now))
            .collect()
    }

    fn windows(&self) -> impl Iterator<Item = WriteWindow> {
        let scoped = self.tenants.values().chain(self.sessions.values());
        std::iter::once(&self.everything).chain(scoped).copied()
    }
}

impl FromIterator<(Scope, WriteWindow)> for Switches {
    /// Everything is off but what these switches open; what [`Switches::open`] told makes the
    /// switches that told it.
    fn from_iter<T: IntoIterator<Item = (Scope, WriteWindow)>>(on: T) -> Self {
        let mut switches = Self::default();
        for (scope, window) in on {
            switches.set(scope, window);
        }
        switches
    }
}

fn wider(one: WriteWindow, other: WriteWindow) -> WriteWindow {
    match (one, other) {
        (WriteWindow::Open, _) | (_, WriteWindow::Open) => WriteWindow::Open,
        (WriteWindow::Until(a), WriteWindow::Until(b)) => WriteWindow::Until(a.max(b)),
        (WriteWindow::Until(at), WriteWindow::Closed)
        | (WriteWindow::Closed, WriteWindow::Until(at)) => WriteWindow::Until(at),
        (WriteWindow::Closed, WriteWindow::Closed) => WriteWindow::Closed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn session(n: u128) -> SessionId {
        SessionId::from_random(Uuid::from_u128(n << 80))
    }

    fn own() -> TenantId {
        TenantId::of_uid(1000)
    }

    #[test]
    fn a_session_is_writable_where_any_switch_that_covers_it_is_on() {
        let mut switches = Switches::default();
        switches.set(Scope::Session(session(1)), WriteWindow::Open);
        assert!(switches.window(&own(), Some(session(1))).is_open(at(0)));
        assert!(!switches.window(&own(), Some(session(2))).is_open(at(0)));
        assert!(!switches.window(&own(), None).is_open(at(0)));
        switches.set(Scope::Tenant(own()), WriteWindow::Open);
        assert!(switches.window(&own(), Some(session(2))).is_open(at(0)));
        assert!(!switches.window(&TenantId::of_uid(1), Some(session(2))).is_open(at(0)));
    }

    #[test]
    fn switching_everything_off_clears_every_switch() {
        let mut switches = Switches::default();
        switches.set(Scope::Session(session(1)), WriteWindow::Open);
        switches.set(Scope::Tenant(own()), WriteWindow::Open);
        switches.set(Scope::Everything, WriteWindow::Closed);
        assert!(!switches.window(&own(), Some(session(1))).is_open(at(0)));
        assert!(switches.open(at(0)).is_empty());
    }

    #[test]
    fn a_switch_for_a_time_closes_by_itself() {
        let mut switches = Switches::default();
        switches.set(Scope::Everything, WriteWindow::Until(at(10)));
        assert_eq!(switches.deadline(), Some(at(10)));
        assert!(switches.window(&own(), None).is_open(at(9)));
        assert!(!switches.window(&own(), None).is_open(at(10)));
        assert!(!switches.on_time(at(9)));
        assert!(switches.on_time(at(10)));
        assert_eq!(switches.deadline(), None);
    }

    #[test]
    fn what_is_on_is_all_it_takes_to_make_the_same_switches() {
        let on = [
            (Scope::Everything, WriteWindow::Until(at(10))),
            (Scope::Tenant(own()), WriteWindow::Open),
            (Scope::Session(session(1)), WriteWindow::Until(at(20))),
        ];
        let switches: Switches = on.iter().cloned().collect();
        assert_eq!(switches.open(at(0)), on);
        let later: Switches = switches.open(at(10)).into_iter().collect();
        assert_eq!(later.open(at(0)), on[1..]);
    }

    #[test]
    fn only_switches_of_sessions_that_are_there_are_kept() {
        let mut switches: Switches =
            [1, 2].map(|n| (Scope::Session(session(n)), WriteWindow::Open)).into_iter().collect();
        switches.set(Scope::Tenant(own()), WriteWindow::Open);
        assert!(switches.keep_sessions(|id| id == session(1)));
        assert!(!switches.keep_sessions(|id| id == session(1)));
        let left = [Scope::Tenant(own()), Scope::Session(session(1))];
        assert_eq!(switches.open(at(0)), left.map(|scope| (scope, WriteWindow::Open)));
    }

    #[test]
    fn the_later_end_counts_where_two_switches_cover_a_session() {
        let mut switches = Switches::default();
        switches.set(Scope::Everything, WriteWindow::Until(at(10)));
        switches.set(Scope::Session(session(1)), WriteWindow::Until(at(20)));
        assert!(switches.window(&own(), Some(session(1))).is_open(at(15)));
        assert!(!switches.window(&own(), Some(session(2))).is_open(at(15)));
    }
}
