//! The thread that writes the index, and the handle that others have of it.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use crate::store::index::content::{BatchOutcome, IndexedLine, RowBatch};
use crate::store::index::database::{FileIdentity, IndexError, IndexFile};
use crate::store::index::retention::{IndexLimits, bound_file, prune, shrink};

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
    pub(super) file: IndexFile,
    pub(super) limits: Mutex<IndexLimits>,
    /// Counts how often the writer opened the database, so that readers know when to open it again.
    pub(super) opened: AtomicU64,
    /// A search found that the database is damaged.
    pub(super) damaged: AtomicBool,
    /// An open connection for the next search.
    pub(super) reader: Mutex<Option<(u64, Connection)>>,
    batches: mpsc::Sender<QueuedBatch>,
}

impl fmt::Debug for IndexShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexShared").field("file", &self.file).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct QueuedBatch {
    batch: RowBatch,
    outcome: oneshot::Sender<BatchOutcome>,
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
        let (batches, queue) = mpsc::channel(BATCHES_MAX);
        let file = IndexFile::in_directory(directory);
        let shared = Arc::new(IndexShared {
            file: file.clone(),
            limits: Mutex::new(limits),
            opened: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            reader: Mutex::new(None),
            batches,
        });
        let writer =
            IndexWriter { shared: Arc::downgrade(&shared), file, open: None, failing: false };
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
        if shared.batches.send(QueuedBatch { batch, outcome }).await.is_err() {
            return BatchOutcome::Refused;
        }
        stored.await.unwrap_or(BatchOutcome::Refused)
    }

    pub(super) fn shared(&self) -> Option<&Arc<IndexShared>> {
        self.0.as_ref()
    }
}

impl IndexShared {
    pub(super) fn limits(&self) -> IndexLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct IndexWriter {
    shared: Weak<IndexShared>,
    file: IndexFile,
    open: Option<OpenIndex>,
    /// Whether the last batch failed, which was reported.
    failing: bool,
}

struct OpenIndex {
    connection: Connection,
    identity: Option<FileIdentity>,
    limits: IndexLimits,
}

impl IndexWriter {
    fn run(mut self, mut queue: mpsc::Receiver<QueuedBatch>) {
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "the search index is written at normal priority");
        }
        while let Some(QueuedBatch { batch, outcome }) = queue.blocking_recv() {
            // Whoever handed it over may be gone.
            let _ = outcome.send(self.store(&batch));
            if queue.is_empty() {
                self.rest();
            }
        }
    }

    /// Gives back the memory that only the next batch would need.
    fn rest(&self) {
        if let Some(open) = &self.open {
            // Without it, the memory stays as it is.
            let _ = open.connection.release_memory();
        }
    }

    fn store(&mut self, batch: &RowBatch) -> BatchOutcome {
        let Some(shared) = self.shared.upgrade() else { return BatchOutcome::Refused };
        let stored = match self.try_store(&shared, batch) {
            Err(IndexError::Damaged(error)) => {
                self.begin_anew(&error).and_then(|()| self.try_store(&shared, batch))
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

    /// Sets a damaged database aside, so that the next one begins.
    fn begin_anew(&mut self, error: &str) -> Result<(), IndexError> {
        self.open = None;
        let aside = self.file.set_aside()?;
        tracing::warn!(%error, aside = %aside.display(), "the search index is damaged; a new one begins");
        Ok(())
    }

    fn try_store(
        &mut self,
        shared: &IndexShared,
        batch: &RowBatch,
    ) -> Result<BatchOutcome, IndexError> {
        if shared.damaged.swap(false, Ordering::AcqRel) {
            return Err(IndexError::Damaged("a search could not read it".to_owned()));
        }
        let limits = shared.limits();
        let current = self.file.identity();
        let fits = |open: &OpenIndex| open.limits == limits && open.identity == current;
        let open = match self.open.take().filter(fits) {
            Some(open) => self.open.insert(open),
            None => {
                let connection = self.file.open_writer()?;
                bound_file(&connection, limits)?;
                shared.opened.fetch_add(1, Ordering::Release);
                self.open.insert(OpenIndex { connection, identity: self.file.identity(), limits })
            }
        };
        let transaction =
            open.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = insert(&transaction, batch)?;
        if outcome == BatchOutcome::Stored {
            prune(&transaction, limits, batch.at_ms)?;
        }
        transaction.commit()?;
        shrink(&open.connection, limits)?;
        Ok(outcome)
    }
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
        command
            .execute(params![id, number, started, duration, code, row, by, directory, &*it.text])?;
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
    Ok(())
}

#[cfg(test)]
mod tests;
