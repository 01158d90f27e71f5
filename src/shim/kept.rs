//! What a shim stores for the next daemon: snapshots, history segments and notes.
//! The shim never reads their content. The note buffer is allocated at the start.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::shim::bounded::Bounded;
use crate::shim::socket::Descriptors;
use crate::shim::wire::to_shim::Commit;
use crate::shim::wire::{NOTE_MAX, NOTES, NoteFrame, SEGMENTS_MAX, SNAPSHOTS_MAX};

#[derive(Debug)]
pub struct Kept {
    snapshots: Bounded<SnapshotFile, SNAPSHOTS_MAX>,
    segments: Bounded<SegmentFile, SEGMENTS_MAX>,
    notes: Box<[u8]>,
    note_lengths: [usize; NOTES],
    /// Whether a daemon has ever sent a note, even an empty one.
    noted: bool,
}

#[derive(Debug, Default)]
struct SnapshotFile {
    file: Option<OwnedFd>,
    /// The snapshot covers the output before this offset.
    offset: u64,
}

#[derive(Debug, Default)]
struct SegmentFile {
    file: Option<OwnedFd>,
    /// How many bytes of the file are valid.
    bytes: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            snapshots: Bounded::default(),
            segments: Bounded::default(),
            notes: vec![0; NOTES * NOTE_MAX].into_boxed_slice(),
            note_lengths: [0; NOTES],
            noted: false,
        }
    }
}

impl Kept {
    /// Applies a commit. A file whose descriptor did not arrive is skipped.
    pub fn commit(&mut self, commit: &Commit, descriptors: &mut Descriptors) {
        if commit.snapshot
            && let Some(file) = descriptors.take()
        {
            self.snapshots.push(SnapshotFile { file: Some(file), offset: commit.offset });
        }
        self.segments.drop_first(usize::from(commit.segments_dropped));
        if commit.segment
            && let Some(file) = descriptors.take()
        {
            self.segments.push(SegmentFile { file: Some(file), bytes: 0 });
        }
        if let Some(last) = self.segments.as_mut_slice().last_mut() {
            last.bytes = commit.segment_bytes;
        }
    }

    pub fn remember(&mut self, note: NoteFrame<'_>) {
        let slot = usize::from(note.slot);
        self.notes[slot * NOTE_MAX..][..note.bytes.len()].copy_from_slice(note.bytes);
        self.note_lengths[slot] = note.bytes.len();
        self.noted = true;
    }

    /// Whether a daemon has sent a note. If so, the daemon may have announced the session to a client.
    pub fn is_noted(&self) -> bool {
        self.noted
    }

    pub fn notes(&self) -> impl Iterator<Item = NoteFrame<'_>> {
        let lengths = (0_u16..).zip(self.note_lengths).filter(|(_, length)| *length > 0);
        lengths.map(|(slot, length)| NoteFrame {
            slot,
            bytes: &self.notes[usize::from(slot) * NOTE_MAX..][..length],
        })
    }

    /// The valid bytes of each segment, oldest first.
    pub fn segment_bytes(&self) -> impl Iterator<Item = u64> {
        self.segments.as_slice().iter().map(|segment| segment.bytes)
    }

    /// The end of the output that each snapshot covers, oldest first.
    pub fn snapshot_offsets(&self) -> impl Iterator<Item = u64> {
        self.snapshots.as_slice().iter().map(|snapshot| snapshot.offset)
    }

    /// The segments and then the snapshots, each oldest first.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let segments = self.segments.as_slice().iter().filter_map(|one| one.file.as_ref());
        let snapshots = self.snapshots.as_slice().iter().filter_map(|one| one.file.as_ref());
        segments.chain(snapshots).map(AsFd::as_fd)
    }
}
