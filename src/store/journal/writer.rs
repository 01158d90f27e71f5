//! Appends to a journal: numbers, hashes, files of bounded size, and what to do when the disk refuses.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

use crate::core::journal::{JournalEntry, NotRecorded, RecordNumber};
use crate::store::journal::chain::Chain;
use crate::store::journal::line::{RecordKind, RecordLine};
use crate::store::journal::lock::TAKEN;
use crate::store::journal::open::OpenJournal;

/// How soon to open a journal again after that failed.
const OPEN_AGAIN: Duration = Duration::from_millis(100);
/// How many records may wait for a disk that takes none.
const UNWRITTEN_MAX: usize = 4_096;

/// Writes one journal; cheap to clone. It is opened with the first record, and again after an error.
#[derive(Clone, Debug)]
pub struct Journal(Arc<JournalState>);

#[derive(Debug)]
struct JournalState {
    writer: Mutex<Writer>,
    keep_input: AtomicBool,
    bytes_max: AtomicU64,
    unsynced: Notify,
}

/// How much of a journal is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalLimits {
    /// The oldest files are removed beyond this.
    pub bytes_max: u64,
    /// Whether the journal has the bytes that go to terminals, or only their count and hash.
    pub keep_input: bool,
}

struct Writer {
    directory: PathBuf,
    /// Whether a process that has the journal must give way to this one.
    may_take_over: Box<dyn Fn() -> bool + Send>,
    open: Option<OpenJournal>,
    /// A process that stands still had the journal, and no file of this one has begun yet.
    took_over: bool,
    /// When opening failed last, and why.
    failed: Option<(SystemTime, String)>,
    /// The chain as it was when the journal was closed because of a change from outside.
    known: Option<Chain>,
    /// The records of what has happened already, which the disk did not take.
    unwritten: VecDeque<Unwritten>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("directory", &self.directory).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Unwritten {
    kind: RecordKind,
    of: Option<u64>,
    unnumbered: String,
}

impl Journal {
    /// The journal in a directory, which need not exist. Another process that writes it is left alone.
    pub fn at(directory: PathBuf, limits: JournalLimits) -> Self {
        Self::claimed(directory, limits, || false)
    }

    /// The journal in a directory that belongs to this process as long as `is_ours` says so: one that writes it then
    /// must give way.
    pub fn claimed(
        directory: PathBuf,
        limits: JournalLimits,
        is_ours: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        let writer = Writer {
            directory,
            may_take_over: Box::new(is_ours),
            open: None,
            took_over: false,
            failed: None,
            known: None,
            unwritten: VecDeque::new(),
        };
        Self(Arc::new(JournalState {
            writer: Mutex::new(writer),
            keep_input: AtomicBool::new(limits.keep_input),
            bytes_max: AtomicU64::new(limits.bytes_max),
            unsynced: Notify::new(),
        }))
    }

    pub fn set_limits(&self, limits: JournalLimits) {
        self.0.keep_input.store(limits.keep_input, Ordering::Relaxed);
        self.0.bytes_max.store(limits.bytes_max, Ordering::Relaxed);
    }

    /// Opens the journal, so that what is wrong with it shows before the first act.
    ///
    /// # Errors
    /// Returns [`NotRecorded`] if it cannot be written. The next record tries again.
    pub fn open(&self, at: SystemTime) -> Result<(), NotRecorded> {
        self.writer().ready(at, self.bytes_max()).map(drop)
    }

    /// Appends an entry. It survives the end of this process, however it ends.
    ///
    /// # Errors
    /// Returns [`NotRecorded`] if the disk did not take it. Then the act must not be done.
    pub fn append(
        &self,
        at: SystemTime,
        entry: &JournalEntry<'_>,
    ) -> Result<RecordNumber, NotRecorded> {
        let record = self.unwritten(at, entry)?;
        let number = self.writer().write(at, self.bytes_max(), &record)?;
        self.0.unsynced.notify_one();
        Ok(number)
    }

    /// Appends what has happened already. If the disk does not take it, it is appended before the next entry.
    pub fn note(&self, at: SystemTime, entry: &JournalEntry<'_>) {
        let Ok(record) = self.unwritten(at, entry) else { return };
        let mut writer = self.writer();
        if writer.write(at, self.bytes_max(), &record).is_err() {
            writer.keep(record);
        }
        drop(writer);
        self.0.unsynced.notify_one();
    }

    /// Waits until something was appended since the last call.
    pub async fn appended(&self) {
        self.0.unsynced.notified().await;
    }

    /// Appends what waits, and syncs all appended records to the disk; blocks. Says whether something still waits.
    pub fn sync(&self, at: SystemTime) -> bool {
        let mut writer = self.writer();
        if !writer.unwritten.is_empty() {
            // It is tried again.
            let _ = writer.ready(at, self.bytes_max());
        }
        let waits = !writer.unwritten.is_empty();
        let files = writer.open.as_mut().map_or_else(Vec::new, |open| {
            let mut files = std::mem::take(&mut open.unsynced);
            files.extend(open.segment.for_sync());
            files
        });
        drop(writer);
        if let Err(error) = files.iter().try_for_each(std::fs::File::sync_data) {
            tracing::warn!(%error, "the journal cannot be synced to the disk");
        }
        waits
    }

    /// Whether another process writes this journal, as far as [`Journal::open`] found.
    pub fn is_taken(&self) -> bool {
        self.writer().failed.as_ref().is_some_and(|(_, why)| why.ends_with(TAKEN))
    }

    fn unwritten(
        &self,
        at: SystemTime,
        entry: &JournalEntry<'_>,
    ) -> Result<Unwritten, NotRecorded> {
        let keep_input = self.0.keep_input.load(Ordering::Relaxed);
        let line = RecordLine::of_entry(at, entry, keep_input);
        let unnumbered = line.unnumbered().map_err(|error| NotRecorded(error.to_string()))?;
        Ok(Unwritten { kind: line.kind, of: line.of, unnumbered })
    }

    fn bytes_max(&self) -> u64 {
        self.0.bytes_max.load(Ordering::Relaxed)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.0.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Makes the next append possible: opens the journal, begins the next file, and appends what waits.
    fn ready(&mut self, at: SystemTime, bytes_max: u64) -> Result<&mut OpenJournal, NotRecorded> {
        let directory = &self.directory;
        let refused = |error: io::Error| NotRecorded(format!("{}: {error}", directory.display()));
        if let Some(changed) = self.open.take_if(|open| !open.is_intact()) {
            tracing::warn!(directory = %directory.display(), "the journal was changed by others");
            self.known = Some(changed.chain);
        }
        if let Some((failed, why)) = &self.failed
            && at.duration_since(*failed).is_ok_and(|since| since < OPEN_AGAIN)
        {
            return Err(NotRecorded(why.clone()));
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => {
                let (known, took_over) = (self.known.as_ref(), &mut self.took_over);
                let opened =
                    OpenJournal::open(directory, known, &*self.may_take_over, took_over, at);
                let opened = opened.map_err(refused);
                self.failed = opened.as_ref().err().map(|NotRecorded(why)| (at, why.clone()));
                let opened = opened?;
                self.took_over = false;
                closed.insert(opened)
            }
        };
        open.rotate(at, bytes_max).map_err(refused)?;
        while let Some(Unwritten { kind, of, unnumbered }) = self.unwritten.front() {
            open.append_if_open(*kind, *of, unnumbered).map_err(refused)?;
            self.unwritten.pop_front();
        }
        Ok(open)
    }

    /// Appends a record after all that waits.
    fn write(
        &mut self,
        at: SystemTime,
        bytes_max: u64,
        record: &Unwritten,
    ) -> Result<RecordNumber, NotRecorded> {
        let open = self.ready(at, bytes_max)?;
        let Unwritten { kind, of, unnumbered } = record;
        let appended = open.append_if_open(*kind, *of, unnumbered);
        let refused = |error| NotRecorded(format!("{}: {error}", self.directory.display()));
        appended.map(RecordNumber).map_err(refused)
    }

    /// Keeps a record until the disk takes it.
    fn keep(&mut self, record: Unwritten) {
        if self.unwritten.len() < UNWRITTEN_MAX {
            self.unwritten.push_back(record);
        } else {
            tracing::error!(kind = ?record.kind, "a record is lost: too many wait");
        }
    }
}

#[cfg(test)]
mod tests;
