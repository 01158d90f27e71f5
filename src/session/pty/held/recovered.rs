//! What a daemon finds when it comes to a terminal that was held for it.
//!
//! Values only: nothing here speaks with anybody.

use std::ops::Range;

use crate::core::frame::{Exit, Size};
use crate::core::ids::{Epoch, RowNumber};
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::session::pty::held::link::exit_of;
use crate::session::pty::{Note, ProcessId};
use crate::shim::wire;
use crate::shim::wire::from_shim::Attached;

/// All that a shim kept, at the moment of the attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Counts the daemons that were attached; the first one's is 1.
    pub generation: u64,
    /// The process the session was started with.
    pub leader: ProcessId,
    pub size: Size,
    /// Up to where the output is covered by the newest snapshot and the segments.
    pub committed: u64,
    /// How much the program had written; what came after `committed`, or after the gap, is read
    /// with [`crate::session::pty::Pty::read`].
    pub head: u64,
    /// The output after `committed` that was lost while no daemon was there.
    pub gap: Option<Range<u64>>,
    /// Queries in the output before this offset had their answers.
    pub answered: u64,
    /// The highest epoch of any input.
    pub epoch: Epoch,
    /// How the program ended, if it has.
    pub exit: Option<Exit>,
    /// Of the last writes that had a name, oldest first.
    pub writes: Vec<FormerWrite>,
    pub notes: Notes,
    /// Oldest first; the last one belongs to `committed`.
    pub snapshots: Vec<Snapshot>,
    /// The rows of history, oldest first, as they were handed over.
    pub segments: Vec<Segment>,
    /// Whether some of these could not be read, so that they and all older ones are missing.
    pub history_damaged: bool,
}

impl Recovered {
    pub(super) fn of(
        attached: &Attached,
        notes: Notes,
        snapshots: Vec<Snapshot>,
        segments: Vec<Segment>,
    ) -> Self {
        let written = attached.results.as_slice().iter();
        let lost = attached.committed..attached.tail;
        Self {
            generation: attached.generation,
            leader: ProcessId(attached.leader.pid),
            size: Size::nearest(attached.window.rows, attached.window.cols),
            committed: attached.committed,
            head: attached.head,
            gap: (!lost.is_empty()).then_some(lost),
            answered: attached.answered,
            epoch: Epoch(attached.epoch),
            exit: attached.ended.map(exit_of),
            writes: written
                .map(|one| FormerWrite {
                    stamp: WriteStamp(one.write),
                    own: None,
                    taken: usize::try_from(one.bytes).unwrap_or(usize::MAX),
                    length: None,
                    command: None,
                })
                .collect(),
            notes,
            snapshots,
            segments,
            history_damaged: false,
        }
    }

    /// Where reading goes on.
    pub fn resume_at(&self) -> u64 {
        self.gap.as_ref().map_or(self.committed, |gap| gap.end)
    }
}

/// A screen that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Covers the output before it.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// The rows of one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The row after the newest one in history at this checkpoint.
    pub end_row: RowNumber,
    /// The rows that had come since the one before.
    pub rows: Vec<u8>,
}

/// What was last to be remembered by each note; empty when nothing was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    bytes: [Vec<u8>; Note::ALL.len()],
}

impl Notes {
    /// The bytes of one note.
    pub fn get(&self, note: Note) -> &[u8] {
        &self.bytes[usize::from(slot_of(note))]
    }

    /// Keeps a note that a shim had; notes of later versions are none of ours.
    pub(in crate::session) fn set(&mut self, note: wire::Note<'_>) {
        if let Some(bytes) = self.bytes.get_mut(usize::from(note.slot)) {
            *bytes = note.bytes.to_vec();
        }
    }
}

/// Where a shim keeps a note, the same for ever.
pub(super) fn slot_of(note: Note) -> u16 {
    match note {
        Note::Identity => 0,
        Note::Lease => 1,
        Note::Terminal => 2,
        Note::Commands => 3,
        Note::Gaps => 4,
    }
}
