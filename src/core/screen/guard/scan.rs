//! Finds the parts of the stream: text, escapes, and control sequences that need no change.

use crate::core::screen::guard::{CSI_BYTES_MAX, ESCAPE};

/// How many parameters a control sequence may have. The emulator drops one with more.
const PARAMETERS_MAX: usize = 32;

/// The shortest text that is worth an item of its own.
pub(super) const TEXT_MIN: usize = 4;

/// Whether these parameters can be those of a repetition.
pub(super) fn repeats(parameters: &[u8]) -> bool {
    let numbers = 1 + parameters.iter().filter(|byte| matches!(byte, b':' | b';')).count();
    numbers <= PARAMETERS_MAX && parameters.iter().all(|byte| matches!(byte, b'0'..=b';'))
}

pub(super) fn first_number(parameters: &[u8]) -> usize {
    let digits = parameters.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: usize, digit| {
        number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    })
}

/// The length of the text at the start.
pub(super) fn text_length(bytes: &[u8]) -> usize {
    const STRIDE: usize = 32;
    let ends = |byte: &u8| !is_text(*byte);
    let near = bytes.len().min(STRIDE / 2);
    if let Some(at) = bytes[..near].iter().position(ends) {
        return at;
    }
    let mut at = near;
    // The loop over a stride does not exit early, so that the compiler vectorizes it.
    for stride in bytes[near..].chunks(STRIDE) {
        if stride.iter().fold(false, |found, byte| found | ends(byte)) {
            return at + stride.iter().position(ends).unwrap_or(stride.len());
        }
        at += stride.len();
    }
    at
}

/// The number of bytes before the first escape, or before text that is an item of its own.
pub(super) fn find_escape_or_text(bytes: &[u8]) -> usize {
    let mut text = 0;
    for (at, byte) in bytes.iter().enumerate() {
        text = if is_text(*byte) { text + 1 } else { 0 };
        if *byte == ESCAPE {
            return at;
        }
        if text == TEXT_MIN {
            return at + 1 - TEXT_MIN;
        }
    }
    bytes.len()
}

/// The length of the control sequence at the start, if it is whole and one that the guard never changes: with numbers
/// alone, and no repetition.
pub(super) fn harmless_sequence(bytes: &[u8]) -> usize {
    let Some(parameters) = bytes.strip_prefix(b"\x1b[") else { return 0 };
    let most = &parameters[..parameters.len().min(CSI_BYTES_MAX)];
    let numbers = most.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';'));
    match numbers.map(|numbers| (numbers, most[numbers])) {
        Some((numbers, 0x40..=0x7e)) if most[numbers] != b'b' => 2 + numbers + 1,
        Some(_) | None => 0,
    }
}

#[inline]
fn is_text(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}
