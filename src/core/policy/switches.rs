//! The write switches: whether anybody may write, for everything, one tenant or one session, and
//! until when. The narrowest switch decides; when one for a time runs out, what held before it holds again.

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
    tenants: BTreeMap<TenantId, NarrowSwitch>,
    sessions: BTreeMap<SessionId, NarrowSwitch>,
}

/// The switch of one tenant or session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NarrowSwitch {
    window: WriteWindow,
    /// Whether it is off while its window is closed. Otherwise wider switches decide then.
    protected: bool,
}

impl NarrowSwitch {
    fn set(&mut self, window: WriteWindow) {
        self.protected = match window {
            WriteWindow::Closed => true,
            WriteWindow::Open => false,
            WriteWindow::Until(_) => self.protected,
        };
        self.window = set_over(self.window, window);
    }

    /// What it leaves of the window of wider switches.
    fn within(self, wide: WriteWindow) -> WriteWindow {
        wider(self.window, if self.protected { WriteWindow::Closed } else { wide })
    }

    /// Closes the window if it is not open any more; says whether the switch still decides anything.
    fn on_time(&mut self, now: Moment) -> bool {
        if !self.window.is_open(now) {
            self.window = WriteWindow::Closed;
        }
        self.protected || self.window != WriteWindow::Closed
    }
}

impl Switches {
    /// Sets one switch.
    ///
    /// Closing that of a tenant or session protects it from wider ones that are on. Closing
    /// [`Scope::Everything`] closes all of them; what is protected stays protected. A time over a switch that is
    /// on without one changes nothing.
    pub fn set(&mut self, scope: Scope, window: WriteWindow) {
        match scope {
            Scope::Everything if window == WriteWindow::Closed => {
                self.everything = WriteWindow::Closed;
                self.narrow().for_each(|switch| switch.window = WriteWindow::Closed);
                self.forget(|switch| switch.protected);
            }
            Scope::Everything => self.everything = set_over(self.everything, window),
            Scope::Tenant(tenant) => self.tenants.entry(tenant).or_default().set(window),
            Scope::Session(session) => self.sessions.entry(session).or_default().set(window),
        }
    }

    /// What the switches leave open for a session, or for sessions yet to be created when none is named.
    pub fn window(&self, tenant: &TenantId, session: Option<SessionId>) -> WriteWindow {
        let tenant = self.of_tenant(tenant).copied().unwrap_or_default();
        let session = session.and_then(|id| self.sessions.get(&id)).copied().unwrap_or_default();
        session.within(tenant.within(self.everything))
    }

    /// Whether a session, or its tenant, stays off while everything is on.
    pub fn is_protected(&self, tenant: &TenantId, session: SessionId) -> bool {
        let tenant = self.of_tenant(tenant).is_some_and(|switch| switch.protected);
        tenant || self.sessions.get(&session).is_some_and(|switch| switch.protected)
    }

    pub fn deadline(&self) -> Option<Moment> {
        let narrow = self.tenants.values().chain(self.sessions.values());
        let narrow = narrow.filter_map(|switch| switch.window.closes_at());
        narrow.chain(self.everything.closes_at()).min()
    }

    /// Ends the times that are over; says whether there were any.
    pub fn on_time(&mut self, now: Moment) -> bool {
        let over = self.deadline().is_some_and(|end| end <= now);
        if !self.everything.is_open(now) {
            self.everything = WriteWindow::Closed;
        }
        self.forget(|switch| switch.on_time(now));
        over
    }

    /// Drops the switches of sessions that are not there; says whether there were any.
    pub fn keep_sessions(&mut self, there: impl Fn(SessionId) -> bool) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|id, _| there(*id));
        self.sessions.len() != before
    }

    /// The switches that are on.
    pub fn open(&self, now: Moment) -> Vec<(Scope, WriteWindow)> {
        let everything = std::iter::once((Scope::Everything, self.everything));
        let narrow = self.scopes().map(|(scope, switch)| (scope, switch.window));
        everything.chain(narrow).filter(|(_, window)| window.is_open(now)).collect()
    }

    /// The tenants and sessions that stay off while everything is on, but for the time of a switch of theirs.
    pub fn protected(&self) -> Vec<Scope> {
        let protected = self.scopes().filter(|(_, switch)| switch.protected);
        protected.map(|(scope, _)| scope).collect()
    }

    /// What sets the same switches again, in this order.
    pub fn settings(&self, now: Moment) -> Vec<(Scope, WriteWindow)> {
        let protected = self.protected().into_iter().map(|scope| (scope, WriteWindow::Closed));
        protected.chain(self.open(now)).collect()
    }

    /// The switch of a tenant is also that of its private sessions.
    fn of_tenant(&self, tenant: &TenantId) -> Option<&NarrowSwitch> {
        if self.tenants.is_empty() { None } else { self.tenants.get(&tenant.of_all()) }
    }

    fn scopes(&self) -> impl Iterator<Item = (Scope, NarrowSwitch)> {
        let tenants = self.tenants.iter().map(|(id, switch)| (Scope::Tenant(id.clone()), *switch));
        let sessions = self.sessions.iter().map(|(id, switch)| (Scope::Session(*id), *switch));
        tenants.chain(sessions)
    }

    fn narrow(&mut self) -> impl Iterator<Item = &mut NarrowSwitch> {
        self.tenants.values_mut().chain(self.sessions.values_mut())
    }

    fn forget(&mut self, keep: impl Fn(&mut NarrowSwitch) -> bool) {
        self.tenants.retain(|_, switch| keep(switch));
        self.sessions.retain(|_, switch| keep(switch));
    }
}

impl FromIterator<(Scope, WriteWindow)> for Switches {
    /// Everything is off but what these settings open; those of [`Switches::settings`] make the same
    /// switches.
    fn from_iter<T: IntoIterator<Item = (Scope, WriteWindow)>>(settings: T) -> Self {
        let mut switches = Self::default();
        for (scope, window) in settings {
            switches.set(scope, window);
        }
        switches
    }
}

/// A time over what is on without one ends with what held before it, so that it is nothing.
fn set_over(before: WriteWindow, window: WriteWindow) -> WriteWindow {
    match (before, window) {
        (WriteWindow::Open, WriteWindow::Until(_)) => WriteWindow::Open,
        (_, window) => window,
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
    fn a_protected_session_is_off_while_everything_is_on() {
        let mut switches = Switches::default();
        switches.set(Scope::Session(session(1)), WriteWindow::Closed);
        // Neither of these is about the session.
        for window in [WriteWindow::Open, WriteWindow::Closed, WriteWindow::Until(at(9))] {
            switches.set(Scope::Everything, window);
            assert!(!switches.window(&own(), Some(session(1))).is_open(at(0)), "{window:?}");
            assert_eq!(switches.protected(), [Scope::Session(session(1))]);
        }
        assert!(switches.window(&own(), Some(session(2))).is_open(at(0)));
        assert!(switches.window(&own(), None).is_open(at(0)));
        switches.set(Scope::Session(session(1)), WriteWindow::Open);
        assert!(switches.window(&own(), Some(session(1))).is_open(at(0)));
        assert!(switches.protected().is_empty());
    }

    #[test]
    fn the_narrowest_switch_decides() {
        let mut switches = Switches::default();
        switches.set(Scope::Everything, WriteWindow::Open);
        switches.set(Scope::Tenant(own()), WriteWindow::Closed);
        switches.set(Scope::Session(session(1)), WriteWindow::Open);
        let other = TenantId::of_uid(1);
        let is_open = |tenant, session| switches.window(tenant, session).is_open(at(0));
        let own = own();
        assert!(is_open(&own, Some(session(1))));
        assert!(!is_open(&own, Some(session(2))));
        assert!(!is_open(&own, None));
        assert!(is_open(&other, Some(session(2))));
        assert!(switches.is_protected(&own, session(2)));
        assert!(!switches.is_protected(&other, session(2)));
    }

    #[test]
    fn what_held_before_a_switch_for_a_time_holds_again_after_it() {
        let until = WriteWindow::Until(at(10));
        let one = Scope::Session(session(1));
        // What was set before, the switch for a time, and whether the session is writable afterwards.
        let cases = [
            (&[][..], Scope::Everything, false),
            (&[(Scope::Everything, WriteWindow::Open)], Scope::Everything, true),
            (&[(Scope::Everything, WriteWindow::Closed)], Scope::Everything, false),
            (&[(Scope::Everything, WriteWindow::Open)], one.clone(), true),
            (&[(one.clone(), WriteWindow::Open)], one.clone(), true),
            (&[(one.clone(), WriteWindow::Closed)], one.clone(), false),
            (
                &[(Scope::Everything, WriteWindow::Open), (one.clone(), WriteWindow::Closed)],
                one.clone(),
                false,
            ),
        ];
        for (before, scope, after) in cases {
            let mut switches: Switches = before.iter().cloned().collect();
            switches.set(scope.clone(), until);
            let window = |switches: &Switches| switches.window(&own(), Some(session(1)));
            let case = format!("{before:?}, then {scope:?} for a time");
            assert!(window(&switches).is_open(at(9)), "{case}");
            assert_eq!(window(&switches).is_open(at(10)), after, "{case}");
            switches.on_time(at(10));
            assert_eq!(window(&switches).is_open(at(10)), after, "{case}");
            assert_eq!(switches.deadline(), None, "{case}");
        }
    }

    #[test]
    fn of_two_times_the_newer_counts() {
        let mut switches = Switches::default();
        for end in [20, 10] {
            switches.set(Scope::Everything, WriteWindow::Until(at(end)));
        }
        assert_eq!(switches.window(&own(), None), WriteWindow::Until(at(10)));
    }

    #[test]
    fn switching_everything_off_clears_every_switch_that_is_on() {
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
    fn the_settings_are_all_it_takes_to_make_the_same_switches() {
        let settings = [
            (Scope::Session(session(1)), WriteWindow::Closed),
            (Scope::Session(session(2)), WriteWindow::Closed),
            (Scope::Everything, WriteWindow::Until(at(10))),
            (Scope::Tenant(own()), WriteWindow::Open),
            (Scope::Session(session(1)), WriteWindow::Until(at(20))),
        ];
        let switches: Switches = settings.iter().cloned().collect();
        assert_eq!(switches.settings(at(0)), settings);
        let later: Switches = switches.settings(at(10)).into_iter().collect();
        assert_eq!(later.settings(at(0)), [&settings[..2], &settings[3..]].concat());
        assert_eq!(later.open(at(0)), settings[3..]);
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
