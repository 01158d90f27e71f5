//! Wraps the emulator: counts the rows that scroll off and bounds everything that can grow.
//!
//! It stands between the parser and the emulator's state, and sees each operation before and after it.

mod drawing;
mod handler;
mod keeping;
pub(crate) mod recording;
pub(crate) mod settings;
pub(crate) mod shell;

use std::collections::VecDeque;
use std::sync::Arc;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler as _};

use crate::core::frame::{ClipboardWrite, Size};
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use crate::core::moment::Moment;
use crate::core::screen::ScreenLimits;
use crate::core::screen::answers::Answers;
use crate::core::screen::emulator::recording::Recordings;
use crate::core::screen::emulator::settings::{KeyboardStacks, TabStops};
use crate::core::screen::emulator::shell::MarkedShell;
use crate::core::screen::guard::Query;
use crate::core::screen::row_numbers::{RowNumbers, StampedLine};
use crate::core::screen::sequence::{Report, Sequence};

/// How many rows may scroll off before they are moved into history.
const HARVEST_ROWS: usize = 8;

/// The most rows the emulator itself holds above the screen: those not moved yet, and those that
/// one operation, or resizing behind the alternate screen, can add.
const EMULATOR_ROWS_MAX: usize = HARVEST_ROWS + 2 * Size::SIDE_MAX as usize;

pub(crate) struct Emulator {
    term: Term<Answers>,
    limits: ScreenLimits,
    pub(super) ledger: RowNumbers,
    answers: Answers,
    now: Moment,
    sync: Option<Sync>,
    pub(super) bells: u64,
    /// How many characters were left out because nobody would see them.
    pub(super) invisible: u64,
    pub(super) clipboard: ClipboardWrite,
    pub(super) title: Arc<str>,
    titles: VecDeque<Arc<str>>,
    keyboard: KeyboardStacks,
    tabs: TabStops,
    charset: CharsetIndex,
    /// The last character, which a repetition (REP) repeats.
    repeatable: Option<char>,
    reports: VecDeque<Report>,
    pub(super) shell: MarkedShell,
    pub(super) recordings: Recordings,
    hidden_resize: HiddenResize,
    /// The rows of the normal screen when the alternate one replaced it.
    hidden: Vec<StampedLine>,
}

/// What resizing did to the normal screen while the alternate one was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum HiddenResize {
    #[default]
    Untouched,
    Resized,
    /// Its text was wrapped again for another width.
    Rewrapped,
}

/// A synchronized update in progress.
#[derive(Clone, Copy, Debug)]
struct Sync {
    until: Moment,
    bytes: usize,
}

impl Emulator {
    pub(crate) fn new(size: Size, limits: ScreenLimits, ledger: RowNumbers) -> Self {
        let config = Config {
            scrolling_history: EMULATOR_ROWS_MAX,
            kitty_keyboard: true,
            osc52: Osc52::Disabled,
            default_cursor_style: settings::OWN_STYLE,
            ..Config::default()
        };
        let answers = Answers::new(limits.answers_per_second_max);
        // Growing and then shrinking the screen reserves its spare rows from the start.
        let larger = Size { rows: rows_with_spare(size.rows.into()) as u16, ..size };
        let mut emulator = Self {
            term: Term::new(config, &Cells(larger), answers.clone()),
            limits,
            ledger,
            answers,
            now: Moment::default(),
            sync: None,
            bells: 0,
            invisible: 0,
            clipboard: ClipboardWrite::default(),
            title: Arc::from(""),
            titles: VecDeque::new(),
            keyboard: KeyboardStacks::default(),
            tabs: TabStops::every_eighth(size.cols.into()),
            charset: CharsetIndex::default(),
            repeatable: None,
            reports: VecDeque::new(),
            shell: MarkedShell::default(),
            recordings: Recordings::new(limits.history.bytes_max),
            hidden_resize: HiddenResize::default(),
            hidden: Vec::new(),
        };
        emulator.term.resize(Cells(size));
        emulator.settle_alternate();
        emulator
    }

    /// Prepares for output of this length.
    pub(crate) fn begin_feed(&mut self, now: Moment, bytes: usize) {
        self.now = now;
        self.answers.set_now(now);
        self.sync = self.sync.and_then(|sync| {
            let bytes = sync.bytes.saturating_add(bytes);
            (bytes <= self.limits.sync_bytes_max).then_some(Sync { bytes, ..sync })
        });
    }

    pub(crate) fn size(&self) -> Size {
        Size { rows: self.term.screen_lines() as u16, cols: self.term.columns() as u16 }
    }

    fn begin_sync(&mut self) {
        // A nested update does not extend the time without frames.
        if self.sync.is_none_or(|sync| sync.until <= self.now) {
            self.sync = Some(Sync { until: self.now + self.limits.sync_time_max, bytes: 0 });
        }
    }

    pub(crate) fn hold_until(&self) -> Option<Moment> {
        self.sync.map(|sync| sync.until)
    }

    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        self.answers.take()
    }

    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        self.reports.drain(..).collect()
    }

    pub(crate) fn input_modes(&self) -> InputModes {
        let has = |mode| self.term.mode().contains(mode);
        InputModes {
            application_cursor: has(TermMode::APP_CURSOR),
            application_keypad: has(TermMode::APP_KEYPAD),
            bracketed_paste: has(TermMode::BRACKETED_PASTE),
            line_feed_new_line: has(TermMode::LINE_FEED_NEW_LINE),
            mouse: self.mouse_reporting(),
            mouse_encoding: if has(TermMode::SGR_MOUSE) {
                MouseEncoding::Sgr
            } else if has(TermMode::UTF8_MOUSE) {
                MouseEncoding::Utf8
            } else {
                MouseEncoding::Bytes
            },
            kitty_flags: settings::keyboard_flags(*self.term.mode()).bits(),
        }
    }

    fn mouse_reporting(&self) -> MouseReporting {
        let kinds = [
            (TermMode::MOUSE_MOTION, MouseReporting::Motion),
            (TermMode::MOUSE_DRAG, MouseReporting::Drags),
            (TermMode::MOUSE_REPORT_CLICK, MouseReporting::Clicks),
        ];
        let on = kinds.into_iter().find(|(mode, _)| self.term.mode().contains(*mode));
        on.map_or(MouseReporting::Off, |(_, reporting)| reporting)
    }

    /// Answers a query that the emulator does not handle.
    pub(crate) fn answer(&mut self, query: Query) {
        match query {
            Query::Version => self.answers.push("\x1bP>|termgate\x1b\\"),
            Query::CursorPosition => {
                let point = self.term.grid().cursor.point;
                let (row, col) = (point.line.0 + 1, point.column.0 + 1);
                self.answers.push(&format!("\x1b[?{row};{col}R"));
            }
        }
    }

    pub(crate) fn on_sequence(&mut self, sequence: Sequence) {
        match sequence {
            Sequence::Title(title) => self.title = title.into(),
            Sequence::Report(report) => self.report(report),
            Sequence::Clipboard(data) => {
                let count = self.clipboard.count + 1;
                self.clipboard = ClipboardWrite { count, data: data.into() };
            }
            Sequence::Mark(params) => self.on_mark(&params),
            Sequence::Link(target) => {
                let link = target.map(|target| self.ledger.links().open(&target));
                self.term.set_hyperlink(link);
            }
            Sequence::Answers(answers) => {
                answers.iter().for_each(|answer| self.answers.push(answer));
            }
        }
    }

    fn report(&mut self, report: Report) {
        if let Report::Directory(directory) = &report {
            self.shell.directory = Some(directory.as_str().into());
        }
        if self.reports.len() == Report::QUEUED_MAX {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    pub(crate) fn alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    pub(crate) fn harvest(&mut self) {
        let scrolled = self.term.history_size();
        if scrolled == 0 {
            return;
        }
        for line in (1..=scrolled).rev() {
            self.ledger.keep(&self.term.grid()[GridLine(-(line as i32))]);
        }
        self.term.grid_mut().clear_history();
    }

    /// Harvests when enough rows scrolled off that the emulator could run out of room.
    #[inline]
    fn after_scrolling(&mut self) {
        if self.term.history_size() >= HARVEST_ROWS {
            self.harvest();
        }
    }

    /// Moves the rows on the normal screen into history, so that later output gets new row numbers.
    /// Rows below the last one with text were never used and stay.
    fn renumber(&mut self) {
        self.harvest();
        let mut used = self.term.screen_lines();
        while used > 0 && self.ledger.reads_empty(&self.term.grid()[GridLine(used as i32 - 1)]) {
            used -= 1;
        }
        for line in 0..used {
            self.ledger.keep(&self.term.grid()[GridLine(line as i32)]);
        }
        self.ledger.reset();
    }

    pub(crate) fn resize(&mut self, size: Size) {
        let before = self.size();
        if size == before {
            return;
        }
        let rewraps = size.cols != before.cols;
        self.tabs.resize(size.cols.into());
        if self.alternate() {
            let resize = if rewraps { HiddenResize::Rewrapped } else { HiddenResize::Resized };
            self.hidden_resize = self.hidden_resize.max(resize);
            self.term.resize(Cells(size));
            self.settle_rows();
            self.resize_recordings();
            return;
        }
        self.harvest();
        let before = if rewraps { self.rows() } else { Vec::new() };
        self.term.resize(Cells(size));
        if rewraps {
            self.stamp_again(&before);
        }
        self.harvest();
        if rewraps {
            self.on_rows_moved();
        }
        self.resize_recordings();
        self.settle_rows();
        self.settle_alternate();
        self.set_rows_aside();
    }

    fn enter_alternate(&mut self) {
        self.harvest();
        self.hidden = self.rows();
        self.on_alternate();
        self.swap_screens();
        self.ledger.reset();
    }

    fn leave_alternate(&mut self) {
        self.swap_screens();
        let before = std::mem::take(&mut self.hidden);
        self.stamp_again(&before);
        // Both cursors were equal when the alternate screen appeared, and resizing moved only this one.
        self.term.grid_mut().saved_cursor = self.term.grid().cursor.clone();
        let resize = std::mem::take(&mut self.hidden_resize);
        self.harvest();
        if resize == HiddenResize::Rewrapped {
            self.on_rows_moved();
        }
        if resize > HiddenResize::Untouched {
            self.settle_rows();
            self.set_rows_aside();
        }
    }

    fn rows(&mut self) -> Vec<StampedLine> {
        (0..self.term.screen_lines()).map(|line| self.draw_row(line)).collect()
    }

    /// Stamps the rows that were on the screen `before` and now stand elsewhere as they were.
    fn stamp_again(&mut self, before: &[StampedLine]) {
        let rows = -(self.term.history_size() as i32)..self.term.screen_lines() as i32;
        let rows = rows.map(|line| self.ledger.line(&self.term.grid()[GridLine(line)]));
        let rows = rows.collect();
        self.ledger.show(before, rows);
    }

    fn swap_screens(&mut self) {
        self.term.swap_alt();
        self.keyboard.swap();
    }

    /// Allocates the rows that scrolling needs. Otherwise the emulator allocates a thousand rows at
    /// the first scroll, which is 5 MB per session at 200 columns.
    fn set_rows_aside(&mut self) {
        let (rows, cols) = (self.term.screen_lines(), self.term.columns());
        let grid = self.term.grid_mut();
        grid.resize(false, rows_with_spare(rows), cols);
        grid.truncate();
        grid.resize(false, rows, cols);
    }

    fn settle_rows(&mut self) {
        settle_rows(self.term.grid_mut());
    }

    /// Settles the rows of the alternate screen while it is hidden.
    fn settle_alternate(&mut self) {
        self.with_other(settle_rows);
    }

    /// Runs `work` on the hidden screen, which the emulator does not expose. A hidden alternate screen
    /// loses its rows, as it does each time before it is shown.
    fn with_other<T>(&mut self, work: impl FnOnce(&mut Grid<Cell>) -> T) -> T {
        let flags = settings::keyboard_flags(*self.term.mode());
        // The swap clears the alternate screen and loses the normal screen's saved cursor.
        let shown = std::mem::replace(self.term.grid_mut(), Grid::new(1, 1, 0));
        self.term.swap_alt();
        let done = work(self.term.grid_mut());
        self.term.swap_alt();
        *self.term.grid_mut() = shown;
        self.set_keyboard_flags(flags);
        done
    }
}

/// Frees the rows that growing allocated, and makes the emulator clear each row whole on reuse.
/// By itself the emulator clears only what was written since the column count changed.
fn settle_rows(grid: &mut Grid<Cell>) {
    grid.truncate();
    for line in 0..grid.screen_lines() as i32 {
        let _written = &mut grid[GridLine(line)][..];
    }
}

/// How many rows the emulator needs: those of the screen, and those that may scroll off before
/// they move into history.
fn rows_with_spare(rows: usize) -> usize {
    2 * rows + HARVEST_ROWS
}

/// A size in the form that the emulator takes.
#[derive(Clone, Copy)]
struct Cells(Size);

impl Dimensions for Cells {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.0.cols)
    }
}
