//! Counts connections and detects when an automatically started daemon is idle.
//!
//! Connections, sessions and write switches set by an operator keep the daemon running.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use crate::surface::call::Daemon;

/// Counts connections. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCount(watch::Sender<usize>);

impl ConnectionCount {
    /// Counts one more connection until the returned value is dropped.
    pub fn enter(&self) -> Present {
        self.0.send_modify(|count| *count += 1);
        Present(self.0.clone())
    }

    /// Waits until the daemon was idle for `linger` without a break; for ever if there is none.
    ///
    /// Idle means: no connections, no sessions, and write switches as configured.
    pub async fn forsaken(&self, daemon: &Daemon, linger: Option<Duration>) {
        let Some(linger) = linger else { return pending().await };
        let mut connected = self.0.subscribe();
        let (mut sessions, mut switches) =
            (daemon.sessions.changes(), daemon.switchboard.changes());
        loop {
            // Mark the changes as seen before reading the state, so that no change is missed.
            let nobody = *connected.borrow_and_update() == 0;
            sessions.mark_unchanged();
            switches.mark_unchanged();
            let as_configured = daemon.switchboard.is_as_configured(daemon.now());
            let forsaken = nobody && daemon.sessions.is_empty() && as_configured;
            let lingering =
                async { if forsaken { tokio::time::sleep(linger).await } else { pending().await } };
            tokio::select! {
                () = lingering => return,
                _ = connected.changed() => {}
                _ = sessions.changed() => {}
                _ = switches.changed() => {}
            }
        }
    }
}

/// One counted connection, until it is dropped.
#[must_use = "a connection counts only as long as this lives"]
#[derive(Debug)]
pub struct Present(watch::Sender<usize>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use tokio::time::{Instant, advance, timeout};

    use super::*;
    use crate::config::Config;
    use crate::core::caller::{Caller, Kind};
    use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
    use crate::core::input::WriteWindow;
    use crate::core::policy::switches::Scope;
    use crate::core::policy::{Door, Reach, Standing, decide_operate};
    use crate::session::clock::Clock;
    use crate::store::journal::writer::Journal;
    use crate::transport::daemon::Assembly;
    use crate::transport::daemon::journal::journal_limits;
    use crate::transport::daemon::places::Places;

    const LINGER: Duration = Duration::from_secs(2);

    fn daemon() -> Arc<Daemon> {
        let config = Config::built_in();
        // Nothing is recorded here.
        let journal = Journal::at("/dev/null/journal".into(), journal_limits(&config));
        let clock = Clock::boot().unwrap();
        let assembly = Assembly::new(&config, Places::default(), &journal, clock);
        Arc::clone(assembly.doors.shared.gateway.daemon())
    }

    fn switch(daemon: &Daemon, window: WriteWindow) {
        let caller = Caller {
            principal: PrincipalId::Connection(1),
            connection: ConnectionId(1),
            tenant: TenantId::of_uid(1000),
            kind: Kind::Operator,
            label: Arc::from("operator"),
        };
        let standing = Standing::of_member(caller, 1_000, Door::Operator, Reach::Tenant);
        let permit = decide_operate(&standing).unwrap();
        let by = (&permit, &standing.caller);
        daemon.switchboard.set(by, &daemon.sessions, Scope::Everything, window).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_is_forsaken_once_nobody_was_there_for_long_enough() {
        let (presence, daemon) = (ConnectionCount::default(), daemon());
        let begin = Instant::now();
        presence.forsaken(&daemon, Some(LINGER)).await;
        assert_eq!(begin.elapsed(), LINGER);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_in_time_keeps_it_and_the_time_begins_anew_when_they_go() {
        let (presence, daemon) = (ConnectionCount::default(), daemon());
        let mut forsaken = pin!(presence.forsaken(&daemon, Some(LINGER)));
        assert!(timeout(LINGER / 2, forsaken.as_mut()).await.is_err());
        let (one, other) = (presence.enter(), presence.enter());
        drop(one);
        assert!(timeout(LINGER * 10, forsaken.as_mut()).await.is_err());
        drop(other);
        let begin = Instant::now();
        forsaken.await;
        assert_eq!(begin.elapsed(), LINGER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_switch_that_an_operator_set_keeps_it() {
        let (presence, daemon) = (ConnectionCount::default(), daemon());
        let mut forsaken = pin!(presence.forsaken(&daemon, Some(LINGER)));
        assert!(timeout(LINGER / 2, forsaken.as_mut()).await.is_err());
        switch(&daemon, WriteWindow::Open);
        assert!(timeout(LINGER * 10, forsaken.as_mut()).await.is_err());
        switch(&daemon, WriteWindow::Closed);
        advance(LINGER / 2).await;
        timeout(LINGER, forsaken).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_switch_that_was_set_in_a_daemon_before_keeps_it() {
        let (presence, daemon) = (ConnectionCount::default(), daemon());
        daemon.switchboard.resume([(Scope::Everything, WriteWindow::Open)].into_iter().collect());
        let mut forsaken = pin!(presence.forsaken(&daemon, Some(LINGER)));
        assert!(timeout(LINGER * 10, forsaken.as_mut()).await.is_err());
        switch(&daemon, WriteWindow::Closed);
        forsaken.await;
    }
}
