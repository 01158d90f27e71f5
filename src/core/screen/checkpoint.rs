//! Saves a screen in a checkpoint and restores it after the daemon ended.
//!
//! The caller stores a snapshot and, beside it, the rows of history as appended blocks, because a
//! snapshot is small and history is not.

use std::sync::Arc;

use alacritty_terminal::vte::ansi::{Handler, Processor};

use crate::core::frame::history::{History, HistoryRow};
use crate::core::frame::kept::NUMBER_MAX;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::screen::emulator::Emulator;
use crate::core::screen::guard::Guard;
use crate::core::screen::row_numbers::RowNumbers;
use crate::core::screen::snapshot::shell::WrittenCommands;
use crate::core::screen::snapshot::{SnapshotError, StoredScreen};
use crate::core::screen::{Screen, ScreenLimits};

/// All state that restores a screen, as of one moment between two pieces of output.
///
/// It contains no answers and reports: take those first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The screen without its history, for [`Screen::restore`].
    pub snapshot: Vec<u8>,
    /// One block with the requested rows of history, to append to the earlier blocks; empty when
    /// there are no rows.
    pub rows: Vec<u8>,
    /// The oldest readable row of history. Blocks that end before it may be dropped.
    pub first_row: RowNumber,
    /// The row after the newest one of history: pass it as `since` for the next checkpoint.
    pub end_row: RowNumber,
    /// The watermark at which a restored screen continues.
    ///
    /// Publish no frame above it before the next checkpoint is stored. A screen that was just restored
    /// publishes no frame before that at all, since the same snapshot can be restored again.
    pub reserved: Watermark,
}

impl Checkpoint {
    /// How many watermarks a checkpoint reserves for the frames after it.
    pub const WATERMARKS_RESERVED: u64 = 1 << 20;
}

impl Screen {
    /// The row after the newest one of history, which is the top row of the normal screen.
    pub fn history_end(&self) -> RowNumber {
        self.emulator.ledger.base_row()
    }

    /// The rows of history, as of the last checkpoint or frame.
    pub fn history(&self) -> &History {
        self.emulator.ledger.history()
    }

    /// Takes a checkpoint with the rows of history from `since` on.
    ///
    /// Pass row 0 for all readable rows, or the end row of the last stored checkpoint. The output may
    /// stop anywhere, even inside a character or a control sequence: a restored screen continues there.
    /// The time is proportional to the size of the screen and the number of rows.
    pub fn checkpoint(&mut self, since: RowNumber) -> Checkpoint {
        self.emulator.harvest();
        let ledger = &self.emulator.ledger;
        let reserved = Watermark(ledger.mark().0 + Checkpoint::WATERMARKS_RESERVED);
        let (first_row, end_row) = (ledger.history().first(), ledger.history().end());
        let rows = ledger.history().block(since);
        let shell = self.emulator.shell.clone();
        let recordings = self.emulator.recordings.clone();
        let snapshot = StoredScreen {
            reserved: reserved.0,
            first_row: first_row.0,
            end_row: end_row.0,
            place: self.guard.kept(),
            emulator: self.emulator.kept(),
        };
        let snapshot = snapshot.encode((&shell, &recordings), &mut self.written);
        Checkpoint { snapshot, rows, first_row, end_row, reserved }
    }

    /// Restores a screen from a snapshot and its blocks of history rows, oldest first.
    ///
    /// Row numbers continue, watermarks continue above the reserved ones, and the first frame cannot
    /// be a delta. Where the blocks lack rows, all older rows are dropped too. Rows after the end row
    /// of the snapshot are history as well, and the screen's numbers follow them. The limits may
    /// differ from those before.
    ///
    /// # Errors
    /// `SnapshotError` when the snapshot has an unknown format or the bytes are damaged. Any bytes
    /// are safe: memory is proportional to their number and to the size of a screen.
    pub fn restore(
        snapshot: &[u8],
        blocks: impl IntoIterator<Item = impl AsRef<[u8]>>,
        limits: ScreenLimits,
    ) -> Result<Self, SnapshotError> {
        Self::restore_with(snapshot, limits, |first| {
            let mut history = History::starting_at(first, limits.history);
            for block in blocks {
                let taken = history.take_blocks(limits.history, block.as_ref());
                taken.map_err(|what| SnapshotError::Rows { what })?;
            }
            Ok(history)
        })
    }

    /// Restores a screen from a snapshot, below the history that it had at that moment.
    ///
    /// # Errors
    /// As [`Screen::restore`].
    pub fn restore_below(
        snapshot: &[u8],
        history: History,
        limits: ScreenLimits,
    ) -> Result<Self, SnapshotError> {
        Self::restore_with(snapshot, limits, |_| Ok(history))
    }

    fn restore_with(
        snapshot: &[u8],
        limits: ScreenLimits,
        history: impl FnOnce(RowNumber) -> Result<History, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let (kept, shell) = StoredScreen::decode(snapshot)?;
        let damaged = |what| SnapshotError::Damaged { what };
        if kept.reserved > NUMBER_MAX || kept.end_row > NUMBER_MAX || kept.first_row > kept.end_row
        {
            return Err(damaged("a number is too high"));
        }
        let mut history = history(RowNumber(kept.first_row))?;
        if history.end() < RowNumber(kept.end_row) {
            history = History::starting_at(RowNumber(kept.end_row), limits.history);
        }
        let ledger = RowNumbers::new(limits.history, Watermark(kept.reserved), history);
        let mut emulator = Emulator::restored(&kept.emulator, limits, ledger).map_err(damaged)?;
        shell.put(&mut emulator).map_err(damaged)?;
        let guard = Guard::resumed(kept.place, limits.command_bytes_max);
        let (guard, passed) = guard.ok_or(damaged("it ends in no sequence that there is"))?;
        let mut parser = Processor::new();
        parser.advance(&mut Nobody, &passed);
        let written = WrittenCommands::default();
        Ok(Self { guard, parser, emulator, limits, last: None, written })
    }

    /// Creates an empty screen that replaces one whose emulator failed, after the last published frame.
    ///
    /// The rows of a normal screen in that frame become history. The rows of an alternate screen are
    /// discarded, as when a program leaves it. Watermarks and row numbers continue.
    pub fn after_failure(frame: &Frame, limits: ScreenLimits) -> Self {
        let mut history = (*frame.history).clone();
        match frame.mode.value {
            ScreenMode::Normal => {
                for line in frame.lines.iter() {
                    history.push(HistoryRow::of(&line.value, line.changed));
                }
            }
            ScreenMode::Alternate => {}
        }
        let mut screen = Self::with_history(frame.size.value, limits, frame.watermark, history);
        screen.emulator.shell.commands = Arc::clone(&frame.commands.value);
        screen.emulator.resume_recordings(&frame.printed.value);
        screen
    }
}

/// A handler that ignores everything, for moving a parser to its place.
struct Nobody;

impl Handler for Nobody {}
