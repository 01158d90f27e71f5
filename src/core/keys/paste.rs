//! Text as it is typed or pasted: line ends as a keyboard sends them, and brackets around it that
//! the text itself cannot close.
//!
//! It knows nothing of the screen or of how much the program can take at once.

use crate::core::input::unit::Piece;
use crate::core::keys::Key;
use crate::core::keys::encode::encode_keys;
use crate::core::keys::modes::InputModes;

/// How many bytes of one line the kernel keeps for a program that reads whole lines; what follows
/// them is lost without a word.
pub const CANONICAL_LINE_MAX: usize = 4_095;

/// Whether text goes out as a bracketed paste.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PasteRule {
    /// When the program asked for brackets.
    #[default]
    Auto,
    /// Whether or not the program asked.
    Always,
    /// As if typed.
    Never,
}

/// The pieces of a text, followed by the Enter key where it is wanted.
///
/// Line ends go out as carriage returns, inside brackets too. Inside brackets every sequence that
/// would end the paste is taken out, also one that only forms when another is gone. Enter comes
/// after the end of the paste, so that the program takes it as a key.
pub fn encode_text(text: &str, rule: PasteRule, enter: bool, modes: &InputModes) -> Vec<Piece> {
    let typed = text.replace("\r\n", "\r").replace('\n', "\r");
    let brackets = match rule {
        PasteRule::Auto => modes.bracketed_paste,
        PasteRule::Always => true,
        PasteRule::Never => false,
    };
    let mut pieces = if brackets { bracketed(&typed) } else { encode_bytes(typed.as_bytes()) };
    if enter {
        pieces.extend(encode_keys(&[Key::ENTER], modes));
    }
    pieces
}

/// The piece of raw bytes, which go out as they are and never in brackets; none for no bytes.
pub fn encode_bytes(bytes: &[u8]) -> Vec<Piece> {
    if bytes.is_empty() {
        return Vec::new();
    }
    vec![Piece::Text(bytes.to_vec())]
}

/// How many bytes the longest line of these pieces has, its end not counted.
///
/// Above [`CANONICAL_LINE_MAX`] a program that reads whole lines does not get all of it.
pub fn longest_line(pieces: &[Piece]) -> usize {
    let bytes = pieces.iter().flat_map(|piece| piece.bytes());
    let mut longest = 0;
    let mut length = 0;
    for byte in bytes {
        length = if matches!(byte, b'\r' | b'\n') { 0 } else { length + 1 };
        longest = longest.max(length);
    }
    longest
}

fn bracketed(typed: &str) -> Vec<Piece> {
    let inside = without_ends(typed);
    if inside.is_empty() {
        return Vec::new();
    }
    vec![Piece::PasteStart, Piece::Text(inside.into_bytes()), Piece::PasteEnd]
}

/// The text without anything that ends a paste, in either spelling of CSI.
fn without_ends(typed: &str) -> String {
    const ENDS: [&str; 2] = ["\x1b[201~", "\u{9b}201~"];
    let mut kept = String::with_capacity(typed.len());
    for character in typed.chars() {
        kept.push(character);
        // An end can only be complete at the character just added, so what is kept never has one.
        if let Some(end) = ENDS.iter().find(|end| kept.ends_with(**end)) {
            kept.truncate(kept.len() - end.len());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
