//! What a daemon gets when it attaches to a terminal in a shim.

use std::ops::Range;

use crate::core::frame::{Exit, Size};
use crate::core::ids::RowNumber;
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::session::pty::Note;
use crate::session::pty::held::link::exit_of;
use crate::shim::wire;
use crate::shim::wire::from_shim::{Attached, WriteProgress};

/// All that a shim stored, at the moment of the attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What the shim said of itself and its terminal. Output after `committed`, or after the gap, is read with
    /// [`crate::session::pty::Pty::read`].
    pub attached: Box<Attached>,
    pub notes: Notes,
    /// Oldest first. The last one belongs to `committed`.
    pub snapshots: Vec<ScreenSnapshot>,
    /// The rows of history, oldest first.
    pub segments: Vec<HistorySegment>,
    /// Whether some segments were unreadable. These and all older ones are missing.
    pub history_damaged: bool,
}

impl Recovered {
    pub fn size(&self) -> Size {
        Size::nearest(self.attached.window.rows, self.attached.window.cols)
    }

    /// The output after `committed` that was lost while no daemon was connected.
    pub fn gap(&self) -> Option<Range<u64>> {
        let lost = self.attached.committed..self.attached.tail;
        (!lost.is_empty()).then_some(lost)
    }

    /// How the program ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.attached.ended.map(exit_of)
    }

    /// The results of the last named writes, oldest first.
    pub fn writes(&self) -> Vec<FormerWrite> {
        let write = |one: &WriteProgress| FormerWrite {
            stamp: WriteStamp(one.write),
            own: None,
            taken: usize::try_from(one.bytes).unwrap_or(usize::MAX),
            length: None,
            command: None,
        };
        self.attached.results.as_slice().iter().map(write).collect()
    }

    /// The offset at which reading continues.
    pub fn resume_at(&self) -> u64 {
        self.attached.committed.max(self.attached.tail)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenSnapshot {
    /// The snapshot covers the output before this offset.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySegment {
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
    pub(in crate::session) fn set(&mut self, note: wire::NoteFrame<'_>) {
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
