//! Splits the bytes that a terminal sends into text, keys and the start and end of pastes.
//!
//! It finds only where a key ends, so that no piece ends inside a key or a character.

use crate::core::keys::{DELETE, ESCAPE, Piece, PieceKind, Unit};

/// The keys in bytes that arrived together, each character one of them. Where a paste begins and ends is no key.
pub fn keys_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut tokens = Tokenizer::default();
    let mut pieces = tokens.feed(bytes);
    pieces.extend(tokens.flush());
    let keys = pieces.iter().flat_map(|piece| match piece {
        Piece::Text(text) => text.chunks(1),
        Piece::Key(key) => key.chunks(key.len()),
        Piece::PasteStart | Piece::PasteEnd => [].chunks(1),
    });
    keys.map(<[u8]>::to_vec).collect()
}

/// Splits a stream of bytes that arrives in parts. The pieces together equal the input.
#[derive(Clone, Debug, Default)]
pub struct Tokenizer {
    in_paste: bool,
    held: Vec<u8>,
}

impl Tokenizer {
    /// How many bytes of an incomplete sequence are held; a longer one is returned unchanged.
    pub const HELD_MAX: usize = 64;

    /// Starts between two keys, inside or outside a paste.
    pub fn new(in_paste: bool) -> Self {
        Self { in_paste, held: Vec::new() }
    }

    pub fn in_paste(&self) -> bool {
        self.in_paste
    }

    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Adds bytes and returns the complete pieces; the rest is held for the next call.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.split(bytes, |kind, bytes| pieces.push(Piece::of(kind, bytes)));
        pieces
    }

    /// Adds bytes whose pieces nobody needs.
    pub fn pass(&mut self, bytes: &[u8]) {
        self.split(bytes, |_, _| {});
    }

    fn split(&mut self, bytes: &[u8], mut found: impl FnMut(PieceKind, &[u8])) {
        self.held.extend_from_slice(bytes);
        let mut start = 0;
        while let Some((kind, length)) = first(&self.held[start..], self.in_paste) {
            match kind {
                PieceKind::PasteStart => self.in_paste = true,
                PieceKind::PasteEnd => self.in_paste = false,
                PieceKind::Text | PieceKind::Key => {}
            }
            found(kind, &self.held[start..start + length]);
            start += length;
        }
        self.held.drain(..start);
        self.held.shrink_to(Self::HELD_MAX);
    }

    /// Returns the held bytes if they are just Escape, Alt-`[` or Alt-`O`: a key, or the start of a
    /// split sequence.
    pub fn take_key(&mut self) -> Option<Piece> {
        let body = self.held.strip_prefix(&[ESCAPE])?;
        let body = body.strip_prefix(&[ESCAPE]).unwrap_or(body);
        let is_key = !self.in_paste && matches!(body, [] | [b'[' | b'O']);
        is_key.then(|| Piece::Key(std::mem::take(&mut self.held)))
    }

    pub fn flush(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        match held.first()? {
            &ESCAPE if !self.in_paste => Some(Piece::Key(held)),
            _ => Some(Piece::Text(held)),
        }
    }
}

/// The first piece and its length; none while it is incomplete.
fn first(bytes: &[u8], in_paste: bool) -> Option<(PieceKind, usize)> {
    if in_paste { pasted(bytes) } else { typed(bytes) }
}

/// The first piece of bytes inside a paste and its length; none while it is incomplete.
fn pasted(bytes: &[u8]) -> Option<(PieceKind, usize)> {
    if bytes.starts_with(Piece::PASTE_END) {
        return Some((PieceKind::PasteEnd, Piece::PASTE_END.len()));
    }
    let may_end = |at: &usize| {
        let tail = &bytes[*at..];
        tail.starts_with(Piece::PASTE_END) || Piece::PASTE_END.starts_with(tail)
    };
    let length = (0..bytes.len()).find(may_end).unwrap_or(bytes.len());
    text(bytes, length)
}

/// The first piece of bytes outside a paste and its length; none while it is incomplete.
fn typed(bytes: &[u8]) -> Option<(PieceKind, usize)> {
    if bytes.starts_with(Piece::PASTE_START) {
        return Some((PieceKind::PasteStart, Piece::PASTE_START.len()));
    }
    let is_control = |byte: &u8| *byte < b' ' || *byte == DELETE;
    if bytes.first().is_some_and(is_control) {
        let length = if bytes[0] == ESCAPE { sequence(bytes)? } else { 1 };
        return Some((PieceKind::Key, length));
    }
    text(bytes, bytes.iter().position(is_control).unwrap_or(bytes.len()))
}

/// A text of at most this length, without an incomplete character at its end.
fn text(bytes: &[u8], length: usize) -> Option<(PieceKind, usize)> {
    let length = if length == bytes.len() { complete(bytes) } else { length };
    (length > 0).then_some((PieceKind::Text, length))
}

/// The number of bytes before an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    let earliest = bytes.len().saturating_sub(3);
    let broken_off = |from: &usize| character(&bytes[*from..]).is_none();
    (earliest..bytes.len()).find(broken_off).unwrap_or(bytes.len())
}

/// The length of the sequence that starts with an escape; none while it is incomplete.
fn sequence(bytes: &[u8]) -> Option<usize> {
    match bytes[1..] {
        [] | [b'[' | b'O'] => None,
        [b'[', ..] => control_sequence(bytes),
        [b'O', b' '..=b'~', ..] => Some(3),
        [b'O', ..] => Some(2),
        // Alt with a key that sends a sequence itself.
        [ESCAPE, b'[' | b'O', ..] if !bytes[1..].starts_with(Piece::PASTE_START) => {
            sequence(&bytes[1..]).map(|length| length + 1)
        }
        [ESCAPE, ..] => Some(1),
        [..] => character(&bytes[1..]).map(|length| length + 1),
    }
}

/// The length of a control sequence by ECMA-48: parameters, intermediates and a final byte. A mouse
/// report in xterm's first encoding has three more characters.
fn control_sequence(bytes: &[u8]) -> Option<usize> {
    let parameters = &bytes[2..];
    let Some(length) = parameters.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return (bytes.len() > Tokenizer::HELD_MAX).then_some(bytes.len());
    };
    match parameters[length] {
        b'M' if length == 0 => mouse_report(bytes),
        0x40..=0x7e => Some(length + 3),
        // Without a final byte, the sequence ends before the next byte.
        _ => Some(length + 2),
    }
}

/// The length of a mouse report with its three parts. Each is a byte or, in the encoding for large
/// terminals, a two-byte character.
fn mouse_report(bytes: &[u8]) -> Option<usize> {
    let mut length = 3;
    for _part in 0..3 {
        length += match bytes[length..] {
            [] | [0xc2..=0xdf] => return None,
            [0xc2..=0xdf, 0x80..=0xbf, ..] => 2,
            [0x20..=0xff, ..] => 1,
            [..] => return Some(length),
        };
    }
    Some(length)
}

/// The length of the first character; none while it is incomplete.
fn character(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(&bytes[..bytes.len().min(4)]) {
        Ok(text) => Some(text.chars().next().map_or(0, char::len_utf8)),
        Err(error) if error.valid_up_to() > 0 => character(&bytes[..error.valid_up_to()]),
        Err(error) => error.error_len().map(|_| 1),
    }
}

/// Splits one person's input, call by call.
///
/// A paste, a sequence or a character may span calls. Bytes that are certainly incomplete are held.
#[derive(Clone, Debug, Default)]
pub struct TypedBytes {
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

    /// The pieces of several calls, one text for each: `k:` a key, `t:` text, `(` and `)` the ends
    /// of a paste.
    fn split(calls: &[&[u8]]) -> Vec<String> {
        let mut tokens = Tokenizer::default();
        let mut pieces: Vec<Piece> = calls.iter().flat_map(|bytes| tokens.feed(bytes)).collect();
        pieces.extend(tokens.take_key());
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let shown = |piece: Piece| match piece {
            Piece::Text(bytes) => format!("t:{}", shown(&bytes)),
            Piece::Key(bytes) => format!("k:{}", shown(&bytes)),
            Piece::PasteStart => "(".to_owned(),
            Piece::PasteEnd => ")".to_owned(),
        };
        pieces.into_iter().map(shown).collect()
    }

    #[test]
    fn text_and_control_characters_are_separate_pieces() {
        assert_eq!(split(&[b"ls -l\r\x03"]), ["t:ls -l", "k:\\r", "k:\\x03"]);
        assert_eq!(split(&[b"a\x7fb"]), ["t:a", "k:\\x7f", "t:b"]);
    }

    #[test]
    fn an_escape_sequence_is_one_key() {
        assert_eq!(split(&[b"\x1b[A\x1b[1;5Cx"]), ["k:\\x1b[A", "k:\\x1b[1;5C", "t:x"]);
        assert_eq!(split(&[b"\x1bOP"]), ["k:\\x1bOP"]);
        assert_eq!(split(&[b"\x1bx\x1b\x1b[A"]), ["k:\\x1bx", "k:\\x1b\\x1b[A"]);
    }

    #[test]
    fn a_mouse_report_is_one_key_in_every_encoding() {
        assert_eq!(split(&[b"\x1b[<0;3;4Mx"]), ["k:\\x1b[<0;3;4M", "t:x"]);
        assert_eq!(split(&[b"\x1b[M !!x"]), ["k:\\x1b[M !!", "t:x"]);
        assert_eq!(split(&[b"\x1b[M ", b"!!x"]), ["k:\\x1b[M !!", "t:x"]);
        assert_eq!(split(&[b"\x1b[M !\xc3", b"\xa9x"]), ["k:\\x1b[M !\\xc3\\xa9", "t:x"]);
    }

    #[test]
    fn keys_that_end_like_the_beginning_of_a_sequence_can_be_taken() {
        for key in [&b"\x1b"[..], b"\x1b[", b"\x1bO", b"\x1b\x1b["] {
            assert_eq!(split(&[key]), [format!("k:{}", key.escape_ascii())]);
        }
    }

    #[test]
    fn what_is_broken_off_beyond_doubt_waits_for_the_rest() {
        assert_eq!(split(&[b"\x1b[1;"]), [""; 0]);
        assert_eq!(split(&[b"\x1b[1;", b"5C"]), ["k:\\x1b[1;5C"]);
        assert_eq!(split(&[b"a\xe2\x82", b"\xacb"]), ["t:a", "t:\\xe2\\x82\\xacb"]);
        assert_eq!(split(&[b"\x1b\xc3", b"\xa9"]), ["k:\\x1b\\xc3\\xa9"]);
    }

    #[test]
    fn a_sequence_that_is_broken_off_by_another_ends_there() {
        assert_eq!(split(&[b"\x1b[1\x1b[B"]), ["k:\\x1b[1", "k:\\x1b[B"]);
        assert_eq!(
            split(&[b"\x1bO\x1b[B\x1b[M!\x1b[B"]),
            ["k:\\x1bO", "k:\\x1b[B", "k:\\x1b[M!", "k:\\x1b[B"]
        );
    }

    #[test]
    fn bytes_that_are_no_characters_go_out_as_they_are() {
        assert_eq!(split(&[b"\xff\x80a"]), ["t:\\xff\\x80a"]);
    }

    #[test]
    fn a_sequence_without_end_is_not_held_forever() {
        let endless = [b"\x1b[".as_slice(), &[b'1'; Tokenizer::HELD_MAX]].concat();
        assert_eq!(Tokenizer::default().feed(&endless), [Piece::Key(endless.clone())]);
    }

    #[test]
    fn a_paste_may_span_calls_and_so_may_its_ends() {
        assert_eq!(
            split(&[b"\x1b[200~a\x1b[A\r", b"b\x1b[20", b"1~\r"]),
            ["(", "t:a\\x1b[A\\r", "t:b", ")", "k:\\r"]
        );
        assert_eq!(split(&[b"\x1b[200", b"~x"]), ["(", "t:x"]);
    }

    #[test]
    fn the_last_end_of_a_paste_counts_wherever_the_bytes_are_cut() {
        let marks = b"a\x1b[200~one\x1b[201~b\x1b\x1b[200~two\x1b[20\x1b[201~\x1bO\x1b[200~\x1b[M\x1b[201~\x1b[1\x1b[200~";
        for step in 1..marks.len() {
            let mut tokens = Tokenizer::default();
            let mut before = 0;
            for bytes in marks.chunks(step) {
                tokens.feed(bytes);
                before += bytes.len();
                let text = String::from_utf8_lossy(&marks[..before]).into_owned();
                let open = text.rfind("\x1b[200~") > text.rfind("\x1b[201~");
                assert_eq!(tokens.in_paste(), open, "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn splitting_loses_and_adds_nothing() {
        let bytes = b"x\x1b[200~p\x1b[201~\x1b[Mabc\xe2\x82\xac\x1b\x1bOA\x7f\x1b[38;5;";
        for split in 0..bytes.len() {
            let mut tokens = Tokenizer::default();
            let mut pieces = tokens.feed(&bytes[..split]);
            pieces.extend(tokens.feed(&bytes[split..]));
            pieces.extend(tokens.flush());
            let all: Vec<u8> = pieces.iter().flat_map(|p| p.bytes().to_vec()).collect();
            assert_eq!(all, bytes);
        }
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
}
