//! The thread that writes the index, and the handle that others have of it.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use rusqlite::types::Value;
use rusqlite::{
    Connection, OptionalExtension, Transaction, TransactionBehavior, params, params_from_iter,
};
use tokio::sync::{mpsc, oneshot};

use crate::shim::allocator::give_back;
use crate::store::index::content::{BatchOutcome, IndexedLine, RowBatch};
use crate::store::index::database::{FileIdentity, FileStart, IndexError, IndexFiles};
use crate::store::index::reader::OpenReaders;
use crate::store::index::retention::{IndexLimits, remove_old};
use crate::store::index::words::distinct_words;

/// How many batches wait for the thread. Whoever has more waits, and reads its rows later.
const BATCHES_MAX: usize = 4;
/// How many lines share one entry of the full-text table.
const CHUNK_LINES: usize = 64;
/// The lowest priority of a thread, which its reads and writes of the disk have too.
const NICE: i32 = 19;

/// The search index of one daemon, or none. Clones are the same index.
#[derive(Clone, Debug, Default)]
pub struct SearchIndex(Option<Arc<IndexShared>>);

pub(super) struct IndexShared {
    pub(super) files: IndexFiles,
    limits: Mutex<IndexLimits>,
    /// Files that a search found to be damaged.
    damaged: Mutex<BTreeSet<FileStart>>,
    /// Open files for the next search.
    pub(super) readers: OpenReaders,
    work: mpsc::Sender<QueuedWork>,
}

impl fmt::Debug for IndexShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexShared").field("files", &self.files).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum QueuedWork {
    Store(RowBatch, oneshot::Sender<BatchOutcome>),
    Rest,
}

impl SearchIndex {
    /// An index that has nothing and takes nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Starts the thread that writes the index in this directory. The file is created with the first batch.
    ///
    /// The thread ends after the last clone is dropped.
    pub fn start(directory: PathBuf, limits: IndexLimits) -> Self {
        let (work, queue) = mpsc::channel(BATCHES_MAX);
        let files = IndexFiles::in_directory(directory);
        let shared = Arc::new(IndexShared {
            files: files.clone(),
            limits: Mutex::new(limits),
            damaged: Mutex::default(),
            readers: OpenReaders::default(),
            work,
        });
        let shares = Arc::downgrade(&shared);
        let writer = IndexWriter { shared: shares, files, open: None, failing: false };
        let named = thread::Builder::new().name("search-index".to_owned());
        match named.spawn(move || writer.run(queue)) {
            Ok(_) => Self(Some(shared)),
            Err(error) => {
                tracing::warn!(%error, "nothing is indexed for searches");
                Self::off()
            }
        }
    }

    /// Whether there is an index.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Changes how much is kept, from the next batch on.
    pub fn set_limits(&self, limits: IndexLimits) {
        if let Some(shared) = &self.0 {
            *shared.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
        }
    }

    /// Hands over a batch as soon as there is room, and waits until it is stored.
    pub async fn store(&self, batch: RowBatch) -> BatchOutcome {
        let Some(shared) = &self.0 else { return BatchOutcome::Refused };
        let (outcome, stored) = oneshot::channel();
        if shared.work.send(QueuedWork::Store(batch, outcome)).await.is_err() {
            return BatchOutcome::Refused;
        }
        stored.await.unwrap_or(BatchOutcome::Refused)
    }

    /// Gives back the memory that only the next batch would need. To be called when none is expected soon.
    pub fn rest(&self) {
        if let Some(shared) = &self.0 {
            // If it is full, there is more to store, and another rest after that.
            let _ = shared.work.try_send(QueuedWork::Rest);
        }
    }

    pub(super) fn shared(&self) -> Option<&Arc<IndexShared>> {
        self.0.as_ref()
    }
}

impl IndexShared {
    fn limits(&self) -> IndexLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn damaged(&self) -> MutexGuard<'_, BTreeSet<FileStart>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a file cannot be read; the writer sets it aside with the next batch.
    pub(super) fn note_damaged(&self, start: FileStart) {
        self.damaged().insert(start);
    }
}

struct IndexWriter {
    shared: Weak<IndexShared>,
    files: IndexFiles,
    open: Option<OpenWriter>,
    /// Whether the last batch failed, which was reported.
    failing: bool,
}

/// The newest file.
struct OpenWriter {
    start: FileStart,
    identity: Option<FileIdentity>,
    connection: Connection,
}

impl IndexWriter {
    fn run(mut self, mut queue: mpsc::Receiver<QueuedWork>) {
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "the search index is written at normal priority");
        }
        while let Some(work) = queue.blocking_recv() {
            match work {
                QueuedWork::Store(batch, outcome) => {
                    // Whoever handed it over may be gone.
                    let _ = outcome.send(self.store(&batch));
                }
                QueuedWork::Rest => self.rest(),
            }
        }
    }

    fn rest(&self) {
        if let Some(open) = &self.open {
            // Without it, the memory stays as it is.
            let _ = open.connection.release_memory();
        }
        give_back();
    }

    fn store(&mut self, batch: &RowBatch) -> BatchOutcome {
        let Some(shared) = self.shared.upgrade() else { return BatchOutcome::Refused };
        let stored = match self.try_store(&shared, batch) {
            // SQLite reports some I/O errors as damage, so only a second failure counts.
            Err(IndexError::Damaged(_)) => {
                self.open = None;
                self.try_store(&shared, batch)
            }
            stored => stored,
        };
        let stored = match stored {
            Err(IndexError::Damaged(error)) => {
                let newest = self.files.all().last().copied();
                let aside = newest.map_or(Ok(()), |newest| self.set_aside(newest, &error));
                aside.map_err(IndexError::from).and_then(|()| self.try_store(&shared, batch))
            }
            stored => stored,
        };
        match stored {
            Ok(outcome) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the search index can be written again");
                }
                outcome
            }
            Err(error) => {
                // It may be gone, or the disk full; the next batch opens it again.
                self.open = None;
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%error, "nothing is indexed for searches until this is solved");
                }
                BatchOutcome::Refused
            }
        }
    }

    /// Sets a damaged file aside, so that its rows which are still there are wanted again.
    fn set_aside(&mut self, start: FileStart, error: &str) -> io::Result<()> {
        self.open = None;
        let aside = self.files.set_aside(start)?;
        tracing::warn!(%error, aside = %aside.display(), "a part of the search index is damaged; another one begins");
        Ok(())
    }

    fn try_store(
        &mut self,
        shared: &IndexShared,
        batch: &RowBatch,
    ) -> Result<BatchOutcome, IndexError> {
        let damaged = std::mem::take(&mut *shared.damaged());
        for start in damaged {
            if self.files.identity(start).is_some() {
                self.set_aside(start, "a search could not read it")?;
            }
        }
        let limits = shared.limits();
        let open = self.newest(limits, batch.at_ms)?;
        let transaction =
            open.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = insert(&transaction, batch)?;
        transaction.commit()?;
        remove_old(&self.files, limits, batch.at_ms);
        Ok(outcome)
    }

    /// The file that takes text now. The next one begins where the newest has enough.
    fn newest(&mut self, limits: IndexLimits, now_ms: u64) -> Result<&mut OpenWriter, IndexError> {
        let files = &self.files;
        let newest = files.all().last().copied();
        let is_current = |open: &OpenWriter| {
            Some(open.start) == newest && open.identity == files.identity(open.start)
        };
        let open = match (self.open.take().filter(is_current), newest) {
            (Some(open), _) => open,
            (None, Some(start)) => open_file(files, start)?,
            (None, None) => {
                files.create(FileStart(now_ms), |_| Ok(()))?;
                open_file(files, FileStart(now_ms))?
            }
        };
        if !limits.is_full(open.start, files.bytes(open.start), now_ms) {
            return Ok(self.open.insert(open));
        }
        // So its name says until when the one before it has text.
        let last = "SELECT ifnull(max(at), 0) FROM session";
        let last: i64 = open.connection.query_row(last, [], |row| row.get(0))?;
        let next = FileStart(last.unsigned_abs().max(open.start.0) + 1);
        let kept = files.all().first().map_or(0, |oldest| oldest.0);
        let oldest_ms = limits.oldest_ms(now_ms).max(kept);
        files.create(next, |create| copy_sessions(&open.connection, create, oldest_ms))?;
        Ok(self.open.insert(open_file(files, next)?))
    }
}

fn open_file(files: &IndexFiles, start: FileStart) -> Result<OpenWriter, IndexError> {
    let connection = files.open_writer(start)?;
    Ok(OpenWriter { start, identity: files.identity(start), connection })
}

/// Tells the next file of the sessions that go on, or have text which is kept.
fn copy_sessions(
    from: &Connection,
    to: &Transaction<'_>,
    oldest_ms: u64,
) -> Result<(), IndexError> {
    let columns = "id, tenant, name, next_row, skipped, at, ended";
    let known = format!("SELECT {columns} FROM session WHERE NOT ended OR at >= ?1");
    let added = format!("INSERT INTO session ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let (mut known, mut add) = (from.prepare(&known)?, to.prepare(&added)?);
    let mut rows = known.query([oldest_ms as i64])?;
    while let Some(row) = rows.next()? {
        let column = |number| row.get::<usize, Value>(number);
        let session: Vec<Value> = (0..7).map(column).collect::<Result<_, _>>()?;
        add.execute(params_from_iter(session))?;
    }
    Ok(())
}

fn insert(transaction: &Transaction<'_>, batch: &RowBatch) -> Result<BatchOutcome, IndexError> {
    let RowBatch { session, from_row, next_row, skipped, at_ms, ended, .. } = batch;
    let id = session.id.number() as i64;
    let known = "SELECT next_row FROM session WHERE id = ?1";
    let known: Option<i64> =
        transaction.prepare_cached(known)?.query_row([id], |row| row.get(0)).optional()?;
    let expected = known.unwrap_or(0).unsigned_abs();
    if expected != *from_row {
        return Ok(BatchOutcome::Expected { from_row: expected });
    }
    let upsert = "INSERT INTO session (id, tenant, name, next_row, skipped, at, ended)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (id) DO UPDATE SET name = ?3, next_row = ?4, skipped = skipped + ?5, at = ?6, ended = ?7";
    let (tenant, name, at) = (session.tenant.as_str(), &*session.name, *at_ms as i64);
    let (next, skipped) = (*next_row as i64, *skipped as i64);
    transaction
        .prepare_cached(upsert)?
        .execute(params![id, tenant, name, next, skipped, at, ended])?;
    for lines in batch.lines.chunks(CHUNK_LINES) {
        insert_chunk(transaction, id, at, lines)?;
    }
    let command =
        "INSERT OR IGNORE INTO command (session, number, at, duration, code, row, by, cwd, text)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut command = transaction.prepare_cached(command)?;
    for it in &batch.commands {
        let (number, started, duration) =
            (it.number as i64, it.started_ms as i64, it.duration_ms as i64);
        let (row, by, directory) = (it.row as i64, it.by.as_deref(), it.directory.as_deref());
        let code = it.exit_code;
        let added = command
            .execute(params![id, number, started, duration, code, row, by, directory, &*it.text])?;
        if added > 0 {
            insert_words(transaction, "command_words", &it.text)?;
        }
    }
    Ok(BatchOutcome::Stored)
}

fn insert_chunk(
    transaction: &Transaction<'_>,
    session: i64,
    at: i64,
    lines: &[IndexedLine],
) -> Result<(), IndexError> {
    let Some(first) = lines.first() else { return Ok(()) };
    let row = |line: &IndexedLine| {
        u32::try_from(line.row.saturating_sub(first.row)).unwrap_or(u32::MAX).to_le_bytes()
    };
    let rows: Vec<u8> = lines.iter().flat_map(row).collect();
    let text = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
    let chunk =
        "INSERT INTO chunk (session, at, first_row, rows, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    let first = first.row as i64;
    transaction.prepare_cached(chunk)?.execute(params![session, at, first, rows, text])?;
    insert_words(transaction, "chunk_words", &text)
}

/// Adds the words of the entry that was added last to the full-text table of its table.
fn insert_words(
    transaction: &Transaction<'_>,
    table: &'static str,
    text: &str,
) -> Result<(), IndexError> {
    let insert = format!("INSERT INTO {table} (rowid, words) VALUES (?1, ?2)");
    let (entry, words) = (transaction.last_insert_rowid(), distinct_words(text));
    transaction.prepare_cached(&insert)?.execute(params![entry, words])?;
    Ok(())
}

#[cfg(test)]
mod tests;
