//! Texts of others on one line: a command, a directory or a row cannot forge lines of its own.

use std::borrow::Cow;

/// The text with whatever could end a line, or command a terminal, written out: `\n`, `\u{1b}`.
///
/// A backslash stands for itself, so that it is for reading and is not read back.
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

/// Control characters, the separators of lines and paragraphs, and what reverses the order of reading
/// (Unicode's property `Bidi_Control`).
fn is_unfit(character: char) -> bool {
    let separates = matches!(character, '\u{2028}' | '\u{2029}');
    let reorders = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || separates || reorders
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
