//! Passes the parser's operations to the emulator.
//!
//! Most pass unchanged. Operations that scroll harvest rows, operations that replace rows renumber
//! them, and operations without a bound in the emulator get one. Control strings never get here.

use std::iter::repeat_n;
use std::sync::Arc;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorStyle, Handler, KeyboardModes, KeyboardModesApplyBehavior,
    LineClearMode, Mode, NamedPrivateMode, PrivateMode, StandardCharset, TabulationClearMode,
};
use unicode_width::UnicodeWidthChar;

use crate::core::invisible::is_invisible;
use crate::core::screen::cells::{BLINK, WIDE};
use crate::core::screen::emulator::{Emulator, settings};

/// Characters below this one have a width, except controls.
const FIRST_MARK: char = '\u{ad}';

/// The size of a cell, for programs that ask for the screen size in pixels.
const CELL_HEIGHT: usize = 16;
const CELL_WIDTH: usize = 8;

const SYNC_UPDATE: PrivateMode = PrivateMode::Named(NamedPrivateMode::SyncUpdate);
const ALTERNATE_SCREEN: PrivateMode =
    PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor);

impl Emulator {
    /// Whether nobody would see this mark.
    fn is_unseen(&self, mark: char) -> bool {
        let joined = self.joined_cell();
        let after = joined.zerowidth().and_then(<[char]>::last).unwrap_or(&joined.c);
        is_invisible(Some(*after), mark)
    }

    /// Whether the cell that a mark would join already has the most marks allowed.
    fn has_all_marks(&self) -> bool {
        self.joined_cell().zerowidth().is_some_and(|marks| marks.len() >= self.limits.marks_max)
    }

    /// The cell that a mark joins.
    fn joined_cell(&self) -> &Cell {
        let cursor = &self.term.grid().cursor;
        let row = &self.term.grid()[cursor.point.line];
        let back = usize::from(!cursor.input_needs_wrap);
        let mut column = cursor.point.column - back.min(cursor.point.column.0);
        if row[column].flags.contains(Flags::WIDE_CHAR_SPACER) && column.0 > 0 {
            column -= 1;
        }
        &row[column]
    }
}

impl Emulator {
    /// Prints characters of printable ASCII.
    pub(crate) fn print(&mut self, mut text: &[u8]) {
        while let Some((_, all_but_last)) = text.split_last() {
            let filled = self.fill_cells(all_but_last);
            self.input(char::from(text[filled]));
            text = &text[filled + 1..];
        }
    }

    /// Prints the last character again.
    pub(crate) fn repeat(&mut self, times: usize) {
        let last = self.repeatable;
        last.into_iter().flat_map(|last| repeat_n(last, times)).for_each(|last| self.input(last));
    }

    /// Prints the start of a text, as far as it only fills cells before the last column, and returns its length.
    fn fill_cells(&mut self, text: &[u8]) -> usize {
        let (mode, columns) = (*self.term.mode(), self.term.columns());
        let grid = self.term.grid_mut();
        let cursor = &grid.cursor;
        let translates = cursor.charsets[self.charset] != StandardCharset::Ascii;
        let inserts = mode.contains(TermMode::INSERT);
        if translates || inserts || cursor.input_needs_wrap || cursor.template.extra.is_some() {
            return 0;
        }
        let Cell { fg, bg, flags, .. } = cursor.template;
        let Point { line, column } = cursor.point;
        let end = (column + text.len()).min(Column(columns - 1));
        let mut filled = 0;
        for (cell, byte) in grid[line][column..end].iter_mut().zip(text) {
            if cell.flags.intersects(WIDE) {
                break;
            }
            *cell = Cell { c: char::from(*byte), fg, bg, flags, extra: None };
            filled += 1;
        }
        grid.cursor.point.column += filled;
        let text = &text[..filled];
        self.recordings.each(|recorder| text.iter().for_each(|it| recorder.input(char::from(*it))));
        filled
    }
}

/// Operations that only the emulator takes, then those that recorders take as well.
macro_rules! pass {
    (
        $(emulator: $own:ident($($own_name:ident: $own_type:ty),*);)*
        $(all: $shared:ident($($name:ident: $type:ty),*);)*
    ) => {
        $(#[inline]
        fn $own(&mut self $(, $own_name: $own_type)*) {
            self.term.$own($($own_name),*);
        })*
        $(#[inline]
        fn $shared(&mut self $(, $name: $type)*) {
            self.term.$shared($($name),*);
            self.recordings.each(|recorder| recorder.$shared($($name),*));
        })*
    };
}

impl Handler for Emulator {
    pass! {
        emulator: device_status(status: usize);
        emulator: set_tabs(interval: u16);
        emulator: report_mode(mode: Mode);
        emulator: set_keypad_application_mode();
        emulator: unset_keypad_application_mode();
        emulator: text_area_size_chars();
        emulator: set_cursor_style(style: Option<CursorStyle>);
        all: goto(line: i32, col: usize);
        all: goto_line(line: i32);
        all: goto_col(col: usize);
        all: insert_blank(count: usize);
        all: insert_blank_lines(count: usize);
        all: move_up(count: usize);
        all: move_down(count: usize);
        all: move_forward(count: usize);
        all: move_backward(count: usize);
        all: move_down_and_cr(count: usize);
        all: move_up_and_cr(count: usize);
        all: move_forward_tabs(count: u16);
        all: backspace();
        all: carriage_return();
        all: scroll_down(count: usize);
        all: reverse_index();
        all: erase_chars(count: usize);
        all: delete_chars(count: usize);
        all: save_cursor_position();
        all: restore_cursor_position();
        all: configure_charset(index: CharsetIndex, charset: StandardCharset);
        all: decaln();
    }

    #[inline]
    fn input(&mut self, c: char) {
        let is_mark = c >= FIRST_MARK && c.width() == Some(0);
        if is_mark && self.is_unseen(c) {
            self.invisible += 1;
            return;
        }
        self.repeatable = Some(c);
        if is_mark && self.has_all_marks() {
            return;
        }
        self.term.input(c);
        self.recordings.each(|recorder| recorder.input(c));
        // Only a wrapped character leaves the cursor this far left.
        if self.term.grid().cursor.point.column.0 <= 2 {
            self.after_scrolling();
        }
    }

    #[inline]
    fn linefeed(&mut self) {
        self.term.linefeed();
        self.recordings.each(Handler::linefeed);
        self.after_scrolling();
    }

    #[inline]
    fn newline(&mut self) {
        self.term.newline();
        self.after_scrolling();
    }

    fn put_tab(&mut self, count: u16) {
        self.term.put_tab(count);
        self.recordings.each(|recorder| recorder.put_tab(count));
        self.after_scrolling();
    }

    fn scroll_up(&mut self, count: usize) {
        self.term.scroll_up(count);
        self.recordings.each(|recorder| recorder.scroll_up(count));
        self.after_scrolling();
    }

    fn delete_lines(&mut self, count: usize) {
        self.term.delete_lines(count);
        self.recordings.each(|recorder| recorder.delete_lines(count));
        self.after_scrolling();
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        // Clearing the scrollback removes only the emulator's own rows: our history stays readable.
        self.harvest();
        self.recordings.each(|recorder| recorder.clear(&mode));
        self.term.clear_screen(mode);
        // The emulator moves one row off even from an empty screen.
        if self.term.history_size() == 1 && self.term.grid()[Line(-1)].is_clear() {
            self.term.grid_mut().clear_history();
        }
        self.after_scrolling();
    }

    fn reset_state(&mut self) {
        self.reset_all();
        self.recordings.each(Handler::reset_state);
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        self.recordings.each(|recorder| recorder.set_private_mode(mode));
        if mode == SYNC_UPDATE {
            self.begin_sync();
        } else if mode != ALTERNATE_SCREEN {
            self.term.set_private_mode(mode);
        } else if !self.alternate() {
            self.enter_alternate();
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        self.recordings.each(|recorder| recorder.unset_private_mode(mode));
        if mode == SYNC_UPDATE {
            self.sync = None;
        } else if mode != ALTERNATE_SCREEN {
            self.term.unset_private_mode(mode);
        } else if self.alternate() {
            self.leave_alternate();
        }
    }

    fn report_private_mode(&mut self, mode: PrivateMode) {
        if mode == SYNC_UPDATE {
            let state = if self.sync.is_some() { 1 } else { 2 };
            self.answers.push(&format!("\x1b[?2026;{state}$y"));
        } else {
            self.term.report_private_mode(mode);
        }
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        if top <= self.term.screen_lines() {
            self.term.set_scrolling_region(top, bottom);
            self.recordings.each(|recorder| recorder.set_scrolling_region(top, bottom));
        }
    }

    fn move_backward_tabs(&mut self, count: u16) {
        self.recordings.each(|recorder| recorder.move_backward_tabs(count));
        for _ in 0..count {
            let before = self.term.grid().cursor.point.column;
            self.term.move_backward_tabs(1);
            if self.term.grid().cursor.point.column == before {
                return;
            }
        }
    }

    fn terminal_attribute(&mut self, attr: Attr) {
        self.recordings.each(|recorder| recorder.style(&attr));
        if matches!(attr, Attr::BlinkSlow | Attr::BlinkFast | Attr::CancelBlink) {
            let flags = &mut self.term.grid_mut().cursor.template.flags;
            flags.set(BLINK, attr != Attr::CancelBlink);
        // No frame shows an underline's colour, and each one would allocate memory.
        } else if !matches!(attr, Attr::UnderlineColor(_)) {
            self.term.terminal_attribute(attr);
        }
    }

    fn bell(&mut self) {
        self.bells += 1;
    }

    fn push_title(&mut self) {
        if self.titles.len() == self.limits.titles_max {
            self.titles.pop_front();
        }
        self.titles.push_back(Arc::clone(&self.title));
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop_back() {
            self.title = title;
        }
    }

    fn identify_terminal(&mut self, intermediate: Option<char>) {
        if intermediate == Some('=') {
            self.answers.push("\x1bP!|00000000\x1b\\");
        } else {
            self.term.identify_terminal(intermediate);
        }
    }

    fn text_area_size_pixels(&mut self) {
        let height = self.term.screen_lines() * CELL_HEIGHT;
        let width = self.term.columns() * CELL_WIDTH;
        self.answers.push(&format!("\x1b[4;{height};{width}t"));
    }

    fn report_keyboard_mode(&mut self) {
        let flags = settings::keyboard_flags(*self.term.mode()).bits();
        self.answers.push(&format!("\x1b[?{flags}u"));
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        self.push_keyboard_flags(mode);
    }

    fn pop_keyboard_modes(&mut self, to_pop: u16) {
        self.pop_keyboard_flags(to_pop);
    }

    #[inline]
    fn set_keyboard_mode(&mut self, mode: KeyboardModes, behavior: KeyboardModesApplyBehavior) {
        Handler::set_keyboard_mode(&mut self.term, mode, behavior);
    }

    #[inline]
    fn set_horizontal_tabstop(&mut self) {
        self.tabs.set(self.term.grid().cursor.point.column.0);
        self.term.set_horizontal_tabstop();
    }

    #[inline]
    fn clear_line(&mut self, mode: LineClearMode) {
        self.recordings.each(|recorder| recorder.clear_part_of_line(&mode));
        self.term.clear_line(mode);
    }

    #[inline]
    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        self.tabs.clear(&mode, self.term.grid().cursor.point.column.0);
        self.term.clear_tabs(mode);
    }

    #[inline]
    fn set_mode(&mut self, mode: Mode) {
        self.term.set_mode(mode);
        self.recordings.each(|recorder| recorder.set_mode(mode));
    }

    #[inline]
    fn unset_mode(&mut self, mode: Mode) {
        self.term.unset_mode(mode);
        self.recordings.each(|recorder| recorder.unset_mode(mode));
    }

    #[inline]
    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.charset = index;
        self.term.set_active_charset(index);
        self.recordings.each(|recorder| recorder.set_active_charset(index));
    }
}
