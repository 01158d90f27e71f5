//! What the parser's operations do to a recorder's screen: the same as to the terminal's own, as far as text goes.

use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, Handler, Mode, NamedMode, NamedPrivateMode, PrivateMode,
    StandardCharset,
};
use unicode_width::UnicodeWidthChar;

use crate::core::screen::recorder::row::Row;
use crate::core::screen::recorder::{Modes, Pen, Recorder, narrow};

/// The distance of tab stops. Programs that set others have their output aligned to these.
const TAB: u16 = 8;

impl Recorder {
    fn go(&mut self, row: i32, col: usize) {
        let (first, last) = if self.modes.origin {
            (self.region.start, self.region.end - 1)
        } else {
            (0, self.size.rows - 1)
        };
        let row = row.saturating_add(first.into()).clamp(0, last.into());
        self.cursor.place.row = row as u16;
        self.go_to_column(col);
    }

    fn go_to_column(&mut self, col: usize) {
        self.cursor.place.col = narrow(col).min(self.size.cols - 1);
        self.cursor.place.wraps = false;
    }

    /// Whether the row below this one shows what was typed as well.
    fn echo_goes_on(&mut self) -> bool {
        let wraps = self.row().wrapped || self.ends_early();
        let is_echo = self.row().is_echo;
        let more = is_echo && (wraps || self.echo_lines > 0);
        if more && !wraps {
            self.echo_lines -= 1;
        }
        more
    }

    /// Whether this row is full and what was typed does not end here.
    fn ends_early(&mut self) -> bool {
        let (cols, last) = (self.size.cols, self.echo_lines == 0);
        let Some(end) = self.echo_end.take_if(|_| last) else { return false };
        let row = self.row();
        let early = row.is_echo && row.columns() >= cols && !row.text().ends_with(&*end);
        if early {
            self.echo_end = Some(end);
        }
        early
    }

    /// Where so many tab stops lead.
    fn tab_stop(&self, count: u16) -> u16 {
        (self.cursor.place.col / TAB).saturating_add(count).saturating_mul(TAB)
    }

    fn wrap_line(&mut self) {
        if self.modes.wrap {
            // A tab back leaves the last column, and what follows is no part of the line.
            self.row().wrapped = self.cursor.place.col + 1 == self.size.cols;
            if self.cursor.place.row + 1 >= self.region.end {
                self.linefeed();
            } else {
                let goes_on = self.echo_goes_on();
                self.cursor.place.row += 1;
                if goes_on {
                    self.row().is_echo = true;
                }
            }
            self.carriage_return();
        }
    }

    /// What was deleted from a row that wraps is blank.
    fn fill_row(&mut self) {
        let cols = self.size.cols;
        if self.modes.wrap && self.cursor.place.col + 1 == cols {
            self.row().fill(cols);
        }
    }

    fn write(&mut self, character: char, width: u16) {
        let col = self.cursor.place.col;
        let last = self.size.cols - 1;
        let conceals = self.cursor.conceals;
        let row = self.row();
        if conceals {
            (col..col + width).for_each(|col| row.put(col, ' ', 1));
        } else {
            row.put(col, character, width);
        }
        if col + width > last {
            row.wrapped = false;
        }
        self.cursor.place.col = (col + width).min(last);
        self.cursor.place.wraps = col + width > last;
    }

    pub(crate) fn style(&mut self, attribute: &Attr) {
        if matches!(attribute, Attr::Hidden | Attr::CancelHidden | Attr::Reset) {
            self.cursor.conceals = *attribute == Attr::Hidden;
        }
    }

    fn switch(&mut self, mode: PrivateMode, on: bool) {
        let PrivateMode::Named(mode) = mode else { return };
        if mode == NamedPrivateMode::SwapScreenAndSetRestoreCursor {
            if on { self.show_alternate() } else { self.show_normal() }
        } else if mode == NamedPrivateMode::LineWrap {
            self.modes.wrap = on;
        } else if mode == NamedPrivateMode::Origin {
            self.modes.origin = on;
            if on {
                self.go(0, 0);
            }
        } else if mode == NamedPrivateMode::ColumnMode {
            self.change_columns();
        }
    }

    fn show_alternate(&mut self) {
        if self.normal.is_none() {
            let rows = std::mem::take(&mut self.rows);
            self.normal = Some((rows, self.cursor));
        }
    }

    /// The size stays, and the rest of what such a change does is done.
    fn change_columns(&mut self) {
        self.set_scrolling_region(1, None);
        self.rows.clear();
    }

    fn show_normal(&mut self) {
        if let Some((rows, cursor)) = self.normal.take() {
            (self.rows, self.cursor, self.saved) = (rows, cursor, cursor);
        }
    }
}

impl Handler for Recorder {
    #[inline]
    fn input(&mut self, c: char) {
        let c = self.cursor.charsets[self.charset].map(c);
        let width = if c.is_ascii() { Some(1) } else { c.width() };
        let Some(width) = width.map(narrow) else { return };
        if width == 0 {
            let place = self.cursor.place;
            let column = place.col + u16::from(place.wraps);
            if !self.cursor.conceals {
                self.row().combine(column, c);
            }
            return;
        }
        if self.cursor.place.wraps {
            self.fill_row();
            self.wrap_line();
        }
        let (col, cols) = (self.cursor.place.col, self.size.cols);
        if self.modes.insert && col + width < cols {
            self.row().insert_blanks(col, width, cols);
            self.row().erase(col, col + width);
        }
        if col + width > cols {
            if !self.modes.wrap {
                self.cursor.place.wraps = true;
                return;
            }
            self.row().erase(col, cols);
            self.cursor.place.col = cols - 1;
            self.wrap_line();
        }
        self.write(c, width);
    }

    fn goto(&mut self, line: i32, col: usize) {
        let jumps = if line > 0 { Self::JUMPS } else { 1 };
        self.jumps = self.jumps.saturating_add(jumps);
        self.go(line, col);
    }

    fn goto_line(&mut self, line: i32) {
        self.go(line, self.cursor.place.col.into());
    }

    fn goto_col(&mut self, col: usize) {
        self.go_to_column(col);
    }

    fn insert_blank(&mut self, count: usize) {
        let (col, cols) = (self.cursor.place.col, self.size.cols);
        let count = narrow(count).min(cols - col);
        self.row().insert_blanks(col, count, cols);
    }

    fn move_up(&mut self, count: usize) {
        let place = self.cursor.place;
        self.go(i32::from(place.row) - i32::from(narrow(count)), place.col.into());
    }

    fn move_down(&mut self, count: usize) {
        let place = self.cursor.place;
        self.go(i32::from(place.row) + i32::from(narrow(count)), place.col.into());
    }

    fn move_forward(&mut self, count: usize) {
        self.go_to_column(usize::from(self.cursor.place.col).saturating_add(count));
    }

    fn move_backward(&mut self, count: usize) {
        self.go_to_column(usize::from(self.cursor.place.col).saturating_sub(count));
    }

    fn move_down_and_cr(&mut self, count: usize) {
        self.move_down(count);
        self.go_to_column(0);
    }

    fn move_up_and_cr(&mut self, count: usize) {
        self.move_up(count);
        self.go_to_column(0);
    }

    fn put_tab(&mut self, count: u16) {
        if self.cursor.place.wraps {
            self.fill_row();
            return self.wrap_line();
        }
        self.move_forward_tabs(count);
    }

    fn move_forward_tabs(&mut self, count: u16) {
        self.cursor.place.col = self.tab_stop(count).min(self.size.cols - 1);
    }

    fn move_backward_tabs(&mut self, count: u16) {
        let stops = self.cursor.place.col.div_ceil(TAB).saturating_sub(count);
        self.cursor.place.col = stops * TAB;
    }

    fn backspace(&mut self) {
        if self.cursor.place.col > 0 {
            self.cursor.place.col -= 1;
            self.cursor.place.wraps = false;
        }
    }

    #[inline]
    fn carriage_return(&mut self) {
        self.go_to_column(0);
    }

    #[inline]
    fn linefeed(&mut self) {
        // A program that leaves the terminal raw ends its lines without a return, and so do those after it.
        if self.normal.is_none() && self.cursor.place.col > 0 {
            self.go_to_column(0);
        }
        let goes_on = self.echo_goes_on();
        let next = self.cursor.place.row + 1;
        if next == self.region.end {
            self.scroll_up_in(self.region.clone(), 1);
        } else if next < self.size.rows {
            self.cursor.place.row = next;
        }
        if goes_on {
            self.row().is_echo = true;
        }
    }

    fn scroll_up(&mut self, count: usize) {
        self.scroll_up_in(self.region.clone(), narrow(count));
    }

    fn scroll_down(&mut self, count: usize) {
        self.scroll_down_in(self.region.clone(), narrow(count));
    }

    fn insert_blank_lines(&mut self, count: usize) {
        let row = self.cursor.place.row;
        if self.region.contains(&row) {
            self.scroll_down_in(row..self.region.end, narrow(count));
        }
    }

    fn delete_lines(&mut self, count: usize) {
        let row = self.cursor.place.row;
        if self.region.contains(&row) {
            self.scroll_up_in(row..self.region.end, narrow(count));
        }
    }

    fn erase_chars(&mut self, count: usize) {
        let col = self.cursor.place.col;
        self.row().erase(col, col.saturating_add(narrow(count)));
    }

    fn delete_chars(&mut self, count: usize) {
        let col = self.cursor.place.col;
        self.row().delete(col, narrow(count));
    }

    fn save_cursor_position(&mut self) {
        self.saved = self.cursor;
    }

    fn restore_cursor_position(&mut self) {
        self.cursor = self.saved;
    }

    fn reset_state(&mut self) {
        self.show_normal();
        self.clear(&ClearMode::All);
        (self.modes, self.region, self.charset) = (Modes::default(), 0..self.size.rows, 0);
        (self.cursor, self.saved) = (Pen::default(), Pen::default());
    }

    fn reverse_index(&mut self) {
        if self.cursor.place.row == self.region.start {
            self.scroll_down_in(self.region.clone(), 1);
        } else {
            self.cursor.place.row = self.cursor.place.row.saturating_sub(1);
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.modes.insert |= mode == Mode::Named(NamedMode::Insert);
    }

    fn unset_mode(&mut self, mode: Mode) {
        self.modes.insert &= mode != Mode::Named(NamedMode::Insert);
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        self.switch(mode, true);
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        self.switch(mode, false);
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let bottom = bottom.map_or(self.size.rows, narrow);
        let top = narrow(top);
        if top < bottom && top <= self.size.rows {
            self.region = top.saturating_sub(1).min(self.size.rows - 1)..bottom.min(self.size.rows);
            self.go(0, 0);
        }
    }

    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.charset = index as usize;
    }

    fn configure_charset(&mut self, index: CharsetIndex, charset: StandardCharset) {
        self.cursor.charsets[index as usize] = charset;
    }

    fn decaln(&mut self) {
        let row = Row::of_letter('E', self.size.cols);
        self.rows.clear();
        self.rows.resize(self.size.rows.into(), row);
    }
}
