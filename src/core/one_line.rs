//! Puts untrusted text on one line, so that a command, a directory or a row cannot forge other lines.

use std::borrow::Cow;

use crate::core::invisible::{shows_nothing, written_out};

/// Escapes whatever could end a line or control a terminal: `\n`, `\u{1b}`.
///
/// Backslashes stay single, so the result is for display and cannot be parsed back.
pub fn one_line(text: &str) -> Cow<'_, str> {
    written_out(text, is_unfit)
}

/// The same for somebody who decides by the text: whatever shows nothing, or is blank and no ordinary blank, is written out.
pub fn line_to_decide_by(text: &str) -> Cow<'_, str> {
    written_out(text, |character| is_unfit(character) || shows_nothing(character))
}

/// Whether it is a control character, or a line or paragraph separator.
fn is_unfit(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
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
    fn who_decides_sees_every_blank_that_parts_no_words() {
        let text = "rm\u{a0}-rf a\u{2800}❤\u{fe0f}\n";
        assert_eq!(line_to_decide_by(text), r"rm\u{a0}-rf a\u{2800}❤\u{fe0f}\n");
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let text = r"printf 'ä\n' 漢 e´";
        assert!(matches!(one_line(text), Cow::Borrowed(same) if same == text));
    }
}
