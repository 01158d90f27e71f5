//! The ways a daemon ends: with its sessions, or leaving them for the next daemon.
//!
//! The order matters. Calls that wait for a session are answered when it ends. They are disconnected when it stays, so
//! that it never appears gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::session::registry::{Registry, Unended};
use crate::surface::call::Daemon;
use crate::transport::daemon::indexing::Indexing;
use crate::transport::daemon::kept_switches::KeptSwitches;
use crate::transport::door::Doors;
use crate::transport::notify::{News, Notifier};
use crate::transport::signals::EndSignal;
use crate::transport::unix::handed::Numbers;
use crate::transport::unix::handed::onward::ignore_hangup;
use crate::transport::unix::limits::DescriptorLimit;
use crate::transport::unix::lock::DaemonLock;

/// The time for all sessions to end. Each one's signals take up to three seconds, the final scans a second, and the
/// end of its shim half a second.
const SHUT_DOWN: Duration = Duration::from_millis(4_500);
/// The time for all sessions to store what the next daemon needs.
const LEAVE_MAX: Duration = Duration::from_secs(8);
/// The time for clients to hang up when the daemon ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// The time for waiting calls to be answered.
const LAST_WAITS: Duration = Duration::from_secs(2);
/// The time for last answers before clients of remaining sessions are disconnected.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonEnd {
    /// With all its sessions.
    Stopped,
    /// Like [`DaemonEnd::Stopped`], but some processes of its sessions still run.
    Unfinished,
    /// Its sessions continue, and the next daemon finds them.
    Left,
    /// Its sessions continue, and another program replaces this one in the same process.
    Replaced,
}

impl From<EndSignal> for DaemonEnd {
    fn from(told: EndSignal) -> Self {
        match told {
            EndSignal::End => Self::Stopped,
            EndSignal::Leave => Self::Left,
        }
    }
}

/// The state of the process at start, as far as the next program needs it.
#[derive(Debug)]
pub(super) struct FoundAtStart {
    pub(super) sockets: Numbers,
    pub(super) descriptors: DescriptorLimit,
    pub(super) hangup_ignored: bool,
}

impl FoundAtStart {
    fn restore(&self) -> io::Result<()> {
        self.sockets.pass_on()?;
        self.descriptors.restore()?;
        if self.hangup_ignored { ignore_hangup() } else { Ok(()) }
    }
}

/// Everything that a daemon releases at its end.
pub(super) struct Teardown {
    pub(super) daemon: Arc<Daemon>,
    pub(super) registry: Registry,
    pub(super) doors: Doors,
    pub(super) notifier: Arc<Notifier>,
    pub(super) tasks: JoinSet<()>,
    pub(super) kept: Arc<KeptSwitches>,
    pub(super) lock: Arc<DaemonLock>,
    pub(super) found: FoundAtStart,
}

impl Teardown {
    /// Ends the daemon in this way and returns the result. What sessions showed last is indexed after all else.
    pub(super) async fn end(self, told: DaemonEnd, indexing: Indexing) -> DaemonEnd {
        let ended = self.end_all(told).await;
        indexing.end().await;
        ended
    }

    async fn end_all(self, told: DaemonEnd) -> DaemonEnd {
        match told {
            DaemonEnd::Stopped | DaemonEnd::Unfinished => return self.stop().await,
            DaemonEnd::Left => {
                self.notifier.tell(News::Stopping).await;
                self.leave().await;
            }
            DaemonEnd::Replaced => self.give_way().await,
        }
        told
    }

    async fn stop(mut self) -> DaemonEnd {
        tracing::info!("stopping");
        self.notifier.tell(News::Stopping).await;
        self.doors.closing.cancel();
        let (unended, ()) = tokio::join!(end_sessions(&self.registry), self.daemon.mounts.end());
        // Answer calls that wait for a session of these.
        let _ = timeout(LAST_WAITS, self.daemon.departure.nobody_waits()).await;
        // Answer the client that stopped the daemon, too.
        self.doors.tasks.close();
        let _ = timeout(LAST_ANSWERS, self.doors.tasks.wait()).await;
        hang_up(&self.doors).await;
        // Dropping the listeners removes their sockets.
        self.tasks.shutdown().await;
        self.kept.discard();
        if unended.is_empty() { DaemonEnd::Stopped } else { DaemonEnd::Unfinished }
    }

    /// Releases everything except the lock, which is returned.
    async fn leave(mut self) -> (Arc<DaemonLock>, FoundAtStart) {
        tracing::info!(sessions = self.registry.all().len(), "leaving the sessions");
        // Answer waiting calls while their connections exist.
        let _ = timeout(LAST_WAITS, self.daemon.departure.begin()).await;
        self.doors.closing.cancel();
        self.doors.tasks.close();
        // Let calls finish that are about to be answered.
        let _ = timeout(LAST_ANSWERS, self.doors.tasks.wait()).await;
        self.registry.spare_commands();
        hang_up(&self.doors).await;
        self.daemon.mounts.end().await;
        // Do this before the sessions are left; after that, this daemon must not change them.
        self.tasks.shutdown().await;
        if timeout(LEAVE_MAX, self.registry.leave()).await.is_err() {
            tracing::error!("some sessions did not store their state in time");
        }
        (self.lock, self.found)
    }

    /// Leaves the sessions and prepares the process for the next program. Keeps the lock, so that no other daemon
    /// starts meanwhile.
    async fn give_way(self) {
        self.notifier.tell(News::Reloading).await;
        let (lock, found) = self.leave().await;
        let passed_on = DaemonLock::clone(&lock).pass_on();
        if let Err(error) = passed_on.and_then(|()| found.restore()) {
            tracing::error!(%error, "some state was not stored for the next daemon");
        }
    }
}

/// Ends every session with all its processes in bounded time. Returns those that did not end.
pub(in crate::transport) async fn end_sessions(registry: &Registry) -> Arc<[Unended]> {
    let unended = registry.shut_down(SHUT_DOWN).await;
    for Unended { session, name, what } in unended.iter() {
        tracing::error!(%session, %name, what, "a session did not end");
    }
    unended
}

async fn hang_up(doors: &Doors) {
    doors.hanging_up.cancel();
    doors.tasks.close();
    let _ = timeout(FAREWELL, doors.tasks.wait()).await;
}
