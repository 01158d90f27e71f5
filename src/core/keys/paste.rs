//! Typed or pasted text: line ends as a keyboard sends them, and paste brackets that the text itself
//! cannot close.

use std::borrow::Cow;

use crate::core::keys::encode::encode_keys;
use crate::core::keys::modes::InputModes;
use crate::core::keys::{Key, Piece};

/// How many bytes of one line the kernel keeps for a program that reads whole lines. It silently drops
/// the rest.
pub const CANONICAL_LINE_MAX: usize = 4_095;

/// Whether to send text as a bracketed paste.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PasteRule {
    /// Brackets when the program enabled them and the text has several lines or a tab. A single line is typed, since full-screen
    /// programs take a paste for text where they would take its characters for commands.
    #[default]
    Auto,
    /// Brackets even if the program did not enable them.
    Always,
    /// No brackets, as if typed.
    Never,
}

/// The pieces of a text, followed by the Enter key if `enter` is set.
///
/// Line ends become carriage returns, inside brackets too. Inside brackets every sequence that ends a
/// paste is removed, even one that forms only after another is removed. Enter follows the end of the
/// paste, so that the program reads it as a key.
pub fn encode_text(text: &str, rule: PasteRule, enter: bool, modes: &InputModes) -> Vec<Piece> {
    let typed = match text.contains('\n') {
        true => Cow::Owned(text.replace("\r\n", "\r").replace('\n', "\r")),
        false => Cow::Borrowed(text),
    };
    let brackets = match rule {
        PasteRule::Auto => modes.bracketed_paste && typed.contains(['\r', '\t']),
        PasteRule::Always => true,
        PasteRule::Never => false,
    };
    let mut pieces = if brackets { bracketed(&typed) } else { encode_bytes(typed.as_bytes()) };
    if enter {
        pieces.extend(encode_keys(&[Key::ENTER], modes));
    }
    pieces
}

/// The piece of raw bytes, sent unchanged and without brackets; empty for no bytes.
pub fn encode_bytes(bytes: &[u8]) -> Vec<Piece> {
    if bytes.is_empty() {
        return Vec::new();
    }
    vec![Piece::Text(bytes.to_vec())]
}

/// The length in bytes of the longest line of these pieces, without its end.
///
/// A program that reads whole lines loses bytes of a line above [`CANONICAL_LINE_MAX`].
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

/// The text without any end of a paste, in either spelling of CSI.
fn without_ends(typed: &str) -> String {
    const ENDS: [&str; 2] = ["\x1b[201~", "\u{9b}201~"];
    let mut kept = String::with_capacity(typed.len());
    for character in typed.chars() {
        kept.push(character);
        // An end can only complete at the character just added, so `kept` never contains one.
        if let Some(end) = ENDS.iter().find(|end| kept.ends_with(**end)) {
            kept.truncate(kept.len() - end.len());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
