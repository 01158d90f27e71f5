//! Tracks the tab stops, because the emulator does not expose its own.

use alacritty_terminal::vte::ansi::TabulationClearMode;

/// Whether each column has a tab stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TabStops(Vec<bool>);

impl TabStops {
    /// The distance in columns between two default stops.
    const INTERVAL: usize = 8;

    pub(super) fn every_eighth(columns: usize) -> Self {
        let mut stops = Self(Vec::new());
        stops.resize(columns);
        stops
    }

    /// Adds new columns with the default stops; removed columns lose theirs.
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

    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, stop)| **stop).map(|(column, _)| column)
    }
}
