//! Parses key lists such as `C-c`, `ctrl+c`, `^C`, `Enter`, `:`, separated by blanks.
//!
//! An unknown word is an error and never typed, because a typo must not become input.

use crate::core::keys::{KEYS_MAX, Key, KeyError, Modifiers, names};

/// Parses key names separated by blanks.
///
/// A word is modifiers and a key. Modifiers are `C-` `M-` `S-` as in tmux, `ctrl+` `alt+` `shift+` (or
/// with `-`), or a leading `^` for ctrl. A key is one of [`names::NAMES`] or a single character. Names
/// and modifiers ignore case, single characters do not.
///
/// Errors: the first unknown word, an empty list, more than [`KEYS_MAX`] keys.
pub fn parse_keys(text: &str) -> Result<Vec<Key>, KeyError> {
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
    if let Some(key) = names::lookup(rest) {
        return Ok(Key { code: key.code, modifiers: key.modifiers.with(held) });
    }
    let nearest = match rest.split_once(['+', '-']) {
        Some((head, tail)) if names::lookup(tail).is_some() => names::nearest_modifier(head),
        Some(_) | None => names::nearest(rest),
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
        let named = names::MODIFIERS.iter().find(|(name, _)| head.eq_ignore_ascii_case(name));
        named.map(|(_, modifier)| *modifier)
    };
    by_letter().or_else(by_word).map(|modifier| (modifier, rest))
}

#[cfg(test)]
mod tests;
