//! A frame: the whole screen at one watermark, and what changed since another.
//!
//! The session publishes frames as values. "What changed after W?" is a pure function of the newest one.

pub mod ansi;
pub mod delta;
pub mod history;
pub(crate) mod kept;
pub mod line;

use std::sync::Arc;

use crate::core::frame::history::{History, HistoryRow};
use crate::core::frame::line::{Line, columns_of, glyphs_of};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::keys::modes::InputModes;
use crate::core::lease::view::LeaseView;
use crate::core::moment::Moment;
use crate::core::shell::ShellView;
use crate::core::shell::activity::Activity;
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::{CommandId, CommandRecord};

/// The size of a terminal in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

impl Size {
    /// The fewest rows and columns of a terminal; an emulator panics below it.
    pub const SIDE_MIN: u16 = 2;
    pub const SIDE_MAX: u16 = 1_000;
    /// The most cells of a terminal, regardless of the configuration.
    pub const CELLS_MAX: u32 = 200_000;

    /// The size, if it lies within the bounds and has no more than `cells_max` cells.
    pub fn checked(rows: u16, cols: u16, cells_max: u32) -> Option<Self> {
        let side = Self::SIDE_MIN..=Self::SIDE_MAX;
        let cells = u32::from(rows) * u32::from(cols);
        let fits = side.contains(&rows) && side.contains(&cols) && cells <= cells_max;
        fits.then_some(Self { rows, cols })
    }

    /// The size within the bounds that is nearest to the available space.
    pub fn nearest(rows: u16, cols: u16) -> Self {
        let side = |side: u16| side.clamp(Self::SIDE_MIN, Self::SIDE_MAX);
        let (rows, cols) = (side(rows), side(cols));
        let rows_max = Self::CELLS_MAX / u32::from(cols);
        Self { rows: rows.min(u16::try_from(rows_max).unwrap_or(u16::MAX)), cols }
    }
}

/// A value with the watermark of its own last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped<T> {
    pub value: T,
    pub changed: Watermark,
}

impl<T: PartialEq> Stamped<T> {
    /// Stores the new value with the stamp `mark` if it differs. Returns whether it did.
    pub fn update(&mut self, value: T, mark: Watermark) -> bool {
        if self.value == value {
            return false;
        }
        *self = Self { value, changed: mark };
        true
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorShape {
    #[default]
    Block,
    Underline,
    Beam,
}

/// The cursor: an absolute row, a column from 0, and how it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub row: RowNumber,
    pub col: u16,
    pub visible: bool,
    pub shape: CursorShape,
    /// The parameter of DECSCUSR that makes a terminal show it so, blinking or not; 0 is the terminal's own
    /// look.
    pub style: u8,
}

/// The last text that the program wrote to the clipboard (OSC 52), for people's terminals only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClipboardWrite {
    /// How many times it wrote so far, so that a reader knows a new write.
    pub count: u64,
    /// The text in Base64.
    pub data: Arc<str>,
}

/// Which of the two screens is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScreenMode {
    #[default]
    Normal,
    /// The alternate screen of full-screen programs; its rows never enter history.
    Alternate,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It ended, and the kernel reported neither code nor signal.
    Unknown,
    /// Its shim is gone, so its end is unknown.
    Lost,
}

/// The output of commands that still run.
pub type Printed = Vec<(CommandId, Arc<Output>)>;

/// The screen of one session at one watermark, with everything else that deltas report.
#[derive(Clone, Debug)]
pub struct Frame {
    pub watermark: Watermark,
    /// The newest change that a delta cannot express: a reader with an older watermark gets the whole frame.
    pub reset: Watermark,
    pub base_row: RowNumber,
    /// When the number of the top row last changed.
    pub scrolled: Watermark,
    /// The rows from `base_row` on; `size` gives their count.
    pub lines: Arc<[Stamped<Arc<Line>>]>,
    pub size: Stamped<Size>,
    pub cursor: Stamped<Cursor>,
    pub mode: Stamped<ScreenMode>,
    pub title: Stamped<Arc<str>>,
    /// The modes that the program set for keyboard and mouse.
    pub input_modes: Stamped<InputModes>,
    pub lease: Stamped<Arc<LeaseView>>,
    pub bell: Stamped<u64>,
    pub clipboard: Stamped<ClipboardWrite>,
    pub exit: Stamped<Option<Exit>>,
    pub activity: Stamped<Arc<Activity>>,
    /// Whether it takes a command, or waits for input.
    pub shell: Arc<ShellView>,
    pub commands: Stamped<Arc<Commands>>,
    /// What the commands that still run have printed.
    pub printed: Stamped<Arc<Printed>>,
    /// The rows that scrolled off before this frame; all their numbers are below `base_row`.
    pub history: Arc<History>,
    /// When rows, cursor, size or mode last changed.
    pub screen_changed_at: Moment,
}

impl Frame {
    /// What a command has printed.
    pub fn output(&self, record: &CommandRecord) -> Arc<Output> {
        let printed = self.printed.value.iter().find(|(id, _)| *id == record.id);
        printed.map_or_else(|| Arc::clone(&record.output), |(_, output)| Arc::clone(output))
    }

    /// The row after the bottom one.
    pub fn end_row(&self) -> RowNumber {
        self.base_row.plus(self.lines.len())
    }

    /// The line of a row that is on the screen.
    pub fn line(&self, row: RowNumber) -> Option<&Stamped<Arc<Line>>> {
        let index = row.0.checked_sub(self.base_row.0)?;
        self.lines.get(usize::try_from(index).ok()?)
    }

    /// The line of a row on the screen or in history, with the watermark of its last change.
    pub fn any_line(&self, row: RowNumber) -> Option<(Arc<Line>, Watermark)> {
        match self.line(row) {
            Some(stamped) => Some((Arc::clone(&stamped.value), stamped.changed)),
            None => self.history.row(row).map(|kept| (Arc::new(kept.line()), kept.changed)),
        }
    }

    /// The same, as it stands there.
    pub fn any_row(&self, row: RowNumber) -> Option<HistoryRow<'_>> {
        match self.line(row) {
            Some(Stamped { value, changed }) => Some(HistoryRow::of(value, *changed)),
            None => self.history.row(row),
        }
    }

    /// How many blanks at the end of a wrapped line its text omits, when `next` continues it.
    pub(crate) fn omitted_blanks(&self, line: &str, changed: Watermark, next: &str) -> usize {
        // The width of rows older than the last resize is unknown.
        if changed < self.size.changed {
            return 0;
        }
        let blanks = self.size.value.cols.saturating_sub(columns_of(line));
        // A wide character leaves the last column empty when only half of it fits.
        let wide = glyphs_of(next).next().is_some_and(|glyph| glyph.columns == 2);
        if wide && blanks == 1 { 0 } else { blanks.into() }
    }

    /// The text on the row of the cursor before it, trailing blanks included.
    pub fn before_cursor(&self) -> String {
        let cursor = self.cursor.value;
        let Some(line) = self.line(cursor.row) else { return String::new() };
        let line = &line.value;
        let mut text = line.text_between(0, cursor.col).to_owned();
        let blanks = cursor.col.saturating_sub(line.columns());
        text.extend(std::iter::repeat_n(' ', blanks.into()));
        text
    }

    /// The newest watermark at which rows, cursor, size or mode changed, for a writer that expects an
    /// unchanged screen.
    pub fn screen_watermark(&self) -> Watermark {
        let rows = self.lines.iter().map(|line| line.changed).max().unwrap_or_default();
        rows.max(self.cursor.changed).max(self.size.changed).max(self.mode.changed).max(self.reset)
    }

    /// The row after the last one with text or the cursor.
    pub fn end_of_text(&self) -> RowNumber {
        let blank = |line: &Stamped<Arc<Line>>| line.value.text.is_empty();
        let shown = self.lines.iter().rposition(|line| !blank(line)).map_or(0, |index| index + 1);
        let cursor = RowNumber(self.cursor.value.row.0 + 1).min(self.end_row());
        self.base_row.plus(shown).max(cursor)
    }
}
