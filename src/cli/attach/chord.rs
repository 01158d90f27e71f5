//! What a person types, with the chord for termgate itself taken out of it.
//!
//! The chord is `C-\` and one more key, in whichever of the encodings the person's terminal sends it.
//! Everything else stays the bytes that came; what they mean is the program's business.

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// For the program.
    Bytes(Vec<u8>),
    /// For termgate.
    Order(Order),
}

/// What a chord asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Detach,
    TakeOver,
    HandBack,
    Scrollback,
    Help,
    /// The second key means nothing.
    Unknown,
}

/// The byte of `C-\` in the legacy encoding.
const PREFIX: u8 = 0x1c;
/// The code of `\` in the encodings that name keys by their character.
const BACKSLASH: u32 = 92;
/// Longer sequences are no keys.
const SEQUENCE_MAX: usize = 64;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Takes chords out of what is typed, however it is cut into pieces.
#[derive(Debug, Default)]
pub struct Chords {
    /// The beginning of a sequence whose end has not come yet.
    held: Vec<u8>,
    /// The first key of a chord was typed.
    begun: bool,
    in_paste: bool,
    out: Vec<Typed>,
}

impl Chords {
    /// Takes in what was typed and gives back what it means.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let Some(length) = token(rest, self.in_paste) else {
                self.held = rest.to_vec();
                break;
            };
            let (token, after) = rest.split_at(length);
            self.take(token);
            rest = after;
        }
        std::mem::take(&mut self.out)
    }

    /// Whether a sequence was begun and not ended: a lone Escape looks like that.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the first key of a chord was typed, and the second is awaited.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes what is held for what it is, since nothing followed in time.
    pub fn flush(&mut self) -> Vec<Typed> {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.take(&held);
        }
        std::mem::take(&mut self.out)
    }

    fn take(&mut self, token: &[u8]) {
        if token == PASTE_START || token == PASTE_END {
            self.in_paste = token == PASTE_START;
            return self.pass(token);
        }
        if self.in_paste {
            return self.pass(token);
        }
        let key = Key::parse(token);
        if key.is_release() {
            // The release of a key whose press was ours means nothing to the program.
            if !key.is_prefix() && !self.begun {
                self.pass(token);
            }
            return;
        }
        match (std::mem::take(&mut self.begun), key.is_prefix()) {
            (false, true) => self.begun = true,
            (false, false) | (true, true) => self.pass(token),
            (true, false) => self.out.push(Typed::Order(key.order())),
        }
    }

    fn pass(&mut self, token: &[u8]) {
        match self.out.last_mut() {
            Some(Typed::Bytes(bytes)) => bytes.extend_from_slice(token),
            Some(Typed::Order(_)) | None => self.out.push(Typed::Bytes(token.to_vec())),
        }
    }
}

/// The length of the first token: a control sequence or a single byte; none when its end is missing.
fn token(bytes: &[u8], in_paste: bool) -> Option<usize> {
    if bytes[0] != 0x1b {
        return Some(1);
    }
    if in_paste && !PASTE_END.starts_with(&bytes[..bytes.len().min(PASTE_END.len())]) {
        return Some(1);
    }
    match bytes.get(1) {
        None => None,
        Some(b'[') => {
            let body = &bytes[2..];
            let end = body.iter().position(|byte| !(0x20..=0x3f).contains(byte));
            match end {
                // An Escape inside begins another sequence.
                Some(at) if body[at] == 0x1b => Some(2 + at),
                Some(at) => Some(2 + at + 1),
                None if bytes.len() > SEQUENCE_MAX => Some(bytes.len()),
                None => None,
            }
        }
        Some(b'O') => (bytes.len() > 2).then_some(3),
        Some(_) => Some(1),
    }
}

/// A key as one of the encodings tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    code: u32,
    control: bool,
    release: bool,
    page_up: bool,
}

impl Key {
    fn parse(token: &[u8]) -> Self {
        let plain = |code| Self { code, control: false, release: false, page_up: false };
        match token {
            [PREFIX] => Self { control: true, ..plain(BACKSLASH) },
            [byte] => plain(u32::from(*byte)),
            b"\x1b[5~" => Self { page_up: true, ..plain(0) },
            [0x1b, b'[', body @ .., last] => Self::of_sequence(body, *last).unwrap_or(plain(0)),
            _ => plain(0),
        }
    }

    /// Kitty's `CSI code:shifted:base ; modifiers:event u` and xterm's `CSI 27 ; modifiers ; code ~`.
    fn of_sequence(body: &[u8], last: u8) -> Option<Self> {
        let body = std::str::from_utf8(body).ok()?;
        let fields: Vec<Vec<&str>> =
            body.split(';').map(|part| part.split(':').collect()).collect();
        let number = |field: usize, part: usize| -> Option<u32> {
            fields.get(field)?.get(part)?.parse().ok()
        };
        let (code, modifiers, event) = match last {
            b'u' => (number(0, 0)?, number(1, 0), number(1, 1)),
            b'~' if number(0, 0) == Some(27) => (number(2, 0)?, number(1, 0), None),
            // Other keys report their release in the same place.
            _ => (0, None, number(1, 1)),
        };
        // Modifiers are told as one more than the sum of their bits; Control is the third of them.
        let bits = modifiers.unwrap_or(1).saturating_sub(1);
        const CONTROL: u32 = 4;
        const RELEASE: u32 = 3;
        let page_up = last == b'~' && number(0, 0) == Some(5);
        let release = event == Some(RELEASE);
        Some(Self { code, control: bits & CONTROL != 0, release, page_up })
    }

    fn is_prefix(self) -> bool {
        self.control && self.code == BACKSLASH
    }

    fn is_release(self) -> bool {
        self.release
    }

    fn order(self) -> Order {
        if self.page_up {
            return Order::Scrollback;
        }
        match char::from_u32(self.code).filter(|_| !self.control) {
            Some('d') => Order::Detach,
            Some('t') => Order::TakeOver,
            Some('h') => Order::HandBack,
            Some('[') => Order::Scrollback,
            Some('?') => Order::Help,
            Some(_) | None => Order::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Typed {
        Typed::Bytes(bytes.to_vec())
    }

    /// What the pieces mean, with neighbouring bytes joined.
    fn fed(pieces: &[&[u8]]) -> Vec<Typed> {
        let mut chords = Chords::default();
        let mut all: Vec<Typed> = Vec::new();
        let fed = pieces.iter().flat_map(|piece| chords.feed(piece)).collect::<Vec<_>>();
        for typed in fed.into_iter().chain(chords.flush()) {
            match (all.last_mut(), typed) {
                (Some(Typed::Bytes(before)), Typed::Bytes(more)) => before.extend(more),
                (_, typed) => all.push(typed),
            }
        }
        all
    }

    /// The same whole, cut at every byte, and byte by byte.
    fn check(typed: &[u8], means: &[Typed]) {
        assert_eq!(fed(&[typed]), means, "{typed:?}");
        for at in 0..=typed.len() {
            assert_eq!(fed(&[&typed[..at], &typed[at..]]), means, "{typed:?} cut at {at}");
        }
        let single: Vec<&[u8]> = typed.chunks(1).collect();
        assert_eq!(fed(&single), means, "{typed:?} byte by byte");
    }

    #[test]
    fn each_chord_is_known_in_every_encoding() {
        const FIRST: [&[u8]; 7] = [
            b"\x1c",
            b"\x1b[92;5u",
            b"\x1b[92;5:1u",
            b"\x1b[92:124;5u",
            // With caps lock and num lock on.
            b"\x1b[92;69u",
            b"\x1b[92;133u",
            b"\x1b[27;5;92~",
        ];
        const SECOND: [(&[u8], Order); 9] = [
            (b"d", Order::Detach),
            (b"\x1b[100u", Order::Detach),
            (b"\x1b[100;1:1u", Order::Detach),
            (b"t", Order::TakeOver),
            (b"h", Order::HandBack),
            (b"[", Order::Scrollback),
            (b"\x1b[5~", Order::Scrollback),
            (b"?", Order::Help),
            (b"x", Order::Unknown),
        ];
        for first in FIRST {
            for (second, order) in SECOND {
                let typed = [b"a", first, second, b"b"].concat();
                check(&typed, &[bytes(b"a"), Typed::Order(order), bytes(b"b")]);
            }
        }
    }

    #[test]
    fn the_first_key_twice_is_typed_once() {
        for key in [&b"\x1c"[..], b"\x1b[92;5u"] {
            let twice = [key, key].concat();
            check(&twice, &[bytes(key)]);
        }
    }

    #[test]
    fn releases_of_the_first_key_are_swallowed() {
        check(b"\x1b[92;5u\x1b[92;5:3ud", &[Typed::Order(Order::Detach)]);
        check(b"a\x1b[97;1:3u", &[bytes(b"a\x1b[97;1:3u")]);
    }

    #[test]
    fn a_paste_is_never_taken_for_a_chord() {
        check(
            b"\x1b[200~a\x1cd\x1bb\x1b[201~\x1cd",
            &[bytes(b"\x1b[200~a\x1cd\x1bb\x1b[201~"), Typed::Order(Order::Detach)],
        );
    }

    #[test]
    fn everything_else_stays_as_it_was_typed() {
        for typed in [
            &b"hello\r"[..],
            "h\u{e9}llo\u{1f600}".as_bytes(),
            b"\x1b",
            b"\x1b\x1b[A",
            b"\x1b[A\x1bOB\x1b[1;5C\x1b[<0;10;20M",
            b"\x1bd\x1b[\x1b[B",
            b"\x1b[92u\\",
        ] {
            check(typed, &[bytes(typed)]);
        }
    }

    #[test]
    fn a_lone_escape_is_held_only_until_nothing_follows() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1b"), []);
        assert!(chords.is_waiting());
        assert_eq!(chords.flush(), [bytes(b"\x1b")]);
        assert!(!chords.is_waiting());
    }

    #[test]
    fn a_sequence_without_end_is_not_held_for_ever() {
        let mut chords = Chords::default();
        let long = [b"\x1b[".as_slice(), &[b'1'; SEQUENCE_MAX]].concat();
        assert_eq!(chords.feed(&long), [bytes(&long)]);
    }
}
