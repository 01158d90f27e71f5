//! Draws the screen as lines, reusing unchanged lines of the last frame.
//!
//! It changes nothing in the emulator but its damage record, which has no other reader.

mod picture;

use std::sync::Arc;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::{TermDamage, TermMode};
use alacritty_terminal::vte::ansi::CursorShape as EmulatorShape;

use crate::core::frame::{Cursor, CursorShape, Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::emulator::settings::style_parameter;
use crate::core::screen::row_numbers::StampedLine;

/// The contents of the screen, drawn over the last frame.
pub(crate) struct Drawing {
    pub(crate) base_row: RowNumber,
    pub(crate) lines: Arc<[StampedLine]>,
    pub(crate) changed: bool,
    pub(crate) cursor: Cursor,
    pub(crate) mode: ScreenMode,
}

impl Emulator {
    pub(crate) fn cursor(&self) -> Cursor {
        let point = self.term.grid().cursor.point;
        let mode = self.term.mode();
        let style = self.term.cursor_style();
        // Rows that scrolled off but are not in history yet lie in between.
        let below = self.term.history_size() + point.line.0 as usize;
        Cursor {
            row: self.ledger.base_row().plus(below),
            col: point.column.0 as u16,
            visible: mode.contains(TermMode::SHOW_CURSOR) && style.shape != EmulatorShape::Hidden,
            style: style_parameter(style),
            shape: match style.shape {
                EmulatorShape::Underline => CursorShape::Underline,
                EmulatorShape::Beam => CursorShape::Beam,
                EmulatorShape::Block | EmulatorShape::HollowBlock | EmulatorShape::Hidden => {
                    CursorShape::Block
                }
            },
        }
    }

    /// Draws the screen and reuses the lines of `last` that did not change.
    pub(crate) fn draw(&mut self, last: Option<&Frame>) -> Drawing {
        self.harvest();
        let base_row = self.ledger.base_row();
        let rows = self.term.screen_lines();
        let same_place = |last: &&Frame| {
            last.base_row == base_row && last.lines.len() == rows && !self.ledger.was_reset()
        };
        let lines = match last.filter(same_place) {
            Some(last) => self.redraw(last),
            None => Some(self.redraw_all()),
        };
        let changed = lines.is_some();
        Drawing {
            base_row,
            lines: lines.or_else(|| last.map(|last| Arc::clone(&last.lines))).unwrap_or_default(),
            changed,
            cursor: self.cursor(),
            mode: if self.alternate() { ScreenMode::Alternate } else { ScreenMode::Normal },
        }
    }

    /// Draws the lines that changed since `last`, which has the same base row and size. Returns none
    /// when no line changed.
    fn redraw(&mut self, last: &Frame) -> Option<Arc<[StampedLine]>> {
        let mut lines: Option<Arc<[StampedLine]>> = None;
        for line in self.take_damage() {
            let drawn = self.draw_row(line);
            if drawn.changed != last.lines[line].changed {
                let lines = lines.get_or_insert_with(|| Arc::clone(&last.lines));
                Arc::make_mut(lines)[line] = drawn;
            }
        }
        lines
    }

    fn redraw_all(&mut self) -> Arc<[StampedLine]> {
        self.take_damage();
        (0..self.term.screen_lines()).map(|line| self.draw_row(line)).collect()
    }

    pub(super) fn draw_row(&mut self, line: usize) -> StampedLine {
        let number = self.ledger.base_row().plus(line);
        self.ledger.stamp(number, &self.term.grid()[GridLine(line as i32)])
    }

    /// Takes the indexes of lines that may have changed since the last call.
    fn take_damage(&mut self) -> Vec<usize> {
        let rows = self.term.screen_lines();
        let damaged = match self.term.damage() {
            TermDamage::Full => (0..rows).collect(),
            TermDamage::Partial(lines) => lines.map(|bounds| bounds.line).collect(),
        };
        self.term.reset_damage();
        damaged
    }
}
