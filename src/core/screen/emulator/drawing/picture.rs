//! Draws the whole emulator as output: bytes that make an emulator of this size show the same and go on alike.
//!
//! Not drawn are pushed titles and keyboard flags, the origin of rows in history, and concealed text.

use std::fmt::Write as _;

use alacritty_terminal::grid::{Cursor, Dimensions, Row};
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{CharsetIndex, StandardCharset};

use crate::core::frame::ansi::{ansi, change_link, change_style};
use crate::core::frame::line::{Line, Style};
use crate::core::screen::cells::style;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::emulator::settings::{OWN_STYLE, style_parameter};
use crate::core::screen::snapshot::cells::CHARSETS;

/// The modes that sequences switch on and off, and whether they are on at first. Origin mode comes last, since it
/// moves the cursor.
const MODES: [(TermMode, &str, bool); 14] = [
    (TermMode::SHOW_CURSOR, "?25", true),
    (TermMode::APP_CURSOR, "?1", false),
    (TermMode::BRACKETED_PASTE, "?2004", false),
    (TermMode::LINE_WRAP, "?7", true),
    (TermMode::LINE_FEED_NEW_LINE, "20", false),
    (TermMode::INSERT, "4", false),
    (TermMode::FOCUS_IN_OUT, "?1004", false),
    (TermMode::MOUSE_REPORT_CLICK, "?1000", false),
    (TermMode::MOUSE_DRAG, "?1002", false),
    (TermMode::MOUSE_MOTION, "?1003", false),
    (TermMode::UTF8_MOUSE, "?1005", false),
    (TermMode::SGR_MOUSE, "?1006", false),
    (TermMode::ALTERNATE_SCROLL, "?1007", true),
    (TermMode::ORIGIN, "?6", false),
];

/// What sequences begin the four character sets.
const DESIGNATORS: [char; 4] = ['(', ')', '*', '+'];

impl Emulator {
    /// Output that clears everything and draws what this emulator shows.
    pub(crate) fn picture(&mut self) -> String {
        self.harvest();
        let mut out = String::from("\x1bc");
        if self.alternate() {
            let (rows, cursor) = self.with_other(|grid| {
                let rows = (0..grid.screen_lines()).map(|line| grid[GridLine(line as i32)].clone());
                (rows.collect::<Vec<_>>(), grid.cursor.clone())
            });
            self.draw_rows(&mut out, &rows);
            self.draw_cursor(&mut out, &cursor, 0);
            // This saves the cursor, and leaving restores it.
            out.push_str("\x1b[?1049h\x1b[m");
        }
        let grid = self.term.grid();
        let rows = (0..grid.screen_lines()).map(|line| grid[GridLine(line as i32)].clone());
        let rows: Vec<_> = rows.collect();
        self.draw_rows(&mut out, &rows);
        self.draw_settings(&mut out);
        out
    }

    fn draw_rows(&mut self, out: &mut String, rows: &[Row<Cell>]) {
        let lines: Vec<_> = rows.iter().map(|row| self.ledger.line(row)).collect();
        let columns = self.term.columns() as u16;
        let mut goes_on = false;
        for (index, line) in lines.iter().enumerate() {
            if !goes_on {
                let _ = write!(out, "\x1b[{};1H", index + 1);
            }
            out.push_str(&ansi(line));
            goes_on = line.wrapped && index + 1 < lines.len();
            if goes_on {
                let blanks = columns - line.painted_columns().min(columns);
                // A wide character that does not fit leaves the last column empty by itself.
                let next = lines.get(index + 1).and_then(|next| next.glyphs().next());
                let is_wide = blanks == 1 && next.is_some_and(|glyph| glyph.columns == 2);
                let blanks = if is_wide { 0 } else { blanks };
                out.extend((0..blanks).map(|_| ' '));
                if lines[index + 1].painted_columns() == 0 {
                    // The row begins only with a character on it.
                    out.push_str(" \r");
                }
            }
        }
    }

    fn draw_settings(&mut self, out: &mut String) {
        let kept = self.kept_settings();
        out.push_str("\x1b[3g");
        for column in &kept.tabs {
            let _ = write!(out, "\x1b[{}G\x1bH", column + 1);
        }
        let (top, end) = kept.region;
        let _ = write!(out, "\x1b[{};{end}r", top + 1);
        let _ = write!(out, "\x1b]2;{}\x1b\\", self.title);
        if self.keyboard_flags().bits() != 0 {
            let _ = write!(out, "\x1b[={}u", self.keyboard_flags().bits());
        }
        let shape = self.term.cursor_style();
        if shape != OWN_STYLE {
            let _ = write!(out, "\x1b[{} q", style_parameter(shape));
        }
        let saved = self.term.grid().saved_cursor.clone();
        self.draw_cursor(out, &saved, 0);
        out.push_str("\x1b7");
        let mode = *self.term.mode();
        // Some of these switch others off, so those that are on come last.
        for on in [false, true] {
            let is_so = |(bit, _, first): &&(_, _, bool)| mode.contains(*bit) == on && on != *first;
            let differing = MODES.iter().filter(is_so);
            for (_, number, _) in differing {
                let _ = write!(out, "\x1b[{number}{}", if on { 'h' } else { 'l' });
            }
        }
        if mode.contains(TermMode::APP_KEYPAD) {
            out.push_str("\x1b=");
        }
        let cursor = self.term.grid().cursor.clone();
        let origin = if mode.contains(TermMode::ORIGIN) { top } else { 0 };
        self.draw_cursor(out, &cursor, origin);
        if self.charset == CharsetIndex::G1 {
            out.push('\x0e');
        }
    }

    /// Puts the cursor where this one is, with its style, link and character sets. Rows count from `origin`.
    fn draw_cursor(&mut self, out: &mut String, cursor: &Cursor<Cell>, origin: u16) {
        let (row, column) = (cursor.point.line.0 as u16, cursor.point.column.0);
        let _ = write!(out, "\x1b[0m\x1b[{};{}H", row.saturating_sub(origin) + 1, column + 1);
        if cursor.input_needs_wrap {
            self.draw_last_column(out, cursor);
        }
        let mut plain = Style::default();
        change_style(out, &mut plain, style(&cursor.template));
        let target = self.ledger.links().target(&cursor.template).cloned();
        change_link(out, &mut None, target.as_ref());
        for (index, charset) in CHARSETS.into_iter().enumerate() {
            let set = match cursor.charsets[charset] {
                StandardCharset::Ascii => 'B',
                StandardCharset::SpecialCharacterAndLineDrawing => '0',
            };
            let _ = write!(out, "\x1b{}{set}", DESIGNATORS[index]);
        }
    }

    /// Writes the character before the edge again, after which the cursor waits to wrap.
    fn draw_last_column(&mut self, out: &mut String, cursor: &Cursor<Cell>) {
        let row = self.term.grid()[cursor.point.line].clone();
        let line = self.ledger.line(&row);
        let column = cursor.point.column.0 as u16;
        let last = line.glyphs().find(|glyph| glyph.column + glyph.columns == column + 1);
        let from = last.map_or(column, |glyph| glyph.column);
        if from < column {
            out.push('\x08');
        }
        let mut cut: Line = line.cut(from, column + 1 - from);
        if cut.painted_columns() == 0 {
            cut.text = " ".into();
        }
        out.push_str(&ansi(&cut));
    }
}
