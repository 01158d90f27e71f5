//! Appends to a journal: numbers, hashes, files of bounded size, and what to do when the disk refuses.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, watch};

use crate::core::event::source::ToldEvents;
use crate::core::ids::{SessionId, TenantId};
use crate::core::journal::{JournalEntry, NotRecorded, RecordNumber};
use crate::store::journal::chain::Chain;
use crate::store::journal::events::told_events;
use crate::store::journal::line::{RecordKind, RecordLine, UnnumberedLine};
use crate::store::journal::lock::TAKEN;
use crate::store::journal::open::{Appended, OpenJournal};

/// How soon to open a journal again after that failed.
const OPEN_AGAIN: Duration = Duration::from_millis(100);
/// How many records may wait for a disk that takes none.
const UNWRITTEN_MAX: usize = 4_096;

/// Writes one journal; cheap to clone. It is opened with the first record, and again after an error.
#[derive(Clone, Debug)]
pub struct Journal(Arc<JournalState>);

#[derive(Debug)]
struct JournalState {
    directory: PathBuf,
    writer: Mutex<Writer>,
    keep_input: AtomicBool,
    bytes_max: AtomicU64,
    unsynced: Notify,
    /// The newest events that were appended.
    heads: Arc<Mutex<VecDeque<EventHead>>>,
    /// The number of the newest event.
    newest_event: watch::Sender<u64>,
    /// What daemons before told of sessions that this one has not found yet.
    told: Mutex<HashMap<SessionId, ToldEvents>>,
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
    failed: Option<(SystemTime, NotRecorded)>,
    /// The chain as it was when the journal was closed because of a change from outside.
    known: Option<Chain>,
    /// The records of what has happened already, which the disk did not take.
    unwritten: VecDeque<Unwritten>,
    /// How many records were lost because too many waited.
    lost: u64,
    /// The newest events that were appended.
    heads: Arc<Mutex<VecDeque<EventHead>>>,
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
    unnumbered: UnnumberedLine,
    /// Who may learn of it, if it is an event.
    audience: Option<Audience>,
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
        let heads = Arc::<Mutex<VecDeque<EventHead>>>::default();
        let writer = Writer {
            directory: directory.clone(),
            may_take_over: Box::new(is_ours),
            open: None,
            took_over: false,
            failed: None,
            known: None,
            unwritten: VecDeque::new(),
            lost: 0,
            heads: Arc::clone(&heads),
        };
        Self(Arc::new(JournalState {
            directory,
            writer: Mutex::new(writer),
            keep_input: AtomicBool::new(limits.keep_input),
            bytes_max: AtomicU64::new(limits.bytes_max),
            unsynced: Notify::new(),
            heads,
            newest_event: watch::Sender::new(0),
            told: Mutex::default(),
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
        // A disk that takes nothing can still be read.
        let told = told_events(self.directory());
        let told = told.map_err(|error| refused(self.directory(), &error))?;
        *self.0.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        let mut writer = self.writer();
        let last = writer.ready(at, self.bytes_max())?.chain.last_event_number();
        drop(writer);
        self.0.newest_event.send_replace(last);
        Ok(())
    }

    /// Where the files of the journal are.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Takes what daemons before told of a session.
    pub fn take_told(&self, session: SessionId) -> Option<ToldEvents> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&session)
    }

    /// Takes the sessions that daemons before told of and that are neither removed nor there any more.
    pub fn take_lost(&self, is_there: impl Fn(SessionId) -> bool) -> Vec<(SessionId, TenantId)> {
        let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = told.extract_if(|session, _| !is_there(*session));
        lost.filter_map(|(session, told)| Some((session, told.tenant?))).collect()
    }

    /// The number of the newest event; before this process recorded one, of the last record.
    pub fn newest_event(&self) -> watch::Receiver<u64> {
        self.0.newest_event.subscribe()
    }

    /// Whether somebody who sees what `sees` says may learn of an event after this number. Of many events, the
    /// oldest are not known any more, and count as one.
    pub fn any_event_after(&self, seq: u64, sees: impl Fn(&Audience) -> bool) -> bool {
        let heads = lock_heads(&self.0.heads);
        let oldest = heads.front().map_or(u64::MAX, |head| head.seq);
        let is_full = heads.len() == HEADS_MAX;
        (is_full && seq < oldest) || heads.iter().any(|head| head.seq > seq && sees(&head.audience))
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
        let mut writer = self.writer();
        let number = writer.write(at, self.bytes_max(), &record)?;
        self.tell_appended(writer);
        Ok(number)
    }

    /// Appends what has happened already. If the disk does not take it, it is appended before the next entry.
    pub fn note(&self, at: SystemTime, entry: &JournalEntry<'_>) {
        let Ok(record) = self.unwritten(at, entry) else { return };
        let mut writer = self.writer();
        if writer.write(at, self.bytes_max(), &record).is_err() {
            writer.keep(record);
        }
        self.tell_appended(writer);
    }

    fn tell_appended(&self, writer: MutexGuard<'_, Writer>) {
        drop(writer);
        self.tell_newest_event();
        self.0.unsynced.notify_one();
    }

    fn tell_newest_event(&self) {
        let newest = lock_heads(&self.0.heads).back().map_or(0, |head| head.seq);
        let is_newer = |known: &mut u64| newest > std::mem::replace(known, newest.max(*known));
        self.0.newest_event.send_if_modified(is_newer);
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
        self.tell_newest_event();
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

    fn unwritten(
        &self,
        at: SystemTime,
        entry: &JournalEntry<'_>,
    ) -> Result<Unwritten, NotRecorded> {
        let keep_input = self.0.keep_input.load(Ordering::Relaxed);
        let line = RecordLine::of_entry(at, entry, keep_input);
        let unnumbered =
            line.unnumbered().map_err(|error| refused(self.directory(), &error.into()))?;
        let (kind, of, audience) = (line.kind, line.of, Audience::of(entry));
        Ok(Unwritten { kind, of, unnumbered, audience })
    }

    fn bytes_max(&self) -> u64 {
        self.0.bytes_max.load(Ordering::Relaxed)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.0.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(directory: &Path, error: &io::Error) -> NotRecorded {
    let why = format!("{}: {error}", directory.display());
    NotRecorded { why, is_taken: error.kind() == TAKEN }
}

impl Writer {
    /// Makes the next append possible: opens the journal, begins the next file, and appends what waits.
    fn ready(&mut self, at: SystemTime, bytes_max: u64) -> Result<&mut OpenJournal, NotRecorded> {
        let directory = &self.directory;
        let refused = |error: io::Error| refused(directory, &error);
        if let Some(changed) = self.open.take_if(|open| !open.is_intact()) {
            tracing::warn!(directory = %directory.display(), "the journal was changed by others");
            self.known = Some(changed.chain);
        }
        if let Some((failed, refusal)) = &self.failed
            && at.duration_since(*failed).is_ok_and(|since| since < OPEN_AGAIN)
        {
            return Err(refusal.clone());
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => {
                let (known, took_over) = (self.known.as_ref(), &mut self.took_over);
                let opened =
                    OpenJournal::open(directory, known, &*self.may_take_over, took_over, at);
                let opened = opened.map_err(refused);
                self.failed = opened.as_ref().err().map(|refusal| (at, refusal.clone()));
                let opened = opened?;
                self.took_over = false;
                closed.insert(opened)
            }
        };
        open.rotate(at, bytes_max).map_err(refused)?;
        while let Some(Unwritten { kind, of, unnumbered, audience }) = self.unwritten.front() {
            let appended = open.append_if_open(at, (*kind, *of), unnumbered).map_err(refused)?;
            note_head(&self.heads, appended.event_number, audience.clone());
            self.unwritten.pop_front();
        }
        if self.lost > 0 {
            open.append_fault(at, &format!("{} records were lost: the disk took none", self.lost))
                .map_err(refused)?;
            self.lost = 0;
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
        let Unwritten { kind, of, unnumbered, audience } = record;
        let appended = open.append_if_open(at, (*kind, *of), unnumbered);
        let Appended { seq, event_number } =
            appended.map_err(|error| refused(&self.directory, &error))?;
        note_head(&self.heads, event_number, audience.clone());
        Ok(RecordNumber(seq))
    }

    /// Keeps a record until the disk takes it.
    fn keep(&mut self, record: Unwritten) {
        // Programs can have many events happen, and must not take the places of acts.
        let most = if record.audience.is_some() { UNWRITTEN_MAX / 4 } else { UNWRITTEN_MAX };
        if self.unwritten.len() < most {
            self.unwritten.push_back(record);
        } else {
            self.lost += 1;
        }
    }
}

/// How many of the newest events are known with their audience.
const HEADS_MAX: usize = 256;

/// Who may learn of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience {
    pub tenant: TenantId,
    /// `None` for what concerns no single session.
    pub session: Option<SessionId>,
}

impl Audience {
    fn of(entry: &JournalEntry<'_>) -> Option<Self> {
        let (tenant, session) = match entry {
            JournalEntry::Event { scope, .. } => (scope.tenant, scope.session),
            JournalEntry::Refused { intent, tenant, .. } => (*tenant, intent.session),
            JournalEntry::Intent(_)
            | JournalEntry::More { .. }
            | JournalEntry::Outcome { .. }
            | JournalEntry::Late { .. }
            | JournalEntry::Discarded { .. } => return None,
        };
        Some(Self { tenant: tenant.clone(), session })
    }
}

#[derive(Debug)]
struct EventHead {
    seq: u64,
    audience: Audience,
}

fn lock_heads(heads: &Mutex<VecDeque<EventHead>>) -> MutexGuard<'_, VecDeque<EventHead>> {
    heads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note_head(heads: &Mutex<VecDeque<EventHead>>, seq: u64, audience: Option<Audience>) {
    let Some(audience) = audience else { return };
    let mut heads = lock_heads(heads);
    if heads.len() == HEADS_MAX {
        heads.pop_front();
    }
    heads.push_back(EventHead { seq, audience });
}

#[cfg(test)]
mod tests;
