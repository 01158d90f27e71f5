//! Whether a bracketed paste is open for the program, seen by what its terminal took.
//!
//! It knows bytes alone, so that it outlives whoever sent them.

use crate::core::input::unit::Piece;

/// How much of what was taken may be the beginning of a mark.
const TAIL_MAX: usize = Piece::PASTE_START.len() - 1;

/// The state of the paste after all that the terminal took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenPaste {
    open: bool,
    /// What was taken last, up to a byte less than a mark has.
    tail: Vec<u8>,
}

impl OpenPaste {
    /// The state that was kept.
    pub fn new(open: bool) -> Self {
        Self { open, tail: Vec::new() }
    }

    /// Whether one is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Notes what the terminal took.
    pub fn on_taken(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let marks = self.tail.windows(Piece::PASTE_START.len());
        let is_mark = |bytes: &&[u8]| *bytes == Piece::PASTE_START || *bytes == Piece::PASTE_END;
        if let Some(last) = marks.rev().find(is_mark) {
            self.open = last == Piece::PASTE_START;
        }
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_counts_however_the_bytes_are_taken() {
        let taken: &[u8] = b"a\x1b[200~one\x1b[201~b\x1b[200~two\x1b[20\x1b[201~\x1b[200~";
        for step in 1..taken.len() {
            let mut paste = OpenPaste::default();
            let mut before = 0;
            for bytes in taken.chunks(step) {
                paste.on_taken(bytes);
                before += bytes.len();
                let text = String::from_utf8_lossy(&taken[..before]).into_owned();
                let open = text.rfind("\x1b[200~") > text.rfind("\x1b[201~");
                assert_eq!(paste.is_open(), open, "{text:?} by {step}");
            }
        }
    }
}
