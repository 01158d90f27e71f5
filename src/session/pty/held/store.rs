//! Writes checkpoints into memory files for a shim, and reads them back.
//! A snapshot replaces the previous one. Rows are appended to segments, so a small checkpoint stays cheap. They are
//! packed, but not while a program waits for the room and history is short: most of what it prints then has left history
//! when it pauses, and the rest is handed over again.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::core::frame::kept::NUMBER_MAX;
use crate::core::ids::{RowNumber, SessionId};
use crate::session::pty::TerminalCheckpoint;
use crate::session::pty::held::recovered::HistorySegment;
use crate::shim::memory;
use crate::shim::wire::SEGMENTS_MAX;
use crate::shim::wire::to_shim::Commit;

/// The size at which a new segment starts, in bytes.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Among how many segments rows may be written in a hurry.
const HURRIED_MAX: usize = 4;
/// Larger than any snapshot: two screens of 1,000 by 1,000 styled cells.
const SNAPSHOT_MAX: u64 = 64 << 20;
/// Larger than all rows of a session. The longest configurable history is 1 GiB.
const ROWS_BYTES_MAX: usize = 3 << 29;
/// A bit beside the length of a record: its rows are packed.
const PACKED: u32 = 1 << 31;

#[derive(Debug, Default)]
pub(super) struct Store {
    segments: VecDeque<Extent>,
    /// The last segment, if it may still grow.
    open: Option<File>,
    /// How many dropped segments the shim does not know of yet.
    dropped: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    end_row: RowNumber,
    bytes: u64,
    /// The bytes of its rows, unpacked.
    rows: u64,
    /// How many of those were written in a hurry, and so were not packed.
    hurried: u64,
}

impl Extent {
    /// One that another daemon wrote, which does not say why rows are not packed.
    pub(super) fn found(end_row: RowNumber, bytes: u64, rows: usize) -> Self {
        let rows = rows as u64;
        Self { end_row, bytes, rows, hurried: if bytes > rows / 2 { rows } else { 0 } }
    }
}

/// Whether a program waits for the room that a checkpoint makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hurry {
    Unhurried,
    Hurried,
}

#[derive(Debug)]
pub(super) struct Handover {
    pub(super) commit: Commit,
    pub(super) snapshot: Option<File>,
    pub(super) segment: Option<File>,
}

impl Store {
    /// Continues after segments that were found. Nothing is appended to these.
    pub(super) fn behind(found: impl Iterator<Item = Extent>) -> Self {
        Self { segments: found.collect(), ..Self::default() }
    }

    /// Whether most rows were written in a hurry, so that it is worth handing all over again.
    pub(super) fn is_loose(&self) -> bool {
        let sum = |part: fn(&Extent) -> u64| self.segments.iter().map(part).sum::<u64>();
        self.segments.len() <= HURRIED_MAX && sum(|it| it.hurried) * 2 > sum(|it| it.rows)
    }

    /// Writes a checkpoint into memory files.
    ///
    /// # Errors
    /// Returns the kernel's error. The caller may hand the rows over again with the next checkpoint.
    pub(super) fn hand_over(
        &mut self,
        checkpoint: &TerminalCheckpoint,
        hurry: Hurry,
    ) -> io::Result<Handover> {
        let snapshot = match checkpoint.snapshot.as_slice() {
            [] => None,
            bytes => Some(snapshot(bytes)?),
        };
        self.trim(checkpoint);
        let segment = match checkpoint.rows.as_slice() {
            [] => None,
            rows => self.append(rows, checkpoint.end_row, hurry)?,
        };
        let commit = Commit {
            offset: checkpoint.offset,
            quiet: checkpoint.quiet,
            segments_dropped: std::mem::take(&mut self.dropped),
            segment: segment.is_some(),
            segment_bytes: self.segments.back().map_or(0, |last| last.bytes),
            snapshot: snapshot.is_some(),
        };
        Ok(Handover { commit, snapshot, segment })
    }

    /// Drops segments that history no longer needs.
    fn trim(&mut self, checkpoint: &TerminalCheckpoint) {
        let unneeded = |front: &Extent| checkpoint.whole || front.end_row <= checkpoint.first_row;
        while self.segments.front().is_some_and(unneeded) {
            self.segments.pop_front();
            self.dropped += 1;
        }
        if self.segments.is_empty() {
            self.open = None;
        }
    }

    /// Appends the rows of a checkpoint. Returns the new segment, if one was started.
    fn append(
        &mut self,
        rows: &[u8],
        end_row: RowNumber,
        hurry: Hurry,
    ) -> io::Result<Option<File>> {
        // Of a long history it would take too long to hand all over again.
        let hurry = if self.segments.len() < HURRIED_MAX { hurry } else { Hurry::Unhurried };
        let record = record(rows, end_row, hurry)?;
        let (length, rows) = (record.len() as u64, rows.len() as u64);
        let hurried = if hurry == Hurry::Hurried { rows } else { 0 };
        if let (Some(open), Some(last)) = (&self.open, self.segments.back_mut())
            && last.bytes + length <= SEGMENT_BYTES
        {
            open.write_all_at(&record, last.bytes)?;
            let (rows, hurried) = (last.rows + rows, last.hurried + hurried);
            *last = Extent { end_row, bytes: last.bytes + length, rows, hurried };
            return Ok(None);
        }
        if let Some(full) = self.open.take() {
            // An unsealed segment is not written to either.
            let _ = memory::seal(&full);
        }
        let segment = memory::create(c"termgate-history", 0)?;
        segment.write_all_at(&record, 0)?;
        if self.segments.len() == SEGMENTS_MAX {
            self.segments.pop_front();
            self.dropped += 1;
        }
        let open = segment.try_clone()?;
        self.segments.push_back(Extent { end_row, bytes: length, rows, hurried });
        self.open = Some(open);
        Ok(Some(segment))
    }
}

fn snapshot(bytes: &[u8]) -> io::Result<File> {
    let file = memory::create(c"termgate-screen", 0)?;
    file.write_all_at(bytes, 0)?;
    memory::seal(&file)?;
    Ok(file)
}

/// The rows of a checkpoint: the row after them, how many bytes follow, and these. Where that is shorter and there is
/// time they are packed, which a bit beside the length says, behind their own length.
fn record(rows: &[u8], end_row: RowNumber, hurry: Hurry) -> io::Result<Vec<u8>> {
    let length = |bytes: usize| {
        let length = u32::try_from(bytes).ok().filter(|length| length & PACKED == 0);
        length.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))
    };
    let own = length(rows.len())?.to_le_bytes();
    let end_row = end_row.0.to_le_bytes();
    let packed = (hurry == Hurry::Unhurried).then(|| lz4_flex::block::compress(rows));
    match packed.filter(|packed| own.len() + packed.len() < rows.len()) {
        Some(packed) => {
            let length = length(own.len() + packed.len())? | PACKED;
            Ok([end_row.as_slice(), &length.to_le_bytes(), &own, &packed].concat())
        }
        None => Ok([end_row.as_slice(), &own, rows].concat()),
    }
}

/// The segments that were found, as far as they are readable.
#[derive(Debug, Default)]
pub(super) struct FoundSegments {
    pub(super) segments: Vec<HistorySegment>,
    /// Each segment, readable or not.
    pub(super) extents: Vec<Extent>,
    /// Whether a segment was unreadable. History then begins after it.
    pub(super) damaged: bool,
    /// How many bytes of rows were read, lost ones included.
    bytes: usize,
}

impl FoundSegments {
    /// Reads the next segment from memory, and seals it against further writes.
    pub(super) fn read(&mut self, session: SessionId, file: OwnedFd, bytes: u64) -> io::Result<()> {
        let file = File::from(file);
        // A superseded daemon may still have this file open. An earlier seal makes this call fail, which is fine.
        let _ = memory::seal(&file);
        let content = read(&file, 0, bytes.min(file.metadata()?.len()));
        self.add(session, bytes, content)
    }

    /// Adds the next segment. An invalid one loses the history up to it, but nothing newer.
    ///
    /// # Errors
    /// Returns the error of the content, unless it is `InvalidData`.
    pub(super) fn add(
        &mut self,
        session: SessionId,
        bytes: u64,
        content: io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let before = self.extents.last().map_or(RowNumber(0), |last| last.end_row);
        // An impostor could send the same file many times.
        let most = ROWS_BYTES_MAX - self.bytes;
        let (end_row, rows) = match content.and_then(|content| read_records(&content, most)) {
            Ok(found) => {
                let rows = found.iter().map(|segment| segment.rows.len()).sum();
                self.bytes += rows;
                let end_row = found.last().map_or(before, |last| last.end_row);
                self.segments.extend(found);
                (end_row, rows)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::error!(%session, "stored rows cannot be read and are lost");
                self.segments.clear();
                self.damaged = true;
                (before, 0)
            }
            Err(error) => return Err(error),
        };
        self.extents.push(Extent::found(end_row, bytes, rows));
        Ok(())
    }
}

/// Reads a snapshot. An invalid one gives an empty result: only what it covers is lost.
pub(super) fn read_snapshot(session: SessionId, file: &File) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.len();
    let found = match bytes <= SNAPSHOT_MAX {
        true => read(file, 0, bytes),
        false => Err(io::ErrorKind::InvalidData.into()),
    };
    match found {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            tracing::error!(%session, "a stored screen cannot be read and is lost");
            Ok(Vec::new())
        }
        found => found,
    }
}

/// The records of a segment. Their rows are `most` bytes at most.
///
/// # Errors
/// `InvalidData` for content that no daemon wrote.
fn read_records(mut rest: &[u8], mut most: usize) -> io::Result<Vec<HistorySegment>> {
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, after) = read_record(rest, most).ok_or(io::ErrorKind::InvalidData)?;
        most -= segment.rows.len();
        segments.push(segment);
        rest = after;
    }
    Ok(segments)
}

fn read_record(bytes: &[u8], most: usize) -> Option<(HistorySegment, &[u8])> {
    let (end_row, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    let (rows, rest) = rest.split_at_checked((length & !PACKED) as usize)?;
    let end_row = Some(u64::from_le_bytes(*end_row)).filter(|row| *row <= NUMBER_MAX)?;
    let rows = if length & PACKED == 0 { rows.to_vec() } else { unpack(rows, most)? };
    (rows.len() <= most).then_some((HistorySegment { end_row: RowNumber(end_row), rows }, rest))
}

/// Rows of at most so many bytes.
fn unpack(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    /// How many times as long the format makes bytes at most.
    const UNPACKED_MAX: usize = 255;
    let (length, packed) = bytes.split_first_chunk()?;
    let most = most.min(packed.len().saturating_mul(UNPACKED_MAX));
    let length = Some(u32::from_le_bytes(*length) as usize).filter(|length| *length <= most)?;
    let rows = lz4_flex::block::decompress(packed, length).ok()?;
    (rows.len() == length).then_some(rows)
}

/// Reads a part of a file. Trusts only the memory that it occupies, not its length: the sender may not be a shim.
pub(super) fn read(file: &File, from: u64, bytes: u64) -> io::Result<Vec<u8>> {
    /// The unit of `st_blocks`, see stat(2).
    const BLOCK: u64 = 512;
    let there = file.metadata()?;
    let occupied = there.blocks().saturating_mul(BLOCK);
    if !there.is_file() || from.saturating_add(bytes) > occupied {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut content = Vec::new();
    content.try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    content.resize(bytes, 0);
    file.read_exact_at(&mut content, from)?;
    Ok(content)
}

#[cfg(test)]
mod tests;
