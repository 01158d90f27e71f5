//! Shifted characters on the US keyboard, which every terminal protocol assumes.
//!
//! Callers name characters and programs get keys; the layout maps one to the other.

/// ASCII characters whose shifted form is not their capital, each with its shifted form.
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

/// The character that this character's key types with Shift.
pub fn shifted(character: char) -> char {
    let pair = PAIRS.iter().find(|(plain, _)| *plain == character);
    pair.map_or_else(|| only(character.to_uppercase(), character), |(_, shifted)| *shifted)
}

/// The character that this character's key types without Shift.
pub fn unshifted(character: char) -> char {
    let pair = PAIRS.iter().find(|(_, shifted)| *shifted == character);
    pair.map_or_else(|| only(character.to_lowercase(), character), |(plain, _)| *plain)
}

/// The single character after a change of case; the original when there are several.
fn only(mut changed: impl Iterator<Item = char>, original: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(single), None) => single,
        (Some(_) | None, _) => original,
    }
}
