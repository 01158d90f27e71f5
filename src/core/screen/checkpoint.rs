//! What must be kept of a screen so that it goes on after the daemon ended, and how it goes on.
//!
//! It says what there is to keep and what becomes of it, and knows nothing of where it is kept.
//! Whoever keeps it, keeps a snapshot and, beside it, the rows of history one block behind the
//! other, because a snapshot is small and history is not.

use std::sync::Arc;

use alacritty_terminal::vte::ansi::{Handler, Processor};

use crate::core::frame::history::{History, HistoryRow};
use crate::core::frame::kept::blocks::NUMBER_MAX;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::screen::emulator::Emulator;
use crate::core::screen::guard::Guard;
use crate::core::screen::row_numbers::Ledger;
use crate::core::screen::snapshot::Snapshot;
use crate::core::screen::snapshot::shell::WrittenCommands;
use crate::core::screen::{Screen, ScreenLimits};

/// All that a screen is made anew from, as of one moment between two pieces of output.
///
/// Answers and reports are not part of it: take those first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The screen without its history, for [`Screen::restore`].
    pub snapshot: Vec<u8>,
    /// A block with the rows of history that were asked for, to be kept behind the blocks before
    /// it; empty when there are none.
    pub rows: Vec<u8>,
    /// The oldest row of history still readable: blocks that end before it may be dropped.
    pub first_row: RowNumber,
    /// The row after the newest one of history, from which on the next checkpoint has rows to tell.
    pub end_row: RowNumber,
    /// A restored screen counts on from here. So no frame above this watermark may be published
    /// before another checkpoint is kept, nor any frame at all of a screen that was just restored,
    /// since it could be restored from the same snapshot once more.
    pub reserved: Watermark,
}

impl Checkpoint {
    /// How many watermarks it sets aside for the frames that come after it.
    pub const WATERMARKS_RESERVED: u64 = 1 << 20;
}

/// Why no screen can be made of what was kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// A version of the format that this program does not read, or no snapshot at all.
    #[error("the snapshot begins with {found:02x?}, which is no format known here")]
    Format { found: Vec<u8> },
    #[error("the snapshot is damaged: {what}")]
    Damaged { what: &'static str },
    #[error("the rows of history are damaged: {what}")]
    Rows { what: &'static str },
}

impl Screen {
    /// The row after the newest one of history: the top row of the normal screen.
    pub fn history_end(&self) -> RowNumber {
        self.emulator.ledger().base_row()
    }

    /// The rows of history, as of the last checkpoint or frame.
    pub fn history(&self) -> &History {
        self.emulator.ledger().history()
    }

    /// All that [`Screen::restore`] makes this screen of, with the rows of history from `since`
    /// on: row 0 for all that are readable, or where the checkpoint ended that was kept last.
    ///
    /// Wherever the output is at, be it in the middle of a character or of a control sequence, a
    /// screen restored from it goes on as this one does. It takes time in proportion to the size
    /// of the screen and the rows told.
    pub fn checkpoint(&mut self, since: RowNumber) -> Checkpoint {
        self.emulator.harvest();
        let ledger = self.emulator.ledger();
        let reserved = Watermark(ledger.mark().0 + Checkpoint::WATERMARKS_RESERVED);
        let (first_row, end_row) = (ledger.history().first(), ledger.history().end());
        let rows = ledger.history().block(since);
        let shell = self.emulator.shell().clone();
        let snapshot = Snapshot {
            reserved: reserved.0,
            first_row: first_row.0,
            end_row: end_row.0,
            place: self.guard.kept(),
            emulator: self.emulator.kept(),
        };
        let snapshot = snapshot.encode(&shell, &mut self.written);
        Checkpoint { snapshot, rows, first_row, end_row, reserved }
    }

    /// The screen that a snapshot was made of, with its history from the blocks of rows that were
    /// kept, oldest first.
    ///
    /// Row numbers go on where they were, watermarks above all that were reserved, and the first
    /// frame cannot be a delta. Where rows are missing in the blocks, all older ones are missing
    /// too. Rows behind those of the snapshot are history as well, and the screen is numbered
    /// behind them. Limits may be others than before.
    ///
    /// # Errors
    /// [`SnapshotError`] when the snapshot is of another format or the bytes are damaged. Any
    /// bytes may be tried: they take memory in proportion to their number and to the size of a
    /// screen.
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

    /// The screen that a snapshot was made of, below the history that it had then.
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
        let (kept, shell) = Snapshot::decode(snapshot)?;
        let damaged = |what| SnapshotError::Damaged { what };
        if kept.reserved > NUMBER_MAX || kept.end_row > NUMBER_MAX || kept.first_row > kept.end_row
        {
            return Err(damaged("a number is too high"));
        }
        let mut history = history(RowNumber(kept.first_row))?;
        if history.end() < RowNumber(kept.end_row) {
            history = History::starting_at(RowNumber(kept.end_row), limits.history);
        }
        let ledger = Ledger::new(limits.history, Watermark(kept.reserved), history);
        let mut emulator = Emulator::restored(&kept.emulator, limits, ledger).map_err(damaged)?;
        shell.put(emulator.shell_mut()).map_err(damaged)?;
        let guard = Guard::resumed(kept.place, limits.command_bytes_max);
        let (guard, passed) = guard.ok_or(damaged("it ends in no sequence that there is"))?;
        let mut parser = Processor::new();
        let repeatable: String = kept.emulator.settings.repeatable.into_iter().collect();
        parser.advance(&mut Nobody, repeatable.as_bytes());
        parser.advance(&mut Nobody, &passed);
        let written = WrittenCommands::default();
        Ok(Self { guard, parser, emulator, limits, last: None, written })
    }

    /// An empty screen in the place of one whose emulator failed, after the frame published last.
    ///
    /// Rows readable in that frame stay readable: those of a normal screen are history then, while
    /// those of an alternate screen are gone as when it is left. Watermarks and row numbers go on.
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
        screen.emulator.shell_mut().commands = Arc::clone(&frame.commands.value);
        screen
    }
}

/// Takes what a parser is brought to its place with, and does nothing.
struct Nobody;

impl Handler for Nobody {}
