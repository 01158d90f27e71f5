//! The journal of a daemon: how sessions and the gateway reach it, and when it is synced to the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::config::Config;
use crate::config::paths::RuntimePaths;
use crate::core::journal::JournalEntry;
use crate::session::clock::Clock;
use crate::session::recorder::ActRecorder;
use crate::store::journal::writer::{Journal, JournalLimits};
use crate::transport::unix::lock::DaemonLock;

/// How long records wait to be synced to the disk together. What a power failure loses.
const SYNC_AFTER: Duration = Duration::from_millis(200);

/// How soon to try again to write what the disk did not take.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

pub(in crate::transport) fn journal_limits(config: &Config) -> JournalLimits {
    JournalLimits { bytes_max: config.journal.bytes as u64, keep_input: config.journal.keep_input }
}

/// The journal of this daemon, while its lock is valid.
pub(in crate::transport) fn journal_of(
    paths: &RuntimePaths,
    state: Option<&Path>,
    config: &Config,
    lock: &Arc<DaemonLock>,
) -> Journal {
    let (lock, limits) = (Arc::downgrade(lock), journal_limits(config));
    let is_ours = move || lock.upgrade().is_some_and(|lock| lock.counts());
    Journal::claimed(paths.journal(state), limits, is_ours)
}

pub(in crate::transport) fn recorder(journal: &Journal, clock: &Clock) -> ActRecorder {
    let (appends, append_clock) = (journal.clone(), clock.clone());
    let (notes, note_clock) = (journal.clone(), clock.clone());
    let told = journal.clone();
    let recorder = ActRecorder::new(
        move |entry: &JournalEntry<'_>| appends.append(append_clock.wall_time(), entry),
        move |entry: &JournalEntry<'_>| notes.note(note_clock.wall_time(), entry),
    );
    recorder.with_told(move |session| told.take_told(session))
}

/// Opens the journal before anything is recorded, and returns what syncs it to the disk until that is dropped.
pub(in crate::transport) fn keep_journal(
    journal: Journal,
    clock: &Clock,
) -> impl Future<Output = ()> + Send + use<> {
    if let Err(error) = journal.open(clock.wall_time()) {
        tracing::error!(%error, "nothing can be written to sessions until the journal can be");
    }
    sync_appended(journal, clock.clone())
}

async fn sync_appended(journal: Journal, clock: Clock) {
    let mut waits = false;
    loop {
        match waits {
            // The disk may take it now.
            true => sleep(WRITE_AGAIN).await,
            false => journal.appended().await,
        }
        sleep(SYNC_AFTER).await;
        let (synced, at) = (journal.clone(), clock.wall_time());
        // It was reported there if it failed.
        waits = spawn_blocking(move || synced.sync(at)).await.unwrap_or(false);
    }
}
