//! What a daemon gets when it attaches to a terminal in a shim.

use std::ops::Range;

use crate::core::frame::{Exit, Size};
use crate::core::ids::{Epoch, RowNumber};
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::session::pty::held::link::exit_of;
use crate::session::pty::{Note, ProcessId};
use crate::shim::wire;
use crate::shim::wire::from_shim::Attached;

/// All that a shim stored, at the moment of the attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Counts the daemons that have attached; the first has 1.
    pub generation: u64,
    /// The process that the session started.
    pub leader: ProcessId,
    pub size: Size,
    /// The end of the output that the newest snapshot and the segments cover.
    pub committed: u64,
    /// The bytes that the program had written. Output after `committed`, or after the gap, is read with
    /// [`crate::session::pty::Pty::read`].
    pub head: u64,
    /// The output after `committed` that was lost while no daemon was connected.
    pub gap: Option<Range<u64>>,
    /// All queries in the output before this offset have been answered.
    pub answered: u64,
    pub epoch: Epoch,
    /// How the program ended, if it has.
    pub exit: Option<Exit>,
    /// The results of the last named writes, oldest first.
    pub writes: Vec<FormerWrite>,
    pub notes: Notes,
    /// Oldest first. The last one belongs to `committed`.
    pub snapshots: Vec<Snapshot>,
    /// The rows of history, oldest first.
    pub segments: Vec<Segment>,
    /// Whether some segments were unreadable. These and all older ones are missing.
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

    /// The offset at which reading continues.
    pub fn resume_at(&self) -> u64 {
        self.gap.as_ref().map_or(self.committed, |gap| gap.end)
    }
}

/// An encoded screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The snapshot covers the output before this offset.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// The rows of one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The row after the newest one in history at this checkpoint.
    pub end_row: RowNumber,
    /// The rows since the previous checkpoint.
    pub rows: Vec<u8>,
}

/// The last content of each note; empty if there was no such note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    bytes: [Vec<u8>; Note::ALL.len()],
}

impl Notes {
    pub fn get(&self, note: Note) -> &[u8] {
        &self.bytes[usize::from(slot_of(note))]
    }

    /// Stores a note from a shim. Notes of later versions are ignored.
    pub(in crate::session) fn set(&mut self, note: wire::Note<'_>) {
        if let Some(bytes) = self.bytes.get_mut(usize::from(note.slot)) {
            *bytes = note.bytes.to_vec();
        }
    }
}

/// The slot of a note in a shim. These numbers must never change.
pub(super) fn slot_of(note: Note) -> u16 {
    match note {
        Note::Identity => 0,
        Note::Lease => 1,
        Note::Terminal => 2,
        Note::Commands => 3,
        Note::Gaps => 4,
    }
}
