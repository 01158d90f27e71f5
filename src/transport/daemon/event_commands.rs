//! Runs the operator's command for the events that the configuration names.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::config::NotifyConfig;
use crate::core::event::EventKinds;
use crate::store::journal::events::{EventPage, EventQuery, EventRecord, events};
use crate::surface::call::Daemon;
use crate::surface::control::list_events::wire_of;
use crate::transport::unix::event_command::{EventCommandEnd, run_event_command};
use crate::wire::event::EventWire;

/// How many commands run without a pause, and how soon one more.
const BURST: u32 = 10;
const ONE_MORE_AFTER: Duration = Duration::from_secs(1);

/// The most events that are read at a time; of more only the number counts.
const READ_MAX: usize = 256;

/// Runs the command for each event from now on.
pub(super) async fn run_event_commands(
    daemon: Arc<Daemon>,
    mut settings: watch::Receiver<NotifyConfig>,
) {
    let mut newest = daemon.journal.newest_event();
    let mut since = *newest.borrow_and_update();
    let mut pace = CommandPace::default();
    loop {
        let changed = tokio::select! {
            changed = newest.changed() => changed,
            changed = settings.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let NotifyConfig { events, command, .. } = settings.borrow_and_update().clone();
        let known = *newest.borrow_and_update();
        if command.is_empty() || events.is_empty() {
            since = known;
            continue;
        }
        match read(&daemon, events, since).await {
            Ok(page) => {
                since = page.looked_to;
                for event in page.events {
                    pace.run(&daemon, &command, event).await;
                }
            }
            Err(error) => tracing::warn!(%error, "events cannot be read for notify.command"),
        }
    }
}

async fn read(daemon: &Daemon, kinds: EventKinds, since: u64) -> io::Result<EventPage> {
    let directory = daemon.journal.directory().to_owned();
    let reading = spawn_blocking(move || {
        let wants = |event: &EventRecord| kinds.contains(&event.kind);
        events(&directory, &EventQuery { since: Some(since), limit: READ_MAX, wants: &wants })
    });
    reading.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// How often commands run.
#[derive(Debug, Default)]
struct CommandPace {
    /// When [`BURST`] of them may run at once again.
    full_at: Option<Instant>,
    /// Events without a command since the last one.
    left_out: u64,
}

impl CommandPace {
    async fn run(&mut self, daemon: &Daemon, command: &str, event: EventRecord) {
        if !self.take_place(Instant::now()) {
            self.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut self.left_out);
        let event = wire_of(event);
        let variables = variables_of(daemon, &event, left_out);
        let input = format!("{}\n", json!(event));
        match run_event_command(command, &variables, &input).await {
            Ok(EventCommandEnd::Exited(status)) if status.success() => {}
            Ok(EventCommandEnd::Exited(status)) => {
                tracing::warn!(%status, kind = event.kind, "notify.command failed");
            }
            Ok(EventCommandEnd::Killed) => {
                tracing::warn!(kind = event.kind, "notify.command took too long and was killed");
            }
            Err(error) => tracing::warn!(%error, "notify.command cannot be started"),
        }
    }

    fn take_place(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let is_free = full_at - now <= ONE_MORE_AFTER * (BURST - 1);
        if is_free {
            self.full_at = Some(full_at + ONE_MORE_AFTER);
        }
        is_free
    }
}

fn variables_of(daemon: &Daemon, event: &EventWire, left_out: u64) -> [(&'static str, String); 5] {
    let id = event.session.clone().unwrap_or_default();
    let session = id.parse().ok().and_then(|id| daemon.sessions.get(id));
    let name = session.map(|session| session.name().to_string()).unwrap_or_default();
    [
        ("TERMGATE_EVENT", event.kind.clone()),
        ("TERMGATE_EVENT_NAME", name),
        ("TERMGATE_EVENT_SESSION", id),
        ("TERMGATE_EVENT_TEXT", event.summary()),
        ("TERMGATE_EVENTS_LEFT_OUT", left_out.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_commands_run_at_once_and_then_one_a_second() {
        let (mut pace, now) = (CommandPace::default(), Instant::now());
        assert_eq!((0..20).filter(|_| pace.take_place(now)).count(), 10);
        assert!(!pace.take_place(now + Duration::from_millis(999)));
        let later = now + ONE_MORE_AFTER;
        assert!(pace.take_place(later) && !pace.take_place(later));
        let much_later = now + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| pace.take_place(much_later)).count(), 10);
    }
}
