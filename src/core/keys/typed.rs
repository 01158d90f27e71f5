//! What a person's terminal sends, taken apart again: keys, text and the ends of pastes.
//!
//! It knows nothing of what the bytes mean. It only finds where they may be cut without splitting a
//! key or a character, and where a paste is open that must be closed if it is cut short.

use crate::core::input::unit::{Piece, Unit};

const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// Takes apart what one person types, call by call.
///
/// A paste may span calls, and so may a sequence or a character: what is incomplete beyond doubt is
/// held back until the rest comes.
#[derive(Clone, Debug, Default)]
pub struct TypedBytes {
    /// The person's terminal is in the middle of a paste.
    in_paste: bool,
    /// A paste is open at the program's terminal.
    is_open: bool,
    held: Vec<u8>,
}

impl TypedBytes {
    /// How many bytes of an incomplete sequence are held back; a longer one goes out as it is.
    pub const HELD_MAX: usize = 64;

    /// Notes that what was typed so far ended at the terminal: what comes next begins anew there, and
    /// the rest of a paste does so as a paste, since its lines must not be taken for commands.
    pub fn begin_again(&mut self) {
        self.is_open = false;
        if !self.in_paste {
            self.held.clear();
        }
    }

    /// Notes that the pieces given out last are on their way to the terminal. Where they are not, a
    /// paste that began or ended among them begins or ends with the next ones.
    pub fn on_queued(&mut self) {
        self.is_open = self.in_paste;
    }

    /// Whether nothing of what was typed so far says how to take what comes next.
    pub fn is_blank(&self) -> bool {
        !self.in_paste && !self.is_open && self.held.is_empty()
    }

    /// The pieces of the next bytes; they count once [`TypedBytes::on_queued`] is told of them.
    pub fn pieces(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let all = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
        let mut rest = all.as_slice();
        let mut unit = Unit::default();
        let missing = match (self.is_open, self.in_paste) {
            (false, true) => Some(Piece::PasteStart),
            (true, false) => Some(Piece::PasteEnd),
            (true, true) | (false, false) => None,
        };
        while !rest.is_empty() {
            let next = if self.in_paste { pasted(rest) } else { typed(rest) };
            let Some((piece, length)) = next else {
                self.held = rest.to_vec();
                break;
            };
            match piece {
                Piece::PasteStart => self.in_paste = true,
                Piece::PasteEnd => self.in_paste = false,
                Piece::Text(_) | Piece::Key(_) => {}
            }
            unit.pieces.push(piece);
            rest = &rest[length..];
        }
        // An interrupt alone gets past what is stuck, and closes a paste by that.
        if !unit.is_interrupt() {
            unit.pieces.splice(..0, missing);
        }
        unit.pieces
    }
}

/// The first piece of bytes inside a paste and its length; none while it is incomplete.
fn pasted(bytes: &[u8]) -> Option<(Piece, usize)> {
    if bytes.starts_with(Piece::PASTE_END) {
        return Some((Piece::PasteEnd, Piece::PASTE_END.len()));
    }
    let may_end = |at: &usize| {
        let tail = &bytes[*at..];
        tail.starts_with(Piece::PASTE_END) || Piece::PASTE_END.starts_with(tail)
    };
    let escapes = (0..bytes.len()).filter(|at| bytes[*at] == ESCAPE);
    let length = escapes.into_iter().find(may_end).unwrap_or(bytes.len());
    text(bytes, length)
}

/// The first piece of bytes outside a paste and its length; none while it is incomplete.
fn typed(bytes: &[u8]) -> Option<(Piece, usize)> {
    if bytes.starts_with(Piece::PASTE_START) {
        return Some((Piece::PasteStart, Piece::PASTE_START.len()));
    }
    let is_control = |byte: &u8| *byte < b' ' || *byte == DELETE;
    if bytes.first().is_some_and(is_control) {
        let length = if bytes[0] == ESCAPE { sequence(bytes)? } else { 1 };
        return Some((Piece::Key(bytes[..length].to_vec()), length));
    }
    text(bytes, bytes.iter().position(is_control).unwrap_or(bytes.len()))
}

/// A text of at most this length, without the character at its end that is incomplete.
fn text(bytes: &[u8], length: usize) -> Option<(Piece, usize)> {
    let length = if length == bytes.len() { complete(bytes) } else { length };
    (length > 0).then(|| (Piece::Text(bytes[..length].to_vec()), length))
}

/// How many bytes there are before a character that the end of the bytes breaks off.
fn complete(bytes: &[u8]) -> usize {
    let broken_off = |from: usize| {
        std::str::from_utf8(&bytes[from..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let earliest = bytes.len().saturating_sub(3);
    (earliest..bytes.len()).find(|from| broken_off(*from)).unwrap_or(bytes.len())
}

/// The length of the sequence that begins with an escape; none while it is incomplete.
///
/// What a person may have typed just so, such as Escape or Alt-`[` alone, is complete.
fn sequence(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1) {
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => Some(bytes.len().min(3)),
        // Alt with a key that sends a sequence itself.
        Some(&ESCAPE) if matches!(bytes.get(2), Some(b'[' | b'O')) => {
            sequence(&bytes[1..]).map(|length| length + 1)
        }
        Some(&ESCAPE) | None => Some(1),
        Some(_) => character(&bytes[1..]).map(|length| length + 1),
    }
}

/// The length of a control sequence: parameters, intermediates and a final byte, by ECMA-48; and
/// the three characters that follow where it reports the mouse in xterm's first encoding.
fn control_sequence(bytes: &[u8]) -> Option<usize> {
    let parameters = &bytes[2..];
    if parameters.is_empty() {
        return Some(2);
    }
    let Some(length) = parameters.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return held_back(bytes);
    };
    let end = length + 3;
    match bytes[end - 1] {
        b'M' if length == 0 => {
            let mut end = end;
            for _ in 0..3 {
                end += match bytes.get(end) {
                    Some(_) => character(&bytes[end..])?,
                    None => return held_back(bytes),
                };
            }
            Some(end)
        }
        0x40..=0x7e => Some(end),
        // No final byte: whatever follows is no part of it.
        _ => Some(end - 1),
    }
}

fn held_back(bytes: &[u8]) -> Option<usize> {
    (bytes.len() > TypedBytes::HELD_MAX).then_some(bytes.len())
}

/// The length of the first character; none while it is incomplete.
fn character(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(&bytes[..bytes.len().min(4)]) {
        Ok(text) => Some(text.chars().next().map_or(0, char::len_utf8)),
        Err(error) if error.valid_up_to() > 0 => character(&bytes[..error.valid_up_to()]),
        Err(error) => error.error_len().map(|_| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of several calls, one text for each: `k:` a key, `t:` text, `(` and `)` the ends
    /// of a paste.
    fn taken_apart(calls: &[&[u8]]) -> Vec<String> {
        let mut typed = TypedBytes::default();
        let pieces = calls.iter().flat_map(|bytes| {
            let pieces = typed.pieces(bytes);
            typed.on_queued();
            pieces
        });
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        pieces
            .map(|piece| match piece {
                Piece::Text(bytes) => format!("t:{}", shown(&bytes)),
                Piece::Key(bytes) => format!("k:{}", shown(&bytes)),
                Piece::PasteStart => "(".to_owned(),
                Piece::PasteEnd => ")".to_owned(),
            })
            .collect()
    }

    #[test]
    fn text_and_control_characters_are_told_apart() {
        assert_eq!(taken_apart(&[b"ls -l\r\x03"]), ["t:ls -l", "k:\\r", "k:\\x03"]);
        assert_eq!(taken_apart(&[b"a\x7fb"]), ["t:a", "k:\\x7f", "t:b"]);
    }

    #[test]
    fn an_escape_sequence_is_one_key() {
        assert_eq!(taken_apart(&[b"\x1b[A\x1b[1;5Cx"]), ["k:\\x1b[A", "k:\\x1b[1;5C", "t:x"]);
        assert_eq!(taken_apart(&[b"\x1bOP"]), ["k:\\x1bOP"]);
        assert_eq!(taken_apart(&[b"\x1bx\x1b\x1b[A"]), ["k:\\x1bx", "k:\\x1b\\x1b[A"]);
    }

    #[test]
    fn a_mouse_report_is_one_key_in_every_encoding() {
        assert_eq!(taken_apart(&[b"\x1b[<0;3;4Mx"]), ["k:\\x1b[<0;3;4M", "t:x"]);
        assert_eq!(taken_apart(&[b"\x1b[M !!x"]), ["k:\\x1b[M !!", "t:x"]);
        assert_eq!(taken_apart(&[b"\x1b[M ", b"!!x"]), ["k:\\x1b[M !!", "t:x"]);
    }

    #[test]
    fn keys_that_end_like_the_beginning_of_a_sequence_do_not_wait() {
        assert_eq!(taken_apart(&[b"\x1b"]), ["k:\\x1b"]);
        assert_eq!(taken_apart(&[b"\x1b["]), ["k:\\x1b["]);
        assert_eq!(taken_apart(&[b"\x1bO"]), ["k:\\x1bO"]);
    }

    #[test]
    fn what_is_broken_off_beyond_doubt_waits_for_the_rest() {
        assert_eq!(taken_apart(&[b"\x1b[1;", b"5C"]), ["k:\\x1b[1;5C"]);
        assert_eq!(taken_apart(&[b"a\xe2\x82", b"\xacb"]), ["t:a", "t:\\xe2\\x82\\xacb"]);
        assert_eq!(taken_apart(&[b"\x1b\xc3", b"\xa9"]), ["k:\\x1b\\xc3\\xa9"]);
    }

    #[test]
    fn bytes_that_are_no_characters_go_out_as_they_are() {
        assert_eq!(taken_apart(&[b"\xff\x80a"]), ["t:\\xff\\x80a"]);
    }

    #[test]
    fn a_sequence_without_end_is_not_held_back_forever() {
        let mut typed = TypedBytes::default();
        let endless = [b"\x1b[".as_slice(), &[b'1'; TypedBytes::HELD_MAX]].concat();
        assert_eq!(typed.pieces(&endless), [Piece::Key(endless.clone())]);
    }

    #[test]
    fn a_paste_may_span_calls_and_so_may_its_ends() {
        assert_eq!(
            taken_apart(&[b"\x1b[200~a\x1b[A\r", b"b\x1b[20", b"1~\r"]),
            ["(", "t:a\\x1b[A\\r", "t:b", ")", "k:\\r"]
        );
        assert_eq!(taken_apart(&[b"\x1b[200", b"~x"]), ["(", "t:x"]);
    }

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

    #[test]
    fn taking_apart_loses_and_adds_nothing() {
        let bytes = b"x\x1b[200~p\x1b[201~\x1b[Mabc\xe2\x82\xac\x1b\x1bOA\x7f\x1b[38;5;";
        for split in 0..bytes.len() {
            let mut typed = TypedBytes::default();
            let mut pieces = typed.pieces(&bytes[..split]);
            typed.on_queued();
            pieces.extend(typed.pieces(&bytes[split..]));
            let mut all: Vec<u8> = pieces.iter().flat_map(|p| p.bytes().to_vec()).collect();
            all.extend(typed.held);
            assert_eq!(all, bytes);
        }
    }
}
