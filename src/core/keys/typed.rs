//! Splits what one person types in a session, and tracks whether a paste is open at the program.

use crate::core::keys::tokens::Tokenizer;
use crate::core::keys::unit::{Piece, Unit};

/// Splits one person's input, call by call.
///
/// A paste, a sequence or a character may span calls. Bytes that are certainly incomplete are held.
#[derive(Clone, Debug, Default)]
pub struct TypedBytes {
    /// Splits the bytes of the person's terminal.
    tokens: Tokenizer,
    /// Whether a paste is open at the program's terminal.
    is_open: bool,
}

impl TypedBytes {
    /// Starts a new key at the terminal, because the input so far ended there. The rest of an open paste
    /// starts a new paste, since its lines must not become commands.
    pub fn begin_again(&mut self) {
        self.is_open = false;
        if !self.tokens.in_paste() {
            self.tokens = Tokenizer::default();
        }
    }

    /// Notes that the last pieces were queued for the terminal. Without this call, the next pieces
    /// repeat the start or end of a paste among them.
    pub fn on_queued(&mut self) {
        self.is_open = self.tokens.in_paste();
    }

    /// Whether the input so far has no effect on the next bytes.
    pub fn is_blank(&self) -> bool {
        !self.tokens.in_paste() && !self.is_open && !self.tokens.is_holding()
    }

    /// Returns the pieces of the next bytes. Call [`TypedBytes::on_queued`] once they are queued.
    pub fn pieces(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let missing = match (self.is_open, self.tokens.in_paste()) {
            (false, true) => Some(Piece::PasteStart),
            (true, false) => Some(Piece::PasteEnd),
            (true, true) | (false, false) => None,
        };
        let mut unit = Unit { pieces: self.tokens.feed(bytes) };
        // The person's terminal has already waited for the rest of a sequence.
        unit.pieces.extend(self.tokens.take_key());
        // A lone interrupt bypasses stuck input, and thereby closes a paste.
        if !unit.is_interrupt() {
            unit.pieces.splice(..0, missing);
        }
        unit.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_paste_that_was_cut_short_is_a_paste_again() {
        let mut typed = TypedBytes::default();
        typed.pieces(b"\x1b[200~one\r");
        typed.on_queued();
        typed.begin_again();
        let rest = typed.pieces(b"two\r\x1b[201~");
        typed.on_queued();
        assert_eq!(rest, [Piece::PasteStart, Piece::Text(b"two\r".to_vec()), Piece::PasteEnd]);
        assert!(typed.is_blank());
        typed.begin_again();
        assert_eq!(typed.pieces(b"\r"), [Piece::Key(b"\r".to_vec())]);
    }

    #[test]
    fn an_interrupt_stays_alone_where_the_end_of_a_paste_was_refused() {
        let mut typed = TypedBytes::default();
        typed.pieces(b"\x1b[200~one\r");
        typed.on_queued();
        typed.pieces(b"two\r\x1b[201~");
        assert_eq!(typed.clone().pieces(b"\x03"), [Piece::Key(b"\x03".to_vec())]);
        let next = typed.pieces(b"x");
        assert_eq!(next, [Piece::PasteEnd, Piece::Text(b"x".to_vec())]);
    }
}
