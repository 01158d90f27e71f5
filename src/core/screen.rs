//! The screen of one session: turns a program's output into frames.
//!
//! It hides the emulator, whose types do not leave this module, and numbers the rows.

pub mod checkpoint;

mod answers;
mod cells;
mod emulator;
mod guard;
mod links;
mod picture;
mod recorder;
mod rewrapped;
mod row_numbers;
pub mod sequence;
mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use alacritty_terminal::vte::ansi::{Processor, Timeout};

use crate::core::frame::history::{History, HistoryLimits};
use crate::core::frame::{Exit, Frame, Size, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::keys::modes::InputModes;
use crate::core::lease::view::LeaseView;
use crate::core::moment::Moment;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::guard::{CANCEL, Guard, Item};
use crate::core::screen::row_numbers::RowNumbers;
use crate::core::screen::sequence::{Report, Sequence};
use crate::core::screen::snapshot::shell::WrittenCommands;
use crate::core::shell::ShellView;
use crate::core::shell::activity::Activity;
use crate::core::shell::commands::record::Position;

/// The limits on what a program can make its screen store and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenLimits {
    pub history: HistoryLimits,
    /// Bytes of one [`Screen::feed`] on a screen of the usual size.
    pub slice_bytes_max: usize,
    /// Bytes of an operating system command; a longer one is skipped whole.
    pub command_bytes_max: usize,
    pub title_characters_max: usize,
    /// Titles that a program may push on the stack.
    pub titles_max: usize,
    /// Combining marks on one cell.
    pub marks_max: usize,
    pub answers_per_second_max: usize,
    /// How long a synchronized update may withhold frames.
    pub sync_time_max: Duration,
    pub sync_bytes_max: usize,
}

impl Default for ScreenLimits {
    fn default() -> Self {
        Self {
            history: HistoryLimits::default(),
            slice_bytes_max: 64 * 1024,
            command_bytes_max: 4 * 1024,
            title_characters_max: 256,
            titles_max: 16,
            marks_max: 8,
            answers_per_second_max: 1_000,
            sync_time_max: Duration::from_millis(150),
            sync_bytes_max: 2 * 1024 * 1024,
        }
    }
}

/// Where a screen continues counting, so that no watermark or row number is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub watermark: Watermark,
    pub row: RowNumber,
}

/// The parts of a frame that the screen does not know itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub lease: Arc<LeaseView>,
    pub exit: Option<Exit>,
    pub activity: Arc<Activity>,
    pub shell: Arc<ShellView>,
}

/// The screen of one session, its history and its row numbers.
///
/// Call `feed` and `resize` for each event, and `publish` for a frame. Then act on `take_answers`,
/// `take_reports` and `hold_until`.
pub struct Screen {
    guard: Guard,
    parser: Processor<Unbuffered>,
    emulator: Emulator,
    limits: ScreenLimits,
    last: Option<Arc<Frame>>,
    /// The encoded commands of the last checkpoint.
    written: WrittenCommands,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("size", &self.emulator.size()).finish_non_exhaustive()
    }
}

impl Screen {
    /// An empty screen of this size, which continues from `origin`.
    pub fn new(size: Size, limits: ScreenLimits, origin: Origin) -> Self {
        let history = History::starting_at(origin.row, limits.history);
        Self::with_history(size, limits, origin.watermark, history)
    }

    /// An empty screen below this history, which continues from this watermark.
    fn with_history(
        size: Size,
        limits: ScreenLimits,
        watermark: Watermark,
        history: History,
    ) -> Self {
        let ledger = RowNumbers::new(limits.history, watermark, history);
        Self {
            guard: Guard::new(limits.command_bytes_max),
            parser: Processor::new(),
            emulator: Emulator::new(size, limits, ledger),
            limits,
            last: None,
            written: WrittenCommands::default(),
        }
    }

    /// The most bytes for one call of [`Screen::feed`].
    ///
    /// Some three-byte sequences touch every cell, so hostile output takes longer on a large screen. With
    /// this bound one call takes about a tenth of a second at worst.
    pub fn slice_bytes(&self) -> usize {
        const CELLS: usize = 2_000;
        let Size { rows, cols } = self.emulator.size();
        let cells = usize::from(rows) * usize::from(cols);
        self.limits.slice_bytes_max * CELLS / cells.max(CELLS)
    }

    /// Processes output of the program. The result does not depend on how it is split into pieces.
    pub fn feed(&mut self, now: Moment, bytes: &[u8]) {
        self.emulator.begin_feed(now, bytes.len());
        let mut rest = bytes;
        while let Some(item) = self.guard.next(&mut rest) {
            match item {
                Item::Bytes(bytes) => self.parser.advance(&mut self.emulator, bytes),
                Item::Text(text) => self.emulator.print(text),
                Item::Repeat(times) => {
                    self.parser.advance(&mut self.emulator, &[CANCEL]);
                    self.emulator.repeat(times);
                }
                Item::Joined(character) => {
                    self.parser.advance(&mut self.emulator, character.bytes());
                }
                Item::Query(query) => self.emulator.answer(query),
                Item::String => {
                    let string = self.guard.string();
                    let host = self.emulator.shell.host.as_deref();
                    if let Some(sequence) = Sequence::parse(string, &self.limits, host) {
                        self.emulator.on_sequence(sequence);
                    }
                }
            }
        }
        self.emulator.harvest();
    }

    /// Changes the size. A new column count wraps the text again.
    pub fn resize(&mut self, size: Size) {
        self.emulator.resize(size);
    }

    pub fn size(&self) -> Size {
        self.emulator.size()
    }

    /// Takes the answers to the program's queries, oldest first.
    pub fn take_answers(&mut self) -> Vec<u8> {
        self.emulator.take_answers()
    }

    /// Takes the program's reports, oldest first. Beyond [`Report::QUEUED_MAX`] the oldest are dropped; the number is of
    /// the notifications among those.
    pub fn take_reports(&mut self) -> (Vec<Report>, u64) {
        self.emulator.take_reports()
    }

    /// The keyboard and mouse modes that the program set.
    pub fn modes(&self) -> InputModes {
        self.emulator.input_modes()
    }

    pub fn cursor(&self) -> Position {
        self.emulator.position()
    }

    /// The row of the cursor, where the next output starts.
    pub fn cursor_row(&self) -> RowNumber {
        self.emulator.position().row
    }

    /// The text before the cursor on its row, trailing blanks included, without the output of a command that
    /// ended there.
    pub fn before_cursor(&mut self) -> String {
        self.emulator.before_cursor()
    }

    /// Whether what runs has written to places all over the normal screen.
    pub fn painted(&self) -> bool {
        self.emulator.recordings.painted()
    }

    /// The text of so many rows above the cursor, as far as they are on the screen.
    pub fn above_cursor(&mut self, rows: usize) -> String {
        self.emulator.above_cursor(rows)
    }

    pub fn cursor_visible(&self) -> bool {
        self.emulator.cursor().visible
    }

    pub fn alternate(&self) -> bool {
        self.emulator.alternate()
    }

    /// The end of a synchronized update, before which nothing should be published. It may be in the past.
    pub fn hold_until(&self) -> Option<Moment> {
        self.emulator.hold_until()
    }

    /// Discards all rows of history. Row numbers continue: the first readable row is then the top row
    /// of the screen.
    pub fn clear_history(&mut self) {
        self.emulator.ledger.clear();
    }

    /// Publishes a frame if anything changed, and returns the newest one.
    pub fn first_frame(&mut self, now: Moment, facts: &Facts) -> Arc<Frame> {
        let published = self.publish(now, facts);
        published
            .or_else(|| self.last.clone())
            .expect("a publish without a frame before it makes one")
    }

    /// Creates a frame of the screen, or returns none when nothing changed since the last one.
    ///
    /// All changes carry one watermark, the next after the last frame's. If only the shell's readiness changed, the
    /// watermark stays.
    pub fn publish(&mut self, now: Moment, facts: &Facts) -> Option<Arc<Frame>> {
        let last = self.last.take();
        let frame = match &last {
            None => Some(self.draw_first(now, facts)),
            Some(last) => self.draw_next(now, facts, last),
        };
        let published = frame.map(Arc::new);
        self.last = published.clone().or(last);
        if let Some(frame) = &published {
            self.emulator.ledger.on_published(frame);
        }
        published
    }

    /// How many characters were left out because nobody would see them.
    pub fn invisible(&self) -> u64 {
        self.emulator.invisible
    }

    fn draw_first(&mut self, now: Moment, facts: &Facts) -> Frame {
        let mark = self.emulator.ledger.mark();
        let drawing = self.emulator.draw(None);
        Frame {
            watermark: mark,
            reset: mark,
            base_row: drawing.base_row,
            scrolled: mark,
            lines: drawing.lines,
            size: Stamped { value: self.emulator.size(), changed: mark },
            cursor: Stamped { value: drawing.cursor, changed: mark },
            mode: Stamped { value: drawing.mode, changed: mark },
            title: Stamped { value: Arc::clone(&self.emulator.title), changed: mark },
            input_modes: Stamped { value: self.modes(), changed: mark },
            lease: Stamped { value: Arc::clone(&facts.lease), changed: mark },
            bell: Stamped { value: self.emulator.bells, changed: mark },
            clipboard: Stamped { value: self.emulator.clipboard.clone(), changed: mark },
            exit: Stamped { value: facts.exit, changed: mark },
            activity: Stamped { value: Arc::clone(&facts.activity), changed: mark },
            shell: Arc::clone(&facts.shell),
            commands: Stamped { value: Arc::clone(self.commands()), changed: mark },
            printed: Stamped { value: self.emulator.recordings.printed(), changed: mark },
            history: Arc::new(self.emulator.ledger.history().clone()),
            screen_changed_at: now,
        }
    }

    fn draw_next(&mut self, now: Moment, facts: &Facts, last: &Frame) -> Option<Frame> {
        let mark = self.emulator.ledger.mark();
        let drawing = self.emulator.draw(Some(last));
        let mut next = last.clone();
        let mut shown = drawing.changed;
        shown |= next.size.update(self.emulator.size(), mark);
        shown |= next.cursor.update(drawing.cursor, mark);
        shown |= next.mode.update(drawing.mode, mark);
        let mut told = next.title.update(Arc::clone(&self.emulator.title), mark);
        told |= next.input_modes.update(self.modes(), mark);
        told |= next.lease.update(Arc::clone(&facts.lease), mark);
        told |= next.bell.update(self.emulator.bells, mark);
        told |= next.exit.update(facts.exit, mark);
        if next.clipboard.value.count != self.emulator.clipboard.count {
            next.clipboard = Stamped { value: self.emulator.clipboard.clone(), changed: mark };
            told = true;
        }
        told |= next.activity.update(Arc::clone(&facts.activity), mark);
        next.shell = Arc::clone(&facts.shell);
        if !Arc::ptr_eq(&next.commands.value, self.commands()) {
            next.commands = Stamped { value: Arc::clone(self.commands()), changed: mark };
            told = true;
        }
        if self.emulator.recordings.take_change() {
            told |= next.printed.update(self.emulator.recordings.printed(), mark);
        }
        if self.emulator.ledger.was_reset() {
            next.reset = mark;
            shown = true;
        }
        let scrolled = drawing.base_row != last.base_row;
        if scrolled {
            next.scrolled = mark;
            shown = true;
        }
        let cleared = self.emulator.ledger.was_cleared();
        if scrolled || cleared {
            next.history = Arc::new(self.emulator.ledger.history().clone());
        }
        if !shown && !told && !cleared {
            // Readers wait for it, but no answer and no delta shows it, so the watermark stays.
            return (next.shell != last.shell).then_some(next);
        }
        next.watermark = mark;
        next.base_row = drawing.base_row;
        next.lines = drawing.lines;
        if shown {
            next.screen_changed_at = now;
        }
        Some(next)
    }
}

/// Stops the parser from delaying synchronized updates: they reach the emulator at once, and only
/// publishing waits.
#[derive(Debug, Default)]
struct Unbuffered;

impl Timeout for Unbuffered {
    fn set_timeout(&mut self, _duration: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
