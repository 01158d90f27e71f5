//! What clears parts of a recorder's screen.

use alacritty_terminal::vte::ansi::{ClearMode, LineClearMode};

use crate::core::screen::recorder::row::Row;
use crate::core::screen::recorder::{Recorder, narrow};

impl Recorder {
    pub(crate) fn clear_part_of_line(&mut self, mode: &LineClearMode) {
        let place = self.cursor.place;
        match mode {
            LineClearMode::Right if place.wraps => {}
            LineClearMode::Right => self.row().truncate(place.col),
            LineClearMode::Left => self.row().erase(0, place.col + 1),
            LineClearMode::All => self.row().truncate(0),
        }
    }

    pub(crate) fn clear(&mut self, mode: &ClearMode) {
        let place = self.cursor.place;
        match mode {
            ClearMode::Below => {
                // Line editors clear the next row of what is typed when they come to it.
                let goes_on = |above: &Row| above.is_echo && above.wrapped;
                let above = place.row.checked_sub(1).map(usize::from);
                let goes_on = above.and_then(|above| self.rows.get(above)).is_some_and(goes_on);
                let row = self.row();
                row.truncate(place.col);
                row.is_echo &= place.col > 0 || goes_on;
                self.rows.truncate(usize::from(place.row) + 1);
            }
            ClearMode::Above => {
                for row in self.rows.iter_mut().take(place.row.into()) {
                    row.truncate(0);
                }
                self.row().erase(0, place.col + 1);
            }
            ClearMode::All if self.normal.is_some() => self.rows.clear(),
            ClearMode::All => {
                let text = self.rows.iter().rposition(|row| !row.is_blank());
                self.settle(text.map_or(0, |last| narrow(last) + 1));
                self.end_line();
                self.rows.clear();
                self.at_beginning = true;
            }
            ClearMode::Saved => {}
        }
    }
}
