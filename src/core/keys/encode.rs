//! The bytes of a key press, as xterm sends them. The sibling module encodes the kitty protocol.
//!
//! References: xterm's control sequences, "PC-Style Function Keys" and "VT220-Style Function Keys"; the
//! VT100 user guide, chapter 3, for control characters and the keypad.

use crate::core::keys::modes::InputModes;
use crate::core::keys::{
    DELETE, ESCAPE, FunctionKey, Key, KeyCode, KeypadKey, Modifiers, NamedKey, Piece, kitty,
};

/// The bytes of each key, one [`Piece::Key`] per key.
///
/// xterm's rules apply to combinations without bytes of their own: it drops the modifiers that it
/// cannot express. `C-1` types `1`, `C-Enter` is Enter.
pub fn encode_keys(keys: &[Key], modes: &InputModes) -> Vec<Piece> {
    keys.iter().map(|key| Piece::Key(encode_key(*key, modes))).collect()
}

fn encode_key(key: Key, modes: &InputModes) -> Vec<u8> {
    if kitty::replaces_legacy(modes.kitty_flags) {
        return kitty::encode(key, modes.kitty_flags);
    }
    match key.code {
        KeyCode::Char(character) => encode_char(character, key.modifiers),
        KeyCode::Named(named) => encode_named(named, key.modifiers, modes),
    }
}

fn encode_char(character: char, held: Modifiers) -> Vec<u8> {
    let typed = if held.shift { kitty::shifted(character) } else { character };
    let typed = if held.ctrl { control(typed) } else { typed };
    let mut bytes = meta(held);
    bytes.extend_from_slice(typed.encode_utf8(&mut [0; 4]).as_bytes());
    bytes
}

/// The control character of a character with Ctrl; other characters stay as they are.
fn control(character: char) -> char {
    let byte = u8::try_from(character).unwrap_or_default();
    let controlled = match byte {
        b'@'..=b'~' => byte & 0x1f,
        b' ' | b'2' => 0,
        b'3'..=b'7' => byte - b'3' + ESCAPE,
        b'8' | b'?' => DELETE,
        b'/' => 0x1f,
        _ => return character,
    };
    char::from(controlled)
}

fn encode_named(key: NamedKey, held: Modifiers, modes: &InputModes) -> Vec<u8> {
    match key {
        NamedKey::Enter if modes.line_feed_new_line => after_meta(held, b"\r\n"),
        NamedKey::Enter => after_meta(held, b"\r"),
        NamedKey::Escape => after_meta(held, &[ESCAPE]),
        NamedKey::Tab if held.shift => after_meta(held, b"\x1b[Z"),
        NamedKey::Tab => after_meta(held, b"\t"),
        NamedKey::Backspace if held.ctrl => after_meta(held, b"\x08"),
        NamedKey::Backspace => after_meta(held, &[DELETE]),
        NamedKey::Up => cursor('A', held, modes),
        NamedKey::Down => cursor('B', held, modes),
        NamedKey::Right => cursor('C', held, modes),
        NamedKey::Left => cursor('D', held, modes),
        NamedKey::Home => cursor('H', held, modes),
        NamedKey::End => cursor('F', held, modes),
        NamedKey::Insert => tilde(2, held),
        NamedKey::Delete => tilde(3, held),
        NamedKey::PageUp => tilde(5, held),
        NamedKey::PageDown => tilde(6, held),
        NamedKey::Function(function) => encode_function(function, held),
        NamedKey::Keypad(keypad) => encode_keypad(keypad, held, modes),
    }
}

fn encode_function(key: FunctionKey, held: Modifiers) -> Vec<u8> {
    match key.pf_letter() {
        Some(letter) if held == Modifiers::NONE => format!("\x1bO{letter}").into_bytes(),
        Some(letter) => modified(letter, held),
        None => tilde(key.tilde_number(), held),
    }
}

fn encode_keypad(key: KeypadKey, held: Modifiers, modes: &InputModes) -> Vec<u8> {
    // DECKPAM encodes every key of the pad as the character 0x40 above its legend.
    if modes.application_keypad {
        return after_meta(held, &[ESCAPE, b'O', key.legend() + 0x40]);
    }
    match key.legend() {
        b'\r' => encode_named(NamedKey::Enter, held, modes),
        legend => after_meta(held, &[legend]),
    }
}

fn cursor(letter: char, held: Modifiers, modes: &InputModes) -> Vec<u8> {
    match held {
        Modifiers::NONE if modes.application_cursor => format!("\x1bO{letter}").into_bytes(),
        Modifiers::NONE => format!("\x1b[{letter}").into_bytes(),
        held => modified(letter, held),
    }
}

fn modified(letter: char, held: Modifiers) -> Vec<u8> {
    format!("\x1b[1;{}{letter}", held.parameter()).into_bytes()
}

fn tilde(number: u8, held: Modifiers) -> Vec<u8> {
    match held {
        Modifiers::NONE => format!("\x1b[{number}~").into_bytes(),
        held => format!("\x1b[{number};{}~", held.parameter()).into_bytes(),
    }
}

fn after_meta(held: Modifiers, bytes: &[u8]) -> Vec<u8> {
    let mut prefixed = meta(held);
    prefixed.extend_from_slice(bytes);
    prefixed
}

fn meta(held: Modifiers) -> Vec<u8> {
    if held.alt { vec![ESCAPE] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
