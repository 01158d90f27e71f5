//! Keys, mouse events and pastes, and the bytes that a terminal sends for them.
//!
//! The program's modes are an argument, so that every encoding is a table.

pub mod control;
pub mod encode;
pub mod kitty;
pub mod modes;
pub mod mouse;
pub mod parse;
pub mod paste;
pub mod tokens;

use std::borrow::Cow;

pub(crate) const ESCAPE: u8 = 0x1b;
pub(crate) const DELETE: u8 = 0x7f;

/// The most keys in one call.
pub const KEYS_MAX: usize = 1_000;

/// One press of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub modifiers: Modifiers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// The key that types this character; never a control character.
    Char(char),
    Named(NamedKey),
}

/// A key that types no printable character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedKey {
    Enter,
    Escape,
    Tab,
    Backspace,
    Insert,
    Delete,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
    Function(FunctionKey),
    Keypad(KeypadKey),
}

/// A function key, F1 to F20.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionKey(u8);

impl FunctionKey {
    pub const MAX: u8 = 20;

    /// The function key with this number, 1 to [`Self::MAX`].
    pub fn new(number: u8) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }

    /// The final letter of the sequences of F1 to F4, from the VT100's PF keys.
    pub(crate) fn pf_letter(self) -> Option<char> {
        (1..=4).contains(&self.0).then(|| char::from(b'P' + self.0 - 1))
    }

    /// The number of F5 to F20 before the tilde. The gaps are those of the VT220 keyboard.
    pub(crate) fn tilde_number(self) -> u8 {
        let gaps = [5, 10, 14, 16].into_iter().filter(|last| self.0 > *last).count() as u8;
        self.0 + 10 + gaps
    }
}

/// A key of the numeric keypad: a digit, one of `. / * - +`, or its Enter key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeypadKey(u8);

impl KeypadKey {
    /// The character of the key in numeric mode; a carriage return for Enter.
    pub fn legend(self) -> u8 {
        self.0
    }
}

/// The modifiers held while a key or a button is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers {
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Modifiers {
    pub const NONE: Self = Self { ctrl: false, alt: false, shift: false };
    pub const SHIFT: Self = Self { ctrl: false, alt: false, shift: true };
    pub const CTRL: Self = Self { ctrl: true, alt: false, shift: false };
    pub const ALT: Self = Self { ctrl: false, alt: true, shift: false };

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            ctrl: self.ctrl || other.ctrl,
            alt: self.alt || other.alt,
            shift: self.shift || other.shift,
        }
    }

    /// The modifier parameter of xterm and the kitty protocol: 1, plus 1 for shift, 2 for alt and 4
    /// for ctrl.
    pub fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.ctrl)
    }
}

impl Key {
    pub const ENTER: Self =
        Self { code: KeyCode::Named(NamedKey::Enter), modifiers: Modifiers::NONE };

    /// Moves to the end of the line in line editors of shells.
    pub const LINE_END: Self = Self { code: KeyCode::Char('e'), modifiers: Modifiers::CTRL };

    /// Deletes the line before the cursor in line editors, which can restore it.
    pub const KILL_LINE: Self = Self { code: KeyCode::Char('u'), modifiers: Modifiers::CTRL };

    /// Starts an empty line in any mode of a line editor. termgate's shell scripts bind this key: with
    /// all modifiers held, no person presses it by accident.
    pub const EMPTY_LINE: Self = Self {
        code: KeyCode::Named(NamedKey::Function(FunctionKey(12))),
        modifiers: Modifiers { ctrl: true, alt: true, shift: true },
    };

    /// Deletes the character before the cursor. At some prompts without input it cancels the prompt.
    pub const BACKSPACE: Self =
        Self { code: KeyCode::Named(NamedKey::Backspace), modifiers: Modifiers::NONE };

    /// Returns the key with this name, such as `Enter` or `PageUp`, with these modifiers.
    ///
    /// A name is one of [`parse::NAMES`] in any case, or a single character, without prefixes such as
    /// `C-`. Errors: [`KeyError::Unknown`].
    pub fn named(name: &str, modifiers: Modifiers) -> Result<Self, KeyError> {
        let key =
            parse::lookup(name).ok_or_else(|| KeyError::unknown(name, parse::nearest(name)))?;
        Ok(Self { code: key.code, modifiers: key.modifiers.with(modifiers) })
    }

    /// Returns the key that types this character, with these modifiers.
    ///
    /// Errors: [`KeyError::Unknown`] for a control character, which has a key of its own.
    pub fn character(character: char, modifiers: Modifiers) -> Result<Self, KeyError> {
        if character.is_control() {
            let name = character.escape_default().to_string();
            return Err(KeyError::unknown(&name, parse::of_control(character)));
        }
        Ok(Self { code: KeyCode::Char(character), modifiers })
    }
}

/// Why a list of keys is invalid. termgate then sends no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The word is neither a key name nor a single character.
    #[error("unknown key {name:?}{}", suggestion(.nearest))]
    Unknown {
        /// The word, cut to [`Self::NAME_MAX`] characters.
        name: Box<str>,
        /// Similar names, the nearest first; empty when there are none.
        nearest: Vec<&'static str>,
    },
    #[error("the list of keys is empty")]
    Empty,
    #[error("{count} keys are more than the {KEYS_MAX} one call may press")]
    TooMany { count: usize },
}

impl KeyError {
    /// How many characters of an unknown word the error repeats.
    pub const NAME_MAX: usize = 40;

    fn unknown(name: &str, nearest: Vec<&'static str>) -> Self {
        Self::Unknown { name: name.chars().take(Self::NAME_MAX).collect(), nearest }
    }
}

fn suggestion(nearest: &[&str]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!(" (did you mean {}?)", nearest.join(", "))
}

/// A part of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, which may be cut between any two characters; never empty.
    Text(Vec<u8>),
    /// One key or mouse event, which is sent whole or not at all; never empty.
    Key(Vec<u8>),
    /// The start of a bracketed paste: once it went out, the paste must be closed.
    PasteStart,
    /// The end of a bracketed paste.
    PasteEnd,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    Text,
    Key,
    PasteStart,
    PasteEnd,
}

impl Piece {
    /// What opens a bracketed paste, by xterm's control sequences (mode 2004).
    pub const PASTE_START: &'static [u8] = b"\x1b[200~";
    /// What closes a bracketed paste.
    pub const PASTE_END: &'static [u8] = b"\x1b[201~";

    /// Makes a piece of these bytes, which the ends of a paste do not need.
    pub(crate) fn of(kind: PieceKind, bytes: &[u8]) -> Self {
        match kind {
            PieceKind::Text => Self::Text(bytes.to_vec()),
            PieceKind::Key => Self::Key(bytes.to_vec()),
            PieceKind::PasteStart => Self::PasteStart,
            PieceKind::PasteEnd => Self::PasteEnd,
        }
    }

    pub fn kind(&self) -> PieceKind {
        match self {
            Self::Text(_) => PieceKind::Text,
            Self::Key(_) => PieceKind::Key,
            Self::PasteStart => PieceKind::PasteStart,
            Self::PasteEnd => PieceKind::PasteEnd,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) | Self::Key(bytes) => bytes,
            Self::PasteStart => Self::PASTE_START,
            Self::PasteEnd => Self::PASTE_END,
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(bytes) | Self::Key(bytes) => bytes,
            Self::PasteStart => Self::PASTE_START.to_vec(),
            Self::PasteEnd => Self::PASTE_END.to_vec(),
        }
    }
}

/// The pieces of one write, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    pub pieces: Vec<Piece>,
}

impl Unit {
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of its bytes.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self.pieces.as_slice() {
            [only] => Cow::Borrowed(only.bytes()),
            pieces => pieces.iter().flat_map(|piece| piece.bytes()).copied().collect(),
        }
    }

    /// Whether the write is nothing but Ctrl-C, which may jump over bytes that are stuck.
    pub fn is_interrupt(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Key(bytes)] if bytes.as_slice() == b"\x03")
    }
}
