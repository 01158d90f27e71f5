//! An open journal: its newest file, the chain so far, and the lock that keeps other daemons out.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::core::journal::ActOutcome;
use crate::store::journal::chain::Chain;
use crate::store::journal::line::{RecordKind, RecordLine, UnnumberedLine, write_line};
use crate::store::journal::lock::JournalLock;
use crate::store::journal::reader::read_file;
use crate::store::journal::segment::{JournalFile, files};

/// How long a file becomes at most before the next record begins another.
const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// A file has at most this part of the limit of all, and one record more.
const SEGMENT_PART: u64 = 4;
/// How much of the buffer for lines is kept.
const BUFFER_KEPT: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct OpenJournal {
    directory: PathBuf,
    pub(super) segment: JournalFile,
    /// Files that ended since the last sync, and their directory.
    pub(super) unsynced: Vec<File>,
    pub(super) chain: Chain,
    buffer: Vec<u8>,
    lock: JournalLock,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appended {
    pub(super) seq: u64,
    /// What clients know it by, if it is an event.
    pub(super) event_number: u64,
}

/// The newest file of a directory.
struct NewestFile {
    segment: JournalFile,
    chain: Chain,
    /// Whether its records are as they were written.
    is_sound: bool,
}

impl OpenJournal {
    /// Opens the journal in a directory. `known` is the chain as this process left it, if it had the journal open
    /// before; if not, this notes that this process writes it from now on. `may_take_over` says whether a process that
    /// has the journal must give way to this one.
    pub(super) fn open(
        directory: &Path,
        known: Option<&Chain>,
        may_take_over: &dyn Fn() -> bool,
        took_over: &mut bool,
        at: SystemTime,
    ) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let lock = JournalLock::take(&directory.join("lock"), may_take_over, took_over)?;
        let (segment, chain) = match newest_file(directory)? {
            Some(newest)
                if newest.is_sound && known.is_none_or(|it| it.last() == newest.chain.last()) =>
            {
                let mut chain = known.cloned().unwrap_or(newest.chain);
                // Who had the journal may append once more to its file.
                let segment = match *took_over {
                    true => first_of(directory, &mut chain, true, at)?,
                    false => newest.segment,
                };
                (segment, chain)
            }
            newest => {
                let found = newest.map(|newest| newest.chain);
                let mut chain = match (known, found) {
                    (known, None) => known.cloned().unwrap_or_default(),
                    // What is on the disk is not what was written, so no hash of it is to be covered.
                    (known, Some(found)) => {
                        let last = |chain: &Chain| chain.last().map_or(0, |(last, _)| last);
                        let open = known.unwrap_or(&found).open().clone();
                        Chain::broken_at(last(&found).max(known.map_or(0, last)), open)
                    }
                };
                (first_of(directory, &mut chain, false, at)?, chain)
            }
        };
        let (directory, unsynced) = (directory.to_owned(), Vec::new());
        let mut opened = Self { directory, segment, unsynced, chain, buffer: Vec::new(), lock };
        if known.is_none() {
            opened.note_opened(at)?;
        }
        Ok(opened)
    }

    /// Whether the files are as this process left them, and still its own to write.
    pub(super) fn is_intact(&self) -> bool {
        self.segment.is_intact() && self.lock.counts()
    }

    /// Notes that this process writes the journal, and that nobody knows how the acts of those before it ended.
    fn note_opened(&mut self, at: SystemTime) -> io::Result<()> {
        let opened = RecordLine {
            version: Some(env!("CARGO_PKG_VERSION").into()),
            pid: Some(std::process::id()),
            ..RecordLine::new(at, RecordKind::Opened)
        };
        self.append(at, (RecordKind::Opened, None), &opened.unnumbered()?)?;
        for of in self.chain.open().clone() {
            let unknown = RecordLine { of: Some(of), ..RecordLine::new(at, RecordKind::Outcome) };
            let unknown = unknown.with_outcome(&ActOutcome::Unknown).unnumbered()?;
            self.append(at, (RecordKind::Outcome, Some(of)), &unknown)?;
        }
        Ok(())
    }

    /// Appends a record and returns its numbers. An outcome is left out if its intent is not open: the files were
    /// replaced since.
    pub(super) fn append_if_open(
        &mut self,
        at: SystemTime,
        (kind, of): (RecordKind, Option<u64>),
        unnumbered: &UnnumberedLine,
    ) -> io::Result<Appended> {
        match (kind, of) {
            (RecordKind::Outcome, Some(of)) if !self.chain.open().contains(&of) => {
                Ok(Appended { seq: of, event_number: self.chain.last_event_number() })
            }
            of => self.append(at, of, unnumbered),
        }
    }

    /// Appends an event that says that the journal itself is not whole.
    pub(super) fn append_fault(&mut self, at: SystemTime, what: &str) -> io::Result<Appended> {
        let details = serde_json::value::to_raw_value(&serde_json::json!({"what": what}))?;
        let fault = RecordLine {
            event: Some("fault".into()),
            details: Some(Cow::Owned(details)),
            ..RecordLine::new(at, RecordKind::Event)
        };
        self.append(at, (RecordKind::Event, None), &fault.unnumbered()?)
    }

    fn append(
        &mut self,
        at: SystemTime,
        (kind, of): (RecordKind, Option<u64>),
        unnumbered: &UnnumberedLine,
    ) -> io::Result<Appended> {
        let (seq, before) = self.chain.next();
        let event_number = self.chain.next_event_number(at);
        self.buffer.clear();
        let hash = write_line(&mut self.buffer, (seq, event_number), unnumbered, before);
        let appended = self.segment.append(&self.buffer);
        self.buffer.shrink_to(BUFFER_KEPT);
        appended?;
        self.chain.advance(kind, of, hash);
        Ok(Appended { seq, event_number })
    }

    /// Begins another file if this one is long enough, and removes the oldest ones beyond `bytes_max`.
    pub(super) fn rotate(&mut self, at: SystemTime, bytes_max: u64) -> io::Result<()> {
        let segment_bytes = SEGMENT_BYTES_MAX.min(bytes_max / SEGMENT_PART);
        if self.segment.length < segment_bytes {
            return Ok(());
        }
        let next = first_of(&self.directory, &mut self.chain, false, at)?;
        let ended = std::mem::replace(&mut self.segment, next);
        self.unsynced.extend([ended.for_sync()?, File::open(&self.directory)?]);
        let mut files = files(&self.directory)?;
        // The newest one stays, and the next one gets as long.
        let newest = files.pop();
        let mut bytes = segment_bytes * u64::from(newest.is_some());
        for (_, path) in files.iter().rev() {
            bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
            if bytes > bytes_max {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Begins a file, whose first record says what was before it.
fn first_of(
    directory: &Path,
    chain: &mut Chain,
    took_over: bool,
    at: SystemTime,
) -> io::Result<JournalFile> {
    let (seq, before) = chain.next();
    let header = RecordLine {
        after: Some(before.to_string().into()),
        took_over,
        open: chain.open().iter().copied().collect(),
        ..RecordLine::new(at, RecordKind::Segment)
    };
    let mut line = Vec::new();
    // It is no event. So what comes after the newest number begins with this file.
    let number = chain.last_event_number();
    let hash = write_line(&mut line, (seq, number), &header.unnumbered()?, before);
    let segment = JournalFile::create(directory, seq, &line)?;
    chain.advance(RecordKind::Segment, None, hash);
    Ok(segment)
}

/// Opens the newest file that has a record, and removes those without one, which were about to begin.
fn newest_file(directory: &Path) -> io::Result<Option<NewestFile>> {
    for (first, path) in files(directory)?.into_iter().rev() {
        let segment = JournalFile::reopen(&path)?;
        if segment.length == 0 {
            fs::remove_file(path)?;
            continue;
        }
        let (mut chain, mut is_sound) = (Chain::default(), true);
        read_file(&path, |_, line| {
            is_sound &= line.is_some_and(|line| chain.push(line).is_ok());
        })?;
        if chain.last().is_none() {
            chain = Chain::broken_at(first, chain.open().clone());
        }
        return Ok(Some(NewestFile { segment, chain, is_sound }));
    }
    Ok(None)
}
