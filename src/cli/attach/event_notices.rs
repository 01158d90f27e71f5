//! Events for the person at the terminal, as the configuration asks for.

use std::fmt;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::cli::daemon::DaemonClient;
use crate::cli::events::EventFollower;
use crate::cli::failure::CliFailure;
use crate::core::event::EventKinds;
use crate::wire::event::EventWire;

/// How many notices may wait for a slow terminal; more are dropped.
const WAITING_MAX: usize = 16;

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
            if let Err(error) = follow(socket, &kinds, &sender).await {
                tracing::debug!(?error, "events are not shown any more");
            }
            pending().await
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
    loop {
        for event in events.next().await?.events {
            if kinds.contains(&event.kind) {
                let notice = notice_of(&event, events.daemon()).await;
                let _ = sender.try_send(notice);
            }
        }
    }
}

async fn notice_of(event: &EventWire, daemon: &DaemonClient) -> String {
    let summary = event.summary();
    let Some(id) = &event.session else { return summary };
    // One that was removed has no name any more.
    let name = daemon.session(id).await.map_or_else(|_| id.clone(), |session| session.name);
    format!("{name}: {summary}")
}
