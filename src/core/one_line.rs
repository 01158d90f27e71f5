//! Puts untrusted text on one line, so that a command, a directory or a row cannot forge other lines.

use std::borrow::Cow;

use crate::core::invisible::is_invisible;

/// Escapes whatever could end a line or control a terminal: `\n`, `\u{1b}`.
///
/// Backslashes stay single, so the result is for display and cannot be parsed back.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unfit(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    Cow::Owned(line)
}

/// Whether it is a control character, a line or paragraph separator, or changes the reading order
/// (Unicode's property `Bidi_Control`).
fn is_unfit(character: char) -> bool {
    let separates = matches!(character, '\u{2028}' | '\u{2029}');
    let reorders = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || separates || reorders || is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_line_or_commands_a_terminal_is_written_out() {
        assert_eq!(one_line("a\nb\r\n\x1b[2J\u{9b}\u{85}"), r"a\nb\r\n\u{1b}[2J\u{9b}\u{85}");
        assert_eq!(one_line("a\u{2028}b\u{2029}"), r"a\u{2028}b\u{2029}");
        assert_eq!(one_line("a\u{202e}b\u{2069}\u{61c}"), r"a\u{202e}b\u{2069}\u{61c}");
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let text = r"printf 'ä\n' 漢 e´";
        assert!(matches!(one_line(text), Cow::Borrowed(same) if same == text));
    }
}
