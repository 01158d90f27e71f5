//! The emulator with its bounds: what scrolls off is counted, what could grow is capped.
//!
//! It stands between the parser and the emulator's own state, so that it sees each operation
//! before and after it happens. It decides nothing about frames and when they are published.

mod drawing;
mod handler;
mod keeping;
pub(crate) mod keyboard;
mod settings;
pub(crate) mod shell;
mod tabs;

use std::collections::VecDeque;
use std::sync::Arc;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::CharsetIndex;

use crate::core::frame::Size;
use crate::core::frame::line::Line;
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use crate::core::moment::Moment;
use crate::core::screen::ScreenLimits;
use crate::core::screen::answers::Answers;
use crate::core::screen::emulator::keyboard::KeyboardStacks;
use crate::core::screen::emulator::shell::Shell;
use crate::core::screen::emulator::tabs::TabStops;
use crate::core::screen::guard::Query;
use crate::core::screen::report::Report;
use crate::core::screen::row_numbers::Ledger;
use crate::core::screen::sequence::Sequence;

/// How many rows may scroll off before they are moved into history.
const HARVEST_ROWS: usize = 8;

/// How many rows the emulator itself may hold above the screen: those not moved yet, and those
/// that one operation, or resizing behind the alternate screen, can add.
const EMULATOR_ROWS_MAX: usize = HARVEST_ROWS + 2 * Size::SIDE_MAX as usize;

/// The emulator of one screen.
pub(crate) struct Emulator {
    term: Term<Answers>,
    limits: ScreenLimits,
    ledger: Ledger,
    answers: Answers,
    now: Moment,
    sync: Option<Sync>,
    bells: u64,
    title: Arc<str>,
    titles: VecDeque<Arc<str>>,
    keyboard: KeyboardStacks,
    tabs: TabStops,
    /// The character set in use.
    charset: CharsetIndex,
    /// The character that came last, which a repetition repeats.
    repeatable: Option<char>,
    reports: VecDeque<Report>,
    shell: Shell,
    /// The rows of the normal screen while the alternate one is shown, as they were left.
    shelf: Vec<Arc<Line>>,
    /// What became of the normal screen since.
    shelved: Shelved,
}

/// What resizing did to the normal screen while the alternate one was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Shelved {
    #[default]
    Untouched,
    Resized,
    /// Its text was wrapped anew too.
    Rewrapped,
}

/// A synchronized update that is under way.
#[derive(Clone, Copy, Debug)]
struct Sync {
    until: Moment,
    bytes: usize,
}

impl Emulator {
    pub(crate) fn new(size: Size, limits: ScreenLimits, ledger: Ledger) -> Self {
        let config = Config {
            scrolling_history: EMULATOR_ROWS_MAX,
            kitty_keyboard: true,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        let answers = Answers::new(limits.answers_per_second_max);
        // Made larger and then shrunk, it has rows set aside from the start.
        let larger = Size { rows: rows_with_spare(size.rows.into()) as u16, ..size };
        let mut emulator = Self {
            term: Term::new(config, &Cells(larger), answers.clone()),
            limits,
            ledger,
            answers,
            now: Moment::default(),
            sync: None,
            bells: 0,
            title: Arc::from(""),
            titles: VecDeque::new(),
            keyboard: KeyboardStacks::default(),
            tabs: TabStops::every_eighth(size.cols.into()),
            charset: CharsetIndex::default(),
            repeatable: None,
            reports: VecDeque::new(),
            shell: Shell::default(),
            shelf: Vec::new(),
            shelved: Shelved::default(),
        };
        emulator.term.resize(Cells(size));
        emulator.settle_alternate();
        emulator
    }

    /// Says that output of this length follows.
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

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    pub(crate) fn bells(&self) -> u64 {
        self.bells
    }

    pub(crate) fn title(&self) -> Arc<str> {
        Arc::clone(&self.title)
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
            kitty_flags: keyboard::flags(*self.term.mode()).bits(),
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

    /// Answers a query that the emulator knows nothing of.
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
            Sequence::Mark(params) => self.on_mark(&params),
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

    /// Moves the rows that scrolled off into history.
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

    /// Moves the rows on the normal screen into history as they are, so that what comes after
    /// gets new numbers; those below the last one with anything in it were never used.
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
            let shelved = if rewraps { Shelved::Rewrapped } else { Shelved::Resized };
            self.shelved = self.shelved.max(shelved);
            self.term.resize(Cells(size));
            self.settle_rows();
            return;
        }
        let cursor = self.position();
        if rewraps {
            self.renumber();
        }
        self.harvest();
        self.term.resize(Cells(size));
        self.harvest();
        if rewraps {
            self.on_renumbered(cursor);
        }
        self.settle_rows();
        self.settle_alternate();
        self.set_rows_aside();
    }

    fn enter_alternate(&mut self) {
        self.harvest();
        self.shelf.clear();
        for line in 0..self.term.screen_lines() {
            let line = self.draw_row(line).value;
            self.shelf.push(line);
        }
        self.shell.shelved_at = self.position();
        self.on_alternate();
        self.swap_screens();
        self.ledger.reset();
    }

    fn leave_alternate(&mut self) {
        self.swap_screens();
        self.ledger.reset();
        // They were one when the alternate screen came, and resizing moved only the cursor.
        self.term.grid_mut().saved_cursor = self.term.grid().cursor.clone();
        let shelf = std::mem::take(&mut self.shelf);
        let shelved = std::mem::take(&mut self.shelved);
        if shelved == Shelved::Rewrapped {
            let used = shelf.iter().rposition(|line| **line != Line::default());
            let used = used.map_or(0, |last| last + 1);
            shelf[..used].iter().for_each(|line| self.ledger.keep_line(line));
        }
        self.harvest();
        if shelved == Shelved::Rewrapped {
            self.on_renumbered(self.shell.shelved_at);
        }
        if shelved > Shelved::Untouched {
            self.settle_rows();
            self.set_rows_aside();
        }
    }

    fn swap_screens(&mut self) {
        self.term.swap_alt();
        self.keyboard.swap();
    }

    /// Prepares the rows that scrolling takes into use. Left alone, the emulator takes a thousand
    /// at the first scroll, which at 200 columns are 5 MB a session.
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

    /// Does the same to the alternate screen while it is not shown.
    fn settle_alternate(&mut self) {
        self.with_other(settle_rows);
    }

    /// Reaches the screen that is not shown, which the emulator shows to nobody. When that is the
    /// alternate one, its rows are lost, as they are each time before it is shown.
    fn with_other<T>(&mut self, work: impl FnOnce(&mut Grid<Cell>) -> T) -> T {
        let flags = keyboard::flags(*self.term.mode());
        // Swapped in, the alternate screen is cleared and the saved cursor of the normal one lost.
        let shown = std::mem::replace(self.term.grid_mut(), Grid::new(1, 1, 0));
        self.term.swap_alt();
        let done = work(self.term.grid_mut());
        self.term.swap_alt();
        *self.term.grid_mut() = shown;
        self.set_keyboard_flags(flags);
        done
    }
}

/// Gives back the rows that growing set aside, and has every row cleared whole when it is used
/// again: by itself the emulator clears only what was written since the columns were others.
fn settle_rows(grid: &mut Grid<Cell>) {
    grid.truncate();
    for line in 0..grid.screen_lines() as i32 {
        let _written = &mut grid[GridLine(line)][..];
    }
}

/// How many rows the emulator needs for a screen, those of it and those that may scroll off before
/// they are moved into history.
fn rows_with_spare(rows: usize) -> usize {
    2 * rows + HARVEST_ROWS
}

/// A size, in the form that the emulator takes.
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
