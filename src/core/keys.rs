//! Keys, mouse events and pastes: what a caller may ask for, and the bytes a terminal sends for it.
//!
//! Nothing here knows who asks or whether the bytes are ever sent; the modes of the program are an
//! argument, so that every encoding is a table one can read.

pub mod encode;
pub mod kitty;
pub mod layout;
pub mod modes;
pub mod mouse;
pub mod names;
pub mod parse;
pub mod paste;
pub mod tokens;
pub mod typed;

/// How many keys one call may press.
pub const KEYS_MAX: usize = 1_000;

/// One press of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub modifiers: Modifiers,
}

/// Which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// The key that types this character; never a control character.
    Char(char),
    Named(NamedKey),
}

/// A key that types no character of its own.
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
    /// The highest function key there is.
    pub const MAX: u8 = 20;

    /// The function key with this number, from 1 to [`Self::MAX`].
    pub fn new(number: u8) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// Its number, from 1.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// A key of the numeric keypad: a digit, one of `. / * - +`, or its Enter key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeypadKey(u8);

impl KeypadKey {
    /// The character the key types in numeric mode, a carriage return for Enter.
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
    /// No modifier at all.
    pub const NONE: Self = Self { ctrl: false, alt: false, shift: false };
    /// Shift alone.
    pub const SHIFT: Self = Self { ctrl: false, alt: false, shift: true };
    /// Ctrl alone.
    pub const CTRL: Self = Self { ctrl: true, alt: false, shift: false };
    /// Alt alone.
    pub const ALT: Self = Self { ctrl: false, alt: true, shift: false };

    /// The modifiers of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            ctrl: self.ctrl || other.ctrl,
            alt: self.alt || other.alt,
            shift: self.shift || other.shift,
        }
    }

    /// The parameter that xterm and the kitty protocol write: 1, plus 1 for shift, 2 for alt and
    /// 4 for ctrl.
    pub fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.ctrl)
    }
}

impl Key {
    /// The Enter key alone.
    pub const ENTER: Self =
        Self { code: KeyCode::Named(NamedKey::Enter), modifiers: Modifiers::NONE };

    /// The end of the line in the line editors of shells.
    pub const LINE_END: Self = Self { code: KeyCode::Char('e'), modifiers: Modifiers::CTRL };

    /// What takes away all of the line before the cursor in them; they can bring it back.
    pub const KILL_LINE: Self = Self { code: KeyCode::Char('u'), modifiers: Modifiers::CTRL };

    /// What our scripts for shells have them begin an empty line by, in whatever mode they are: a key
    /// with all modifiers, which nobody presses.
    pub const EMPTY_LINE: Self = Self {
        code: KeyCode::Named(NamedKey::Function(FunctionKey(12))),
        modifiers: Modifiers { ctrl: true, alt: true, shift: true },
    };

    /// What takes away the character before the cursor, and ends some questions that have none.
    pub const BACKSPACE: Self =
        Self { code: KeyCode::Named(NamedKey::Backspace), modifiers: Modifiers::NONE };

    /// What gives up a question or a search in them.
    pub const GIVE_UP: Self = Self { code: KeyCode::Char('g'), modifiers: Modifiers::CTRL };

    /// The key with this name, `Enter` or `PageUp`, pressed with these modifiers.
    ///
    /// A name is one of [`names::NAMES`] in any case, or a single character; prefixes such as
    /// `C-` have no place in it. Errors: [`KeyError::Unknown`].
    pub fn named(name: &str, modifiers: Modifiers) -> Result<Self, KeyError> {
        let key =
            names::lookup(name).ok_or_else(|| KeyError::unknown(name, names::nearest(name)))?;
        Ok(Self { code: key.code, modifiers: key.modifiers.with(modifiers) })
    }

    /// The key that types this character, pressed with these modifiers.
    ///
    /// Errors: [`KeyError::Unknown`] for a control character, which is a key of its own.
    pub fn character(character: char, modifiers: Modifiers) -> Result<Self, KeyError> {
        if character.is_control() {
            let name = character.escape_default().to_string();
            return Err(KeyError::unknown(&name, names::of_control(character)));
        }
        Ok(Self { code: KeyCode::Char(character), modifiers })
    }
}

/// Says why a list of keys was refused; nothing of it is sent then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The word is neither a key name nor a single character.
    #[error("{name:?} is no key{}; to type text use send_text", suggestion(.nearest))]
    Unknown {
        /// The word, cut to [`Self::NAME_MAX`] characters.
        name: Box<str>,
        /// Names that resemble it, the nearest first; none when nothing does.
        nearest: Vec<&'static str>,
    },
    #[error("the list of keys is empty")]
    Empty,
    #[error("{count} keys are more than the {KEYS_MAX} one call may press")]
    TooMany { count: usize },
}

impl KeyError {
    /// How much of an unknown word is repeated to the caller, in characters.
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
