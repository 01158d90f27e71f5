//! Runs the operator's command for the events that the configuration names.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};

use crate::config::NotifyConfig;
use crate::core::burst::Burst;
use crate::core::event::EventKinds;
use crate::store::journal::events::{EventPage, EventQuery, EventRecord, events};
use crate::surface::call::Daemon;
use crate::surface::control::list_events::wire_of;
use crate::transport::unix::event_command::{EventCommandEnd, run_event_command};
use crate::wire::event::EventWire;

/// How many commands run without a pause, and how soon one more.
const AT_ONCE: u32 = 10;
const ONE_MORE_AFTER: Duration = Duration::from_secs(1);

/// The most events that are read at a time.
const READ_MAX: usize = 256;

/// No command runs for an event that is older: others took too long.
const LATE: Duration = Duration::from_secs(60);

/// Runs the command for each event after `since`, in a task; returns where to put other settings.
pub(super) fn run_event_commands(
    tasks: &mut JoinSet<()>,
    daemon: &Arc<Daemon>,
    settings: NotifyConfig,
    since: u64,
) -> watch::Sender<NotifyConfig> {
    let (sender, settings) = watch::channel(settings);
    tasks.spawn(follow_events(Arc::clone(daemon), settings, since));
    sender
}

async fn follow_events(
    daemon: Arc<Daemon>,
    mut settings: watch::Receiver<NotifyConfig>,
    mut since: u64,
) {
    let mut newest = daemon.journal.newest_event();
    let mut pace = CommandPace::default();
    loop {
        let NotifyConfig { events, command, .. } = settings.borrow_and_update().clone();
        let known = *newest.borrow_and_update();
        if command.is_empty() || events.is_empty() {
            since = known;
        }
        while since < known {
            match read(&daemon, events.clone(), since).await {
                Ok(page) if page.looked_to > since => {
                    since = page.looked_to;
                    for event in page.events {
                        pace.run(&daemon, &command, event).await;
                    }
                }
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "events cannot be read for notify.command");
                    break;
                }
            }
        }
        let changed = tokio::select! {
            changed = newest.changed() => changed,
            changed = settings.changed() => changed,
        };
        if changed.is_err() {
            return;
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
#[derive(Debug)]
struct CommandPace {
    places: Burst,
    /// Events without a command since the last one.
    left_out: u64,
}

impl Default for CommandPace {
    fn default() -> Self {
        Self { places: Burst::new(AT_ONCE, ONE_MORE_AFTER), left_out: 0 }
    }
}

impl CommandPace {
    async fn run(&mut self, daemon: &Daemon, command: &str, event: EventRecord) {
        let clock = daemon.sessions.clock();
        let is_late = is_older(&event, clock.wall_time(), LATE);
        if is_late || !self.places.take(clock.now()) {
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
}

fn is_older(event: &EventRecord, now: SystemTime, age: Duration) -> bool {
    let at = UNIX_EPOCH + Duration::from_millis(event.at_ms);
    now.duration_since(at).is_ok_and(|passed| passed > age)
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
