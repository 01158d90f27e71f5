//! Parses one key in the encodings of terminals.
//!
//! These are the legacy bytes, kitty's `CSI code:shifted:base ; modifiers:event ; text u` and xterm's
//! `CSI 27 ; modifiers ; code ~`.

use crate::cli::attach::pointer::Report;
use crate::cli::attach::prefix_key::Order;

/// The byte of `C-\` in the legacy encoding.
pub const PREFIX: u8 = 0x1c;

/// Modifiers are encoded as one more than the sum of their bits. The locks have higher bits.
const SHIFT: u32 = 1;
const CONTROL: u32 = 4;
const LOCKS: u32 = 64 | 128;

const REPEAT: u32 = 2;
const RELEASE: u32 = 3;

/// The event in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    Press(Key),
    Repeat(Key),
    Release(Key),
    Pointer(Report),
    /// A modifier alone.
    Aside,
}

/// A key with the modifiers that were down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key's number, and the final byte of its sequence.
    name: (u32, u8),
    /// The character that it types without Control, if any.
    character: Option<char>,
    modifiers: u32,
}

impl Happening {
    /// Parses a token. A token that is not a key counts as an unknown key.
    pub fn of(token: &[u8]) -> Self {
        match token {
            [PREFIX] => Self::Press(Key::plain(b'\\').with_modifiers(CONTROL)),
            [byte] => Self::Press(Key::plain(*byte)),
            // A report without a valid place has no meaning.
            [0x1b, b'[', b'M', ..] | [0x1b, b'[', b'<', .., b'M' | b'm'] => {
                Report::of(token).map_or(Self::Aside, Self::Pointer)
            }
            [0x1b, b'[', body @ .., last] => Self::of_sequence(&Fields::of(body), *last),
            _ => Self::Press(Key { name: (0, 0), character: None, modifiers: 0 }),
        }
    }

    fn of_sequence(fields: &Fields<'_>, last: u8) -> Self {
        if last == b'u' && fields.number(0, 0).is_some_and(is_modifier) {
            return Self::Aside;
        }
        let key = Key::of_sequence(fields, last);
        match fields.number(1, 1) {
            Some(REPEAT) => Self::Repeat(key),
            Some(RELEASE) => Self::Release(key),
            Some(_) | None => Self::Press(key),
        }
    }
}

/// Whether a kitty code is that of a lock or a modifier.
fn is_modifier(code: u32) -> bool {
    (57_358..=57_360).contains(&code) || (57_441..=57_454).contains(&code)
}

impl Key {
    fn plain(byte: u8) -> Self {
        let character = byte.is_ascii_graphic().then_some(char::from(byte));
        Self { name: (u32::from(byte), b'u'), character, modifiers: 0 }
    }

    fn with_modifiers(self, modifiers: u32) -> Self {
        Self { modifiers, ..self }
    }

    fn of_sequence(fields: &Fields<'_>, last: u8) -> Self {
        let modifiers = fields.number(1, 0).unwrap_or(1).saturating_sub(1) & !LOCKS;
        let first = fields.number(0, 0).unwrap_or(1);
        if last == b'~' && first == 27 {
            let code = fields.number(2, 0).unwrap_or_default();
            return Self { name: (code, b'u'), character: char::from_u32(code), modifiers };
        }
        let typed = || {
            let shifted = fields.number(0, 1).filter(|_| modifiers & SHIFT != 0);
            // A non-Latin keyboard also reports the Latin key in the same place.
            let base = fields.number(0, 2).filter(|_| first > 127);
            let code = fields.number(2, 0).or(shifted).or(base).unwrap_or(first);
            char::from_u32(code)
        };
        let character = if last == b'u' { typed() } else { None };
        Self { name: (first, last), character, modifiers }
    }

    /// Whether it is the same key, regardless of modifiers.
    pub fn is_same_as(self, other: Self) -> bool {
        self.name == other.name
    }

    pub fn is_prefix(self) -> bool {
        let modifiers = self.modifiers & !SHIFT;
        modifiers == CONTROL && self.character == Some('\\')
    }

    /// Its meaning as the second key of a chord.
    pub fn meaning(self) -> Meaning {
        const PAGE_UP: (u32, u8) = (5, b'~');
        if self.name == PAGE_UP {
            return Meaning::Order(Order::Scrollback);
        }
        let shift = self.modifiers & SHIFT != 0;
        let character = self.character.filter(|_| self.modifiers & !SHIFT == 0);
        Meaning::Order(match character.map(|character| character.to_ascii_lowercase()) {
            Some('?') => return Meaning::List,
            // Some terminals do not report the shifted character of a key.
            Some('/') if shift => return Meaning::List,
            Some('d') => Order::Detach,
            Some('t') => Order::TakeOver,
            Some('h') => Order::HandBack,
            Some('[') => Order::Scrollback,
            Some(_) | None => Order::Unknown,
        })
    }
}

/// The meaning of the second key of a chord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Show the list of keys.
    List,
    Order(Order),
}

struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn of(body: &'a [u8]) -> Self {
        Self(std::str::from_utf8(body).unwrap_or_default())
    }

    fn number(&self, field: usize, part: usize) -> Option<u32> {
        self.0.split(';').nth(field)?.split(':').nth(part)?.parse().ok()
    }
}
