//! The names of keys: one table for the spellings of tmux, browsers and X, and suggestions for
//! misspelt names.

use crate::core::keys::{FunctionKey, Key, KeyCode, KeypadKey, Modifiers, NamedKey};
use crate::core::nearest::nearest_of;

/// Every key name. A lookup ignores case and underscores.
pub const NAMES: [(&str, Key); 75] = [
    ("Enter", named(NamedKey::Enter)),
    ("Return", named(NamedKey::Enter)),
    ("Escape", named(NamedKey::Escape)),
    ("Esc", named(NamedKey::Escape)),
    ("Tab", named(NamedKey::Tab)),
    ("BTab", Key { code: KeyCode::Named(NamedKey::Tab), modifiers: Modifiers::SHIFT }),
    ("BackTab", Key { code: KeyCode::Named(NamedKey::Tab), modifiers: Modifiers::SHIFT }),
    ("Space", Key { code: KeyCode::Char(' '), modifiers: Modifiers::NONE }),
    ("BSpace", named(NamedKey::Backspace)),
    ("Backspace", named(NamedKey::Backspace)),
    ("BS", named(NamedKey::Backspace)),
    ("Insert", named(NamedKey::Insert)),
    ("Ins", named(NamedKey::Insert)),
    ("IC", named(NamedKey::Insert)),
    ("Delete", named(NamedKey::Delete)),
    ("Del", named(NamedKey::Delete)),
    ("DC", named(NamedKey::Delete)),
    ("Home", named(NamedKey::Home)),
    ("End", named(NamedKey::End)),
    ("PageUp", named(NamedKey::PageUp)),
    ("PgUp", named(NamedKey::PageUp)),
    ("PPage", named(NamedKey::PageUp)),
    ("PageDown", named(NamedKey::PageDown)),
    ("PgDn", named(NamedKey::PageDown)),
    ("PgDown", named(NamedKey::PageDown)),
    ("NPage", named(NamedKey::PageDown)),
    ("Up", named(NamedKey::Up)),
    ("Down", named(NamedKey::Down)),
    ("Left", named(NamedKey::Left)),
    ("Right", named(NamedKey::Right)),
    ("ArrowUp", named(NamedKey::Up)),
    ("ArrowDown", named(NamedKey::Down)),
    ("ArrowLeft", named(NamedKey::Left)),
    ("ArrowRight", named(NamedKey::Right)),
    ("F1", function(1)),
    ("F2", function(2)),
    ("F3", function(3)),
    ("F4", function(4)),
    ("F5", function(5)),
    ("F6", function(6)),
    ("F7", function(7)),
    ("F8", function(8)),
    ("F9", function(9)),
    ("F10", function(10)),
    ("F11", function(11)),
    ("F12", function(12)),
    ("F13", function(13)),
    ("F14", function(14)),
    ("F15", function(15)),
    ("F16", function(16)),
    ("F17", function(17)),
    ("F18", function(18)),
    ("F19", function(19)),
    ("F20", function(20)),
    ("KP0", keypad(b'0')),
    ("KP1", keypad(b'1')),
    ("KP2", keypad(b'2')),
    ("KP3", keypad(b'3')),
    ("KP4", keypad(b'4')),
    ("KP5", keypad(b'5')),
    ("KP6", keypad(b'6')),
    ("KP7", keypad(b'7')),
    ("KP8", keypad(b'8')),
    ("KP9", keypad(b'9')),
    ("KP.", keypad(b'.')),
    ("KP/", keypad(b'/')),
    ("KP*", keypad(b'*')),
    ("KP-", keypad(b'-')),
    ("KP+", keypad(b'+')),
    ("KPDecimal", keypad(b'.')),
    ("KPDivide", keypad(b'/')),
    ("KPMultiply", keypad(b'*')),
    ("KPSubtract", keypad(b'-')),
    ("KPAdd", keypad(b'+')),
    ("KPEnter", keypad(b'\r')),
];

/// The names of modifiers.
pub const MODIFIERS: [(&str, Modifiers); 6] = [
    ("ctrl", Modifiers::CTRL),
    ("control", Modifiers::CTRL),
    ("alt", Modifiers::ALT),
    ("meta", Modifiers::ALT),
    ("option", Modifiers::ALT),
    ("shift", Modifiers::SHIFT),
];

/// The most suggestions for a misspelt name.
const NEAREST_MAX: usize = 3;

const fn named(key: NamedKey) -> Key {
    Key { code: KeyCode::Named(key), modifiers: Modifiers::NONE }
}

const fn function(number: u8) -> Key {
    named(NamedKey::Function(FunctionKey(number)))
}

const fn keypad(legend: u8) -> Key {
    named(NamedKey::Keypad(KeypadKey(legend)))
}

/// The key with this name, or the key that types this one character.
pub fn lookup(name: &str) -> Option<Key> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Key::character(character, Modifiers::NONE).ok();
    }
    let same = |spelling: &str| {
        let plain = name.bytes().filter(|byte| *byte != b'_');
        plain
            .map(|byte| byte.to_ascii_lowercase())
            .eq(spelling.bytes().map(|byte| byte.to_ascii_lowercase()))
    };
    NAMES.iter().find(|(spelling, _)| same(spelling)).map(|(_, key)| *key)
}

/// Names similar to this word, the nearest first; empty when there are none.
pub fn nearest(word: &str) -> Vec<&'static str> {
    nearest_of(word, NAMES.iter().map(|(name, _)| *name), NEAREST_MAX)
}

/// Modifier names similar to this word, the nearest first.
pub fn nearest_modifier(word: &str) -> Vec<&'static str> {
    nearest_of(word, MODIFIERS.iter().map(|(name, _)| *name), NEAREST_MAX)
}

/// The names of the key that sends this control character.
pub fn of_control(character: char) -> Vec<&'static str> {
    match character {
        '\r' | '\n' => vec!["Enter"],
        '\t' => vec!["Tab"],
        '\x1b' => vec!["Escape"],
        '\x08' | '\x7f' => vec!["BSpace"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_stands_for_two_keys() {
        for (name, key) in NAMES {
            assert_eq!(lookup(name), Some(key), "{name}");
            assert_eq!(lookup(&name.to_lowercase()), Some(key), "{name}");
            assert_eq!(lookup(&name.to_uppercase()), Some(key), "{name}");
        }
    }
}
