//! How a daemon ends: with its sessions, or without them, for one that comes after it.
//!
//! It decides nothing. What differs is the order: whoever waits for a session that ends is told so,
//! and whoever waits for one that goes on is hung up on before it could seem to be gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::session::registry::Registry;
use crate::session::registry::parting::Unended;
use crate::surface::call::Daemon;
use crate::transport::daemon::kept_switches::KeptSwitches;
use crate::transport::door::Doors;
use crate::transport::notify::{News, Notifier};
use crate::transport::signals::Told;
use crate::transport::unix::handed::Numbers;
use crate::transport::unix::handed::onward::ignore_hangup;
use crate::transport::unix::limits::DescriptorLimit;
use crate::transport::unix::lock::DaemonLock;

/// How long all sessions together may take to end. The ladder of each takes three seconds at most, a last
/// look at what is left half a second, and the end of its shim another half.
const SHUT_DOWN: Duration = Duration::from_millis(4_500);
/// How long all sessions together may take to hand over what the next daemon needs.
const LEAVE_MAX: Duration = Duration::from_secs(8);
/// How long clients may take to hang up when the daemon ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long whoever waits may take to be answered that their session has ended or the daemon leaves.
const LAST_WAITS: Duration = Duration::from_secs(2);
/// How long is still answered before clients of sessions that go on are hung up on.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// How a daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With all its sessions.
    Stopped,
    /// The same, but something of its sessions did not end.
    Unfinished,
    /// Its sessions go on, and the next daemon finds them.
    Left,
    /// Its sessions go on, and another program is to take its place in this process.
    Replaced,
}

impl From<Told> for Ended {
    fn from(told: Told) -> Self {
        match told {
            Told::End => Self::Stopped,
            Told::Leave => Self::Left,
        }
    }
}

/// How the process was found at its start, as far as the next program must find it so.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) sockets: Numbers,
    pub(super) descriptors: DescriptorLimit,
    pub(super) hangup_ignored: bool,
}

impl Found {
    fn restore(&self) -> io::Result<()> {
        self.sockets.pass_on()?;
        self.descriptors.restore()?;
        if self.hangup_ignored { ignore_hangup() } else { Ok(()) }
    }
}

/// All that a daemon has to let go of.
pub(super) struct Ending {
    pub(super) daemon: Arc<Daemon>,
    pub(super) registry: Registry,
    pub(super) doors: Doors,
    pub(super) notifier: Arc<Notifier>,
    pub(super) tasks: JoinSet<()>,
    pub(super) kept: Arc<KeptSwitches>,
    pub(super) lock: Arc<DaemonLock>,
    pub(super) found: Found,
}

impl Ending {
    /// Ends the daemon as it was told to, and says how it did.
    pub(super) async fn end(self, told: Ended) -> Ended {
        match told {
            Ended::Stopped | Ended::Unfinished => return self.stop().await,
            Ended::Left => {
                self.notifier.tell(News::Stopping).await;
                self.leave().await;
            }
            Ended::Replaced => self.give_way().await,
        }
        told
    }

    async fn stop(mut self) -> Ended {
        tracing::info!("stopping");
        self.notifier.tell(News::Stopping).await;
        self.doors.closing.cancel();
        let unended = end_sessions(&self.registry).await;
        // Whoever waited for one of them is answered how it ended.
        let _ = timeout(LAST_WAITS, self.daemon.departure.nobody_waits()).await;
        // And whoever stopped the daemon, what did not.
        self.doors.tasks.close();
        let _ = timeout(LAST_ANSWERS, self.doors.tasks.wait()).await;
        hang_up(&self.doors).await;
        // Dropping the listeners removes their sockets.
        self.tasks.shutdown().await;
        self.kept.discard();
        if unended.is_empty() { Ended::Stopped } else { Ended::Unfinished }
    }

    /// Lets go of everything but the lock, which comes back.
    async fn leave(mut self) -> (Arc<DaemonLock>, Found) {
        tracing::info!(sessions = self.registry.all().len(), "leaving the sessions");
        // Whoever waits is told, while there is somebody to tell them.
        let _ = timeout(LAST_WAITS, self.daemon.departure.begin()).await;
        self.doors.closing.cancel();
        self.doors.tasks.close();
        // What was about to be answered is.
        let _ = timeout(LAST_ANSWERS, self.doors.tasks.wait()).await;
        self.registry.spare_commands();
        hang_up(&self.doors).await;
        // Before the sessions go, after which nobody here is to clear up.
        self.tasks.shutdown().await;
        if timeout(LEAVE_MAX, self.registry.leave()).await.is_err() {
            tracing::error!("some sessions did not hand over in time");
        }
        (self.lock, self.found)
    }

    /// Leaves, and makes the process fit for the next program. It keeps the lock, so that none can
    /// come between.
    async fn give_way(self) {
        self.notifier.tell(News::Reloading).await;
        let (lock, found) = self.leave().await;
        let passed_on = DaemonLock::clone(&lock).pass_on();
        if let Err(error) = passed_on.and_then(|()| found.restore()) {
            tracing::error!(%error, "the next program will not find everything as it was");
        }
    }
}

/// Ends every session with all its processes, in bounded time, and says what did not end.
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
