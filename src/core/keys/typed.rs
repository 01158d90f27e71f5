//! What one person types at a session, and whether a paste of theirs is open at the program.

use crate::core::input::unit::{Piece, Unit};
use crate::core::keys::tokens::Tokenizer;

/// Splits what one person types, call by call.
///
/// A paste, a sequence or a character may span calls: what is incomplete beyond doubt is held until the
/// rest comes.
#[derive(Clone, Debug, Default)]
pub struct TypedBytes {
    /// What the person's terminal sends.
    tokens: Tokenizer,
    /// A paste is open at the program's terminal.
    is_open: bool,
}

impl TypedBytes {
    /// Notes that what was typed so far ended at the terminal: what comes next starts a new key there.
    /// The rest of a paste starts a new paste, since its lines must not be taken for commands.
    pub fn begin_again(&mut self) {
        self.is_open = false;
        if !self.tokens.in_paste() {
            self.tokens = Tokenizer::default();
        }
    }

    /// Notes that the pieces given out last are on their way to the terminal. Where they are not, a
    /// paste that began or ended among them begins or ends with the next ones.
    pub fn on_queued(&mut self) {
        self.is_open = self.tokens.in_paste();
    }

    /// Whether nothing of what was typed so far says how to take what comes next.
    pub fn is_blank(&self) -> bool {
        !self.tokens.in_paste() && !self.is_open && !self.tokens.is_holding()
    }

    /// The pieces of the next bytes; they count once [`TypedBytes::on_queued`] is called for them.
    pub fn pieces(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let missing = match (self.is_open, self.tokens.in_paste()) {
            (false, true) => Some(Piece::PasteStart),
            (true, false) => Some(Piece::PasteEnd),
            (true, true) | (false, false) => None,
        };
        let mut unit = Unit { pieces: self.tokens.feed(bytes) };
        // The person's terminal has waited for the rest of a sequence already.
        unit.pieces.extend(self.tokens.take_key());
        // An interrupt alone gets past what is stuck, and closes a paste by that.
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
