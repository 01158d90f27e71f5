//! Parses key lists such as `C-c`, `ctrl+c`, `^C`, `Enter`, `:`, separated by blanks.
//!
//! An unknown word is an error and never typed, because a typo must not become input.

use crate::core::keys::{
    FunctionKey, KEYS_MAX, Key, KeyCode, KeyError, KeypadKey, Modifiers, NamedKey,
};
use crate::core::nearest::nearest_of;

/// Parses key names separated by blanks.
///
/// A word is modifiers and a key. Modifiers are `C-` `M-` `S-` as in tmux, `ctrl+` `alt+` `shift+` (or
/// with `-`), or a leading `^` for ctrl. A key is one of [`NAMES`] or a single character. Names
/// and modifiers ignore case, single characters do not. A blank alone is the space bar.
///
/// Errors: the first unknown word, an empty list, more than [`KEYS_MAX`] keys.
pub fn parse_keys(text: &str) -> Result<Vec<Key>, KeyError> {
    if text == " " {
        return Ok(vec![parse_key("Space")?]);
    }
    let count = text.split_whitespace().count();
    if count == 0 {
        return Err(KeyError::Empty);
    }
    if count > KEYS_MAX {
        return Err(KeyError::TooMany { count });
    }
    text.split_whitespace().map(parse_key).collect()
}

fn parse_key(word: &str) -> Result<Key, KeyError> {
    let mut held = Modifiers::NONE;
    let mut rest = word;
    if let Some(after) = word.strip_prefix('^').filter(|after| !after.is_empty()) {
        held = Modifiers::CTRL;
        rest = after;
    }
    while let Some((modifier, after)) = split_modifier(rest) {
        held = held.with(modifier);
        rest = after;
    }
    if let Some(key) = lookup(rest) {
        return Ok(Key { code: key.code, modifiers: key.modifiers.with(held) });
    }
    let nearest = match rest.split_once(['+', '-']) {
        Some((head, tail)) if lookup(tail).is_some() => nearest_modifier(head),
        Some(_) | None => nearest(rest),
    };
    Err(KeyError::unknown(word, nearest))
}

/// Takes one modifier from the front of a word, unless the rest is empty.
fn split_modifier(word: &str) -> Option<(Modifiers, &str)> {
    let at = word.find(['-', '+'])?;
    let (head, rest) = (&word[..at], &word[at + 1..]);
    if rest.is_empty() {
        return None;
    }
    let by_letter = || match head {
        "C" | "c" => Some(Modifiers::CTRL),
        "M" | "m" => Some(Modifiers::ALT),
        "S" | "s" => Some(Modifiers::SHIFT),
        _ => None,
    };
    let by_word = || {
        let named = MODIFIERS.iter().find(|(name, _)| head.eq_ignore_ascii_case(name));
        named.map(|(_, modifier)| *modifier)
    };
    by_letter().or_else(by_word).map(|modifier| (modifier, rest))
}

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

pub const MODIFIERS: [(&str, Modifiers); 6] = [
    ("ctrl", Modifiers::CTRL),
    ("control", Modifiers::CTRL),
    ("alt", Modifiers::ALT),
    ("meta", Modifiers::ALT),
    ("option", Modifiers::ALT),
    ("shift", Modifiers::SHIFT),
];

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
mod tests;
