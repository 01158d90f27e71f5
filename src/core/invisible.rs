//! Characters that nobody sees: they could hide words in a text from people and show them to models.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Below this character there is none.
const FIRST: char = '\u{ad}';

/// Whether a character takes no place and shows nothing: formats, joiners, reading orders, tags and selectors.
///
/// These are the characters with Unicode's property `Default_Ignorable_Code_Point`, as far as terminals give them no
/// width. The selectors of text and emoji style (U+FE0E, U+FE0F) show, so they stay.
pub fn is_invisible(character: char) -> bool {
    if character < FIRST {
        return false;
    }
    let ignorable = matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    ignorable && character.width().is_none_or(|width| width == 0)
}

/// The text with the characters that nobody sees written out, such as `\u{200b}`.
pub fn with_invisible_shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_invisible(character) {
            true => shown.extend(character.escape_unicode()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_found() {
        for (name, text) in [
            ("tags", "a\u{e0068}\u{e0069}\u{e007f}b"),
            ("reading orders", "a\u{202e}\u{2066}\u{200f}b"),
            ("joiners and spaces without width", "a\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}b"),
            ("selectors of variants", "a\u{fe00}\u{e0100}\u{e01ef}b"),
        ] {
            let seen: String = text.chars().filter(|it| !is_invisible(*it)).collect();
            assert_eq!(seen, "ab", "{name}");
        }
    }

    #[test]
    fn what_shows_stays() {
        for text in ["plain", "naïve e\u{301}", "❤\u{fe0f}", "日本語", "नमस्ते", "שלום"]
        {
            assert_eq!(with_invisible_shown(text), text);
        }
    }

    #[test]
    fn what_nobody_sees_can_be_written_out() {
        assert_eq!(with_invisible_shown("a\u{e0068}\nb\u{202e}"), "a\\u{e0068}\nb\\u{202e}");
    }
}
