//! Paints a picture on a person's terminal, writing only the differences.
//!
//! The output depends only on the new picture and the last painted one, so that pictures may be skipped.
//! It uses sequences that every ANSI terminal supports or ignores.

use std::fmt::Write as _;

use crate::core::frame::ClipboardWrite;
use crate::core::frame::ansi::ansi;
use crate::core::frame::line::Line;
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub cols: u16,
}

/// The cursor's position from the top left, and its style as the parameter of DECSCUSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaintedCursor {
    pub row: u16,
    pub col: u16,
    pub style: u8,
}

/// The contents to paint.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Each row from the top, cut to the terminal's size; missing rows are empty.
    pub lines: Vec<Line>,
    /// None hides the cursor.
    pub pointer: Option<PaintedCursor>,
    pub title: String,
    /// The keyboard, paste and mouse modes to set on the terminal.
    pub modes: InputModes,
    /// How many times the bell rang so far.
    pub bells: u64,
    /// What was written to the clipboard last.
    pub clipboard: ClipboardWrite,
}

/// The state of the terminal.
#[derive(Debug, Default)]
pub struct Canvas {
    room: TerminalSize,
    /// Each row as it was painted; none when its content is unknown.
    rows: Vec<Option<String>>,
    pointer: Option<PaintedCursor>,
    title: String,
    modes: InputModes,
    bells: Option<u64>,
    clipboard: Option<u64>,
    kitty: bool,
}

/// Takes the terminal over: saves its title and switches to the alternate screen.
///
/// Wrapping is off, because a terminal may draw a character wider than termgate counts it.
pub const ENTER: &str = "\x1b[22;0t\x1b[?1049h\x1b[?7l\x1b[H\x1b[2J";

impl Canvas {
    /// Sets the size and marks every row as unknown.
    pub fn resize(&mut self, room: TerminalSize) {
        self.room = room;
        self.rows = vec![None; usize::from(room.rows)];
    }

    pub fn room(&self) -> TerminalSize {
        self.room
    }

    /// The bytes that make the terminal show the picture; empty when it already does.
    pub fn paint(&mut self, picture: &Picture) -> String {
        let mut out = String::new();
        self.paint_modes(&mut out, with_wheel(picture.modes));
        self.paint_title(&mut out, &picture.title);
        if self.bells.replace(picture.bells).is_some_and(|rung| rung < picture.bells) {
            out.push('\x07');
        }
        let ClipboardWrite { count, data } = &picture.clipboard;
        if self.clipboard.replace(*count).is_some_and(|written| written < *count) {
            let _ = write!(out, "\x1b]52;c;{data}\x1b\\");
        }
        let rows = self.paint_rows(picture);
        if rows.is_empty() && self.pointer == picture.pointer {
            return out;
        }
        // Terminals with synchronized updates show the whole change at once.
        out.push_str("\x1b[?2026h\x1b[?25l");
        out.push_str(&rows);
        self.pointer = picture.pointer;
        if let Some(pointer) = &picture.pointer {
            let PaintedCursor { row, col, style } = pointer;
            let _ = write!(out, "\x1b[{};{}H\x1b[{style} q", row + 1, col + 1);
            out.push_str("\x1b[?25h");
        }
        out.push_str("\x1b[?2026l");
        out
    }

    /// The bytes that paint only the bottom row and reset the modes that the program set; empty when
    /// nothing changes.
    pub fn paint_last_row(&mut self, line: &Line) -> String {
        let mut out = String::new();
        self.paint_modes(&mut out, with_wheel(InputModes::default()));
        let (index, row) = (self.rows.len(), ansi(line));
        if let Some(shown) = self.rows.last_mut().filter(|shown| shown.as_ref() != Some(&row)) {
            let _ = write!(out, "\x1b[?25l\x1b[{index};1H\x1b[m\x1b[2K{row}\x1b[m");
            *shown = Some(row);
            self.pointer = None;
        }
        out
    }

    fn paint_rows(&mut self, picture: &Picture) -> String {
        let mut out = String::new();
        let empty = Line::default();
        for (index, shown) in self.rows.iter_mut().enumerate() {
            let line = picture.lines.get(index).unwrap_or(&empty);
            let row = ansi(line);
            if shown.as_ref() != Some(&row) {
                // Erases first, because after a full row the cursor may be beyond the edge.
                let _ = write!(out, "\x1b[{};1H\x1b[m\x1b[2K{row}\x1b[m", index + 1);
                *shown = Some(row);
            }
        }
        out
    }

    fn paint_title(&mut self, out: &mut String, title: &str) {
        if self.title != title {
            let fine: String = title.chars().filter(|c| !c.is_control()).collect();
            let _ = write!(out, "\x1b]2;{fine}\x1b\\");
            title.clone_into(&mut self.title);
        }
    }

    fn paint_modes(&mut self, out: &mut String, modes: InputModes) {
        let before = std::mem::replace(&mut self.modes, modes);
        let mut switch = |on: bool, was: bool, set: &str, reset: &str| {
            if on != was {
                out.push_str(if on { set } else { reset });
            }
        };
        let (on, was) = (modes.application_cursor, before.application_cursor);
        switch(on, was, "\x1b[?1h", "\x1b[?1l");
        switch(modes.application_keypad, before.application_keypad, "\x1b=", "\x1b>");
        switch(modes.bracketed_paste, before.bracketed_paste, "\x1b[?2004h", "\x1b[?2004l");
        if (modes.mouse, modes.mouse_encoding) != (before.mouse, before.mouse_encoding) {
            out.push_str(MOUSE_OFF);
            out.push_str(mouse(modes.mouse));
            out.push_str(encoding(modes.mouse_encoding));
        }
        if modes.kitty_flags != before.kitty_flags {
            // The first time it pushes a level on the terminal's stack, which `leave` pops.
            let set = if self.kitty { ("=", ";1") } else { (">", "") };
            let _ = write!(out, "\x1b[{}{}{}u", set.0, modes.kitty_flags, set.1);
            self.kitty = true;
        }
    }

    /// The bytes that restore the terminal's state before [`ENTER`].
    pub fn leave(&mut self) -> String {
        let mut out = String::new();
        self.paint_modes(&mut out, InputModes::default());
        if self.kitty {
            out.push_str("\x1b[<u");
        }
        out.push_str("\x1b[?2026l\x1b[m\x1b[0 q\x1b[?25h\x1b[?7h\x1b[?1049l\x1b[23;0t");
        *self = Self::default();
        out
    }
}

/// The modes for the terminal: it always reports the wheel. On the alternate screen it would otherwise
/// send arrow keys for the wheel, which are like typed ones.
pub fn with_wheel(modes: InputModes) -> InputModes {
    match modes.mouse {
        MouseReporting::Off => InputModes {
            mouse: MouseReporting::Clicks,
            mouse_encoding: MouseEncoding::Sgr,
            ..modes
        },
        MouseReporting::Clicks | MouseReporting::Drags | MouseReporting::Motion => modes,
    }
}

const MOUSE_OFF: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l";

fn mouse(reporting: MouseReporting) -> &'static str {
    match reporting {
        MouseReporting::Off => "",
        MouseReporting::Clicks => "\x1b[?1000h",
        MouseReporting::Drags => "\x1b[?1002h",
        MouseReporting::Motion => "\x1b[?1003h",
    }
}

fn encoding(encoding: MouseEncoding) -> &'static str {
    match encoding {
        MouseEncoding::Bytes => "",
        MouseEncoding::Utf8 => "\x1b[?1005h",
        MouseEncoding::Sgr => "\x1b[?1006h",
    }
}

#[cfg(test)]
mod tests;
