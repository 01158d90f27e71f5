//! What Shift makes of a character, on the keyboard that every terminal protocol assumes (US).
//!
//! It knows nothing of bytes. Callers name characters, programs are told keys; a layout is the only
//! way from one to the other.

/// The ASCII characters whose shifted form is not their capital, each before its shifted one.
const PAIRS: [(char, char); 21] = [
    ('`', '~'),
    ('1', '!'),
    ('2', '@'),
    ('3', '#'),
    ('4', '$'),
    ('5', '%'),
    ('6', '^'),
    ('7', '&'),
    ('8', '*'),
    ('9', '('),
    ('0', ')'),
    ('-', '_'),
    ('=', '+'),
    ('[', '{'),
    (']', '}'),
    ('\\', '|'),
    (';', ':'),
    ('\'', '"'),
    (',', '<'),
    ('.', '>'),
    ('/', '?'),
];

/// What the key of this character types while Shift is held.
pub fn shifted(character: char) -> char {
    let pair = PAIRS.iter().find(|(plain, _)| *plain == character);
    pair.map_or_else(|| only(character.to_uppercase(), character), |(_, shifted)| *shifted)
}

/// What the key of this character types without Shift.
pub fn unshifted(character: char) -> char {
    let pair = PAIRS.iter().find(|(_, shifted)| *shifted == character);
    pair.map_or_else(|| only(character.to_lowercase(), character), |(plain, _)| *plain)
}

/// The one character that a change of case gives; the original when it gives several.
fn only(mut changed: impl Iterator<Item = char>, original: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(single), None) => single,
        (Some(_) | None, _) => original,
    }
}
