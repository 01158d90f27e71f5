//! Events for the person at the terminal, as the configuration asks for.

use std::fmt;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::cli::daemon::DaemonClient;
use crate::cli::events::EventFollower;
use crate::cli::failure::CliFailure;
use crate::core::burst::Burst;
use crate::core::event::EventKinds;
use crate::core::moment::Moment;
use crate::wire::event::EventWire;

/// How many notices may wait for a slow terminal; more are dropped.
const WAITING_MAX: usize = 16;

/// How many notices come at once, and how soon one more.
const AT_ONCE: u32 = 10;
const ONE_MORE_AFTER: Duration = Duration::from_secs(1);

/// The longest text of a notice, in bytes.
const SUMMARY_MAX: usize = 200;

/// How soon to follow again after a failure.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Notices of events since this was made.
pub struct EventNotices {
    notices: mpsc::Receiver<String>,
    following: Pin<Box<dyn Future<Output = ()>>>,
}

impl fmt::Debug for EventNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventNotices")
    }
}

impl EventNotices {
    /// None ever come.
    pub fn off() -> Self {
        Self { notices: mpsc::channel(1).1, following: Box::pin(pending()) }
    }

    /// Follows the events of these kinds at the daemon with this socket, on a connection of its own.
    pub fn of_kinds(socket: PathBuf, kinds: EventKinds) -> Self {
        let (sender, notices) = mpsc::channel(WAITING_MAX);
        let following = async move {
            loop {
                if let Err(error) = follow(socket.clone(), &kinds, &sender).await {
                    tracing::debug!(?error, "events are not followed");
                }
                sleep(AGAIN_AFTER).await;
            }
        };
        Self { notices, following: Box::pin(following) }
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> String {
        tokio::select! {
            Some(notice) = self.notices.recv() => notice,
            () = &mut self.following => pending().await,
            else => pending().await,
        }
    }
}

async fn follow(
    socket: PathBuf,
    kinds: &EventKinds,
    sender: &mpsc::Sender<String>,
) -> Result<(), CliFailure> {
    let mut events = EventFollower::new(DaemonClient::connect(&socket).await?, None, None);
    // What was there before is not new.
    events.first(None, 1).await?;
    let (begun, mut places) = (Instant::now(), Burst::new(AT_ONCE, ONE_MORE_AFTER));
    let mut left_out = 0;
    loop {
        for event in events.next().await?.events {
            if !kinds.contains(&event.kind) {
                continue;
            }
            if !places.take(Moment::from_boot(begun.elapsed())) {
                left_out += 1;
                continue;
            }
            let mut notice = notice_of(&event, events.daemon()).await;
            if left_out > 0 {
                notice += &format!(" (and {} more before)", std::mem::take(&mut left_out));
            }
            let _ = sender.try_send(notice);
        }
    }
}

async fn notice_of(event: &EventWire, daemon: &DaemonClient) -> String {
    let mut summary = event.summary();
    summary.truncate(summary.floor_char_boundary(SUMMARY_MAX));
    let Some(id) = &event.session else { return summary };
    // One that was removed has no name any more.
    let name = daemon.session(id).await.map_or_else(|_| id.clone(), |session| session.name);
    format!("{name}: {summary}")
}
