//! The bytes of a key press in the kitty keyboard protocol.
//!
//! It follows <https://sw.kovidgoyal.net/kitty/keyboard-protocol/>: "Progressive enhancement" for
//! the flags, "Functional key definitions" for the numbers.

use crate::core::keys::{
    DELETE, ESCAPE, FunctionKey, Key, KeyCode, KeypadKey, Modifiers, NamedKey,
};

const DISAMBIGUATE: u8 = 1;
const REPORT_EVENTS: u8 = 1 << 1;
const REPORT_ALTERNATES: u8 = 1 << 2;
const REPORT_ALL: u8 = 1 << 3;
const REPORT_TEXT: u8 = 1 << 4;

/// The number of the first keypad key, `KP_0`; the digits follow it.
const KEYPAD_BASE: u32 = 57_399;
/// The number of F13, the first function key without a legacy number here.
const F13: u32 = 57_376;

/// Whether these flags select this protocol; the other flags only add detail.
pub(crate) fn replaces_legacy(flags: u8) -> bool {
    flags & (DISAMBIGUATE | REPORT_ALL) != 0
}

/// The bytes of one key press, and of its release when the program asked for release events.
pub(crate) fn encode(key: Key, flags: u8) -> Vec<u8> {
    let text = typed(key);
    if flags & REPORT_ALL == 0
        && let Some(plain) = plain(key, text)
    {
        return plain;
    }
    let event = KeyEvent::of(key, text, flags);
    let mut bytes = event.press();
    if flags & REPORT_EVENTS != 0 {
        bytes.extend(event.release());
    }
    bytes
}

fn typed(key: Key) -> Option<char> {
    let held = key.modifiers;
    if held.ctrl || held.alt {
        return None;
    }
    match key.code {
        KeyCode::Char(character) if held.shift => Some(shifted(character)),
        KeyCode::Char(character) => Some(character),
        KeyCode::Named(NamedKey::Keypad(keypad)) if !held.shift => {
            Some(char::from(keypad.legend())).filter(|legend| !legend.is_control())
        }
        KeyCode::Named(_) => None,
    }
}

/// The legacy bytes of a key that keeps them: text, and the three keys that let a user type `reset`
/// after a program left the protocol on.
fn plain(key: Key, text: Option<char>) -> Option<Vec<u8>> {
    if let Some(text) = text {
        return Some(text.to_string().into_bytes());
    }
    if key.modifiers != Modifiers::NONE {
        return None;
    }
    if key.code == KeyCode::Named(NamedKey::Enter) {
        Some(vec![b'\r'])
    } else if key.code == KeyCode::Named(NamedKey::Tab) {
        Some(vec![b'\t'])
    } else if key.code == KeyCode::Named(NamedKey::Backspace) {
        Some(vec![DELETE])
    } else {
        None
    }
}

/// One key as an event of the protocol's central sequence.
struct KeyEvent {
    number: u32,
    /// The shifted character, when Shift is held and the program asked for it.
    alternate: Option<char>,
    modifiers: u8,
    text: Option<char>,
    last: char,
}

impl KeyEvent {
    fn of(key: Key, text: Option<char>, flags: u8) -> Self {
        let held = held(key);
        let (number, last) = number(key.code);
        let alternate = match key.code {
            KeyCode::Char(character) if held.shift && flags & REPORT_ALTERNATES != 0 => {
                let plain = unshifted(character);
                Some(shifted(plain)).filter(|shifted| *shifted != plain)
            }
            KeyCode::Char(_) | KeyCode::Named(_) => None,
        };
        let text = text.filter(|_| flags & REPORT_TEXT != 0);
        Self { number, alternate, modifiers: held.parameter(), text, last }
    }

    fn press(&self) -> Vec<u8> {
        let parameters = match (self.modifiers, self.text) {
            (1, None) => String::new(),
            (1, Some(text)) => format!(";;{}", u32::from(text)),
            (modifiers, None) => format!(";{modifiers}"),
            (modifiers, Some(text)) => format!(";{modifiers};{}", u32::from(text)),
        };
        if parameters.is_empty() && self.number == 1 {
            return format!("\x1b[{}", self.last).into_bytes();
        }
        self.sequence(&parameters)
    }

    fn release(&self) -> Vec<u8> {
        self.sequence(&format!(";{}:3", self.modifiers))
    }

    fn sequence(&self, parameters: &str) -> Vec<u8> {
        let alternate = self.alternate.map_or_else(String::new, |c| format!(":{}", u32::from(c)));
        format!("\x1b[{}{alternate}{parameters}{}", self.number, self.last).into_bytes()
    }
}

/// The modifiers of the press. A character that needs Shift implies it. With Ctrl, the case of a
/// letter has no meaning: `C-A` is `C-a`, as in tmux.
fn held(key: Key) -> Modifiers {
    let implied = match key.code {
        KeyCode::Char(character) if key.modifiers.ctrl && character.is_alphabetic() => false,
        KeyCode::Char(character) => unshifted(character) != character,
        KeyCode::Named(_) => false,
    };
    Modifiers { shift: key.modifiers.shift || implied, ..key.modifiers }
}

fn number(code: KeyCode) -> (u32, char) {
    match code {
        KeyCode::Char(character) => (u32::from(unshifted(character)), 'u'),
        KeyCode::Named(named) => named_number(named),
    }
}

fn named_number(key: NamedKey) -> (u32, char) {
    match key {
        NamedKey::Escape => (u32::from(ESCAPE), 'u'),
        NamedKey::Enter => (13, 'u'),
        NamedKey::Tab => (9, 'u'),
        NamedKey::Backspace => (u32::from(DELETE), 'u'),
        NamedKey::Insert => (2, '~'),
        NamedKey::Delete => (3, '~'),
        NamedKey::PageUp => (5, '~'),
        NamedKey::PageDown => (6, '~'),
        NamedKey::Up => (1, 'A'),
        NamedKey::Down => (1, 'B'),
        NamedKey::Right => (1, 'C'),
        NamedKey::Left => (1, 'D'),
        NamedKey::Home => (1, 'H'),
        NamedKey::End => (1, 'F'),
        NamedKey::Function(function) => function_number(function),
        NamedKey::Keypad(keypad) => (keypad_number(keypad), 'u'),
    }
}

fn function_number(key: FunctionKey) -> (u32, char) {
    match key.number() {
        // `CSI 1;2R` is also a terminal's answer to a cursor query, so F3 uses a number.
        3 => (13, '~'),
        number @ 13.. => (F13 + u32::from(number - 13), 'u'),
        _ => match key.pf_letter() {
            Some(letter) => (1, letter),
            None => (u32::from(key.tilde_number()), '~'),
        },
    }
}

fn keypad_number(key: KeypadKey) -> u32 {
    let place = match key.legend() {
        digit @ b'0'..=b'9' => digit - b'0',
        b'.' => 10,
        b'/' => 11,
        b'*' => 12,
        b'-' => 13,
        b'+' => 14,
        _ => 15,
    };
    KEYPAD_BASE + u32::from(place)
}

/// ASCII characters whose shifted form is not their capital, and in the same order their shifted forms.
const PLAIN: &str = r"`1234567890-=[]\;',./";
const SHIFTED: &str = r#"~!@#$%^&*()_+{}|:"<>?"#;

/// The character that this character's key types with Shift.
pub fn shifted(character: char) -> char {
    let pair = PLAIN.chars().zip(SHIFTED.chars()).find(|(plain, _)| *plain == character);
    pair.map_or_else(|| only(character.to_uppercase(), character), |(_, shifted)| shifted)
}

/// The character that this character's key types without Shift.
pub fn unshifted(character: char) -> char {
    let pair = PLAIN.chars().zip(SHIFTED.chars()).find(|(_, shifted)| *shifted == character);
    pair.map_or_else(|| only(character.to_lowercase(), character), |(plain, _)| plain)
}

/// The single character after a change of case; the original when there are several.
fn only(mut changed: impl Iterator<Item = char>, original: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(single), None) => single,
        (Some(_) | None, _) => original,
    }
}

#[cfg(test)]
mod tests;
