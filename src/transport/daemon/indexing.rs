//! Fills the search index: follows every session and hands over the rows that left its screen.
//!
//! History keeps those rows for a while and their numbers never change, so nothing is queued: the index knows which
//! rows it has, and the rest is read when there is time. Rows that are trimmed before that are counted.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::{RowNumber, SessionId};
use crate::core::wait::logical::{JOINED_ROWS_MAX, LogicalLine};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::store::index::content::{
    BatchOutcome, IndexedCommand, IndexedLine, IndexedSession, RowBatch,
};
use crate::store::index::retention::IndexLimits;
use crate::store::index::writer::SearchIndex;
use crate::surface::call::Daemon;
use crate::wire::command::CommandWire;

/// How long rows wait to be stored together.
const STORE_AFTER: Duration = Duration::from_millis(250);
/// How long no row must leave the screen until the index gives memory back.
const REST_AFTER: Duration = Duration::from_secs(1);
/// How soon to try again what the index refused.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// The time to store what is left when the daemon ends.
const LAST_ROWS: Duration = Duration::from_secs(2);
/// How much one batch has at most.
const ROWS_MAX: u64 = 1_024;
const BYTES_MAX: usize = 256 * 1_024;

pub(in crate::transport) fn index_limits(config: &Config) -> IndexLimits {
    const DAY: Duration = Duration::from_secs(86_400);
    let days = u32::try_from(config.search.days).unwrap_or(u32::MAX);
    IndexLimits { bytes_max: config.search.bytes as u64, age_max: DAY.saturating_mul(days) }
}

/// The index in this directory, if there is to be one.
pub(in crate::transport) fn index_of(config: &Config, directory: PathBuf) -> SearchIndex {
    match config.search.enabled {
        true => SearchIndex::start(directory, index_limits(config)),
        false => SearchIndex::off(),
    }
}

/// The task that follows all sessions.
#[derive(Debug)]
pub(in crate::transport) struct Indexing {
    ending: CancellationToken,
    task: JoinHandle<()>,
}

impl Indexing {
    pub(in crate::transport) fn start(daemon: &Daemon) -> Self {
        let ending = CancellationToken::new();
        let (sessions, index) = (daemon.sessions.clone(), daemon.index.clone());
        let task = tokio::spawn(follow_all(sessions, index, ending.clone()));
        Self { ending, task }
    }

    /// Stores what is left, in bounded time.
    pub(in crate::transport) async fn end(self) {
        let Self { ending, mut task } = self;
        ending.cancel();
        if timeout(LAST_ROWS, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("the newest rows are not indexed for searches");
        }
    }
}

async fn follow_all(sessions: Registry, index: SearchIndex, ending: CancellationToken) {
    if !index.is_on() {
        return;
    }
    let mut changes = sessions.changes();
    let (mut followed, mut followers) = (HashSet::new(), JoinSet::new());
    loop {
        changes.mark_unchanged();
        let listed = sessions.all();
        let ids: HashSet<SessionId> = listed.iter().map(Session::id).collect();
        followed.retain(|id| ids.contains(id));
        for session in listed.into_iter().filter(|session| followed.insert(session.id())) {
            let clock = sessions.clock().clone();
            let follower = SessionFollower {
                session,
                index: index.clone(),
                clock,
                next: 0,
                commands: BTreeSet::new(),
            };
            followers.spawn(follower.run(ending.clone()));
        }
        while followers.try_join_next().is_some() {}
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            () = ending.cancelled() => break,
        }
    }
    while followers.join_next().await.is_some() {}
}

/// Follows one session until it ends.
struct SessionFollower {
    session: Session,
    index: SearchIndex,
    clock: Clock,
    /// Up to which row the index has it.
    next: u64,
    /// The commands of the frame that the index has. A later one may end before an earlier one.
    commands: BTreeSet<u64>,
}

/// How far a follower came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowProgress {
    /// The index has all rows that left the screen.
    UpToDate,
    /// And no more will come.
    Ended,
    Refused,
}

impl SessionFollower {
    async fn run(mut self, ending: CancellationToken) {
        loop {
            let is_last = ending.is_cancelled();
            let progress = self.catch_up().await;
            if is_last || progress == FollowProgress::Ended {
                return;
            }
            if progress == FollowProgress::UpToDate {
                let scrolled = &self.session.live().scrolled_rows;
                let rests = async {
                    sleep(REST_AFTER).await;
                    self.index.rest();
                    std::future::pending().await
                };
                tokio::select! {
                    () = scrolled.changed() => {}
                    () = rests => {}
                    // Its task is over, so that the next look is the last.
                    () = self.session.closed() => {
                        self.catch_up().await;
                        return;
                    }
                    () = ending.cancelled() => continue,
                }
            }
            let pause = if progress == FollowProgress::Refused { STORE_AGAIN } else { STORE_AFTER };
            tokio::select! {
                () = sleep(pause) => {}
                () = ending.cancelled() => {}
            }
        }
    }

    /// Hands over all that the index lacks of the newest frame.
    async fn catch_up(&mut self) -> FollowProgress {
        loop {
            let frame = self.session.frame();
            let reader = BatchReader {
                session: self.indexed_session(),
                clock: self.clock.clone(),
                next: self.next,
                commands: self.commands.clone(),
            };
            let shown = Arc::clone(&frame);
            let Ok(read) = spawn_blocking(move || reader.read(&shown)).await else {
                return FollowProgress::Ended;
            };
            let Some(batch) = read else { return FollowProgress::UpToDate };
            let (ended, next) = (batch.ended, batch.next_row);
            let commands: Vec<u64> = batch.commands.iter().map(|command| command.number).collect();
            match self.index.store(batch).await {
                BatchOutcome::Stored => {
                    self.next = next;
                    self.commands.extend(commands);
                    let kept = frame.commands.value.iter().next().map_or(0, |first| first.id.0);
                    self.commands = self.commands.split_off(&kept);
                    if ended {
                        return FollowProgress::Ended;
                    }
                }
                // It has them from before, or was created again.
                BatchOutcome::Expected { from_row } => {
                    (self.next, self.commands) = (from_row, BTreeSet::new());
                }
                BatchOutcome::Refused => return FollowProgress::Refused,
            }
        }
    }

    fn indexed_session(&self) -> IndexedSession {
        let Self { session, .. } = self;
        IndexedSession { id: session.id(), tenant: session.tenant().clone(), name: session.name() }
    }
}

/// Reads the next batch of a frame.
struct BatchReader {
    session: IndexedSession,
    clock: Clock,
    next: u64,
    commands: BTreeSet<u64>,
}

impl BatchReader {
    /// The next batch; `None` if the index has all.
    fn read(self, frame: &Arc<Frame>) -> Option<RowBatch> {
        let is_over = frame.exit.value.is_some();
        let end = end_of_rows(frame, is_over);
        let first = self.next.max(frame.history.first().0);
        let mut batch = RowBatch {
            session: self.session,
            from_row: self.next,
            next_row: first,
            skipped: first - self.next,
            lines: Vec::new(),
            commands: Vec::new(),
            at_ms: unix_ms(&self.clock),
            ended: false,
        };
        let mut bytes = 0;
        while batch.next_row < end && batch.next_row - first < ROWS_MAX && bytes < BYTES_MAX {
            let row = RowNumber(batch.next_row);
            let Some(line) = LogicalLine::around(frame, row) else {
                // Numbers between history and a screen that was wrapped anew name nothing.
                batch.next_row = frame.base_row.0.clamp(row.0 + 1, end);
                continue;
            };
            if !is_over && line.end().0 > end && line.end().0 - row.0 < JOINED_ROWS_MAX {
                // Its last rows are still on the screen.
                break;
            }
            batch.next_row = line.end().0.min(end);
            bytes += line.text().len();
            if !line.text().is_empty() {
                let text = line.text().to_owned();
                batch.lines.push(IndexedLine { row: line.first().0, text });
            }
        }
        let ended = frame.commands.value.iter().filter(|it| it.finish.is_some());
        let fresh = ended.filter(|it| !self.commands.contains(&it.id.0));
        batch.commands =
            fresh.map(|it| indexed(CommandWire::of(it, &self.clock), it.from.row)).collect();
        batch.ended = is_over && batch.next_row >= end;
        let is_empty = batch.next_row == batch.from_row && batch.commands.is_empty();
        (batch.ended || !is_empty).then_some(batch)
    }
}

/// The row after the last that is final.
fn end_of_rows(frame: &Frame, is_over: bool) -> u64 {
    match (is_over, frame.mode.value) {
        (true, ScreenMode::Normal) => frame.end_of_text().0,
        (true, ScreenMode::Alternate) | (false, _) => frame.history.end().0,
    }
}

fn indexed(command: CommandWire, row: RowNumber) -> IndexedCommand {
    IndexedCommand {
        number: command.command_id,
        text: command.command,
        directory: command.cwd,
        by: command.by,
        started_ms: command.started,
        duration_ms: command.duration_ms,
        exit_code: command.exit_code,
        row: row.0,
    }
}

fn unix_ms(clock: &Clock) -> u64 {
    let since = clock.wall_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
