//! Where the tab stops are, which the emulator knows and does not tell.
//!
//! It follows what is done to the emulator's own and moves no cursor.

use alacritty_terminal::vte::ansi::TabulationClearMode;

/// Whether each column has a tab stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TabStops(Vec<bool>);

impl TabStops {
    /// How many columns lie between two stops at first.
    const INTERVAL: usize = 8;

    pub(super) fn every_eighth(columns: usize) -> Self {
        let mut stops = Self(Vec::new());
        stops.resize(columns);
        stops
    }

    /// Columns that come in have the stops of the beginning; those that go lose theirs.
    pub(super) fn resize(&mut self, columns: usize) {
        self.0.truncate(columns);
        self.0.extend((self.0.len()..columns).map(|column| column % Self::INTERVAL == 0));
    }

    pub(super) fn set(&mut self, column: usize) {
        self.0[column] = true;
    }

    pub(super) fn clear(&mut self, mode: &TabulationClearMode, column: usize) {
        match mode {
            TabulationClearMode::Current => self.0[column] = false,
            TabulationClearMode::All => self.0.fill(false),
        }
    }

    /// The columns with a stop.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, stop)| **stop).map(|(column, _)| column)
    }
}
