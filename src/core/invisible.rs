//! Characters that nobody sees: they could hide words in a text from people and show them to models.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Below this character there is none.
const FIRST: char = '\u{ad}';

/// Whether a character takes no place and shows nothing: formats, reading orders, tags and selectors.
///
/// These are the characters with Unicode's property `Default_Ignorable_Code_Point`, as far as terminals give them no
/// width. The selectors of text and emoji style (U+FE0E, U+FE0F) show, so they stay. So does a single joiner (U+200C,
/// U+200D) `after` a character that is not ASCII: it shapes scripts and makes one emoji of several.
pub fn is_invisible(after: Option<char>, character: char) -> bool {
    if character < FIRST {
        return false;
    }
    if is_joiner(character) {
        return after.is_none_or(|after| after < FIRST || is_joiner(after));
    }
    is_ignorable(character) && character.width().is_none_or(|width| width == 0)
}

/// Whether a character shows nothing, or a blank that is no ordinary one, in whatever terminal: who decides by a text must not
/// take it for nothing, nor for a blank that parts words.
pub fn shows_nothing(character: char) -> bool {
    const BLANK: [char; 4] = ['\u{2800}', '\u{1d159}', '\u{fe0e}', '\u{fe0f}'];
    let is_blank = character.is_whitespace() && character != ' ';
    is_blank || BLANK.contains(&character) || is_joiner(character) || is_ignorable(character)
}

fn is_ignorable(character: char) -> bool {
    matches!(
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
    )
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// The characters of a text, each with whether nobody sees it.
pub fn seen(text: &str) -> impl Iterator<Item = (char, bool)> {
    text.chars().scan(None, |before, character| {
        let is_invisible = is_invisible(*before, character);
        if !is_invisible {
            *before = Some(character);
        }
        Some((character, is_invisible))
    })
}

/// The text with the characters that nobody sees written out, such as `\u{200b}`.
pub fn with_invisible_shown(text: &str) -> Cow<'_, str> {
    written_out(text, |_| false)
}

/// The text with the characters written out that nobody sees, and those that are unfit.
///
/// What is written out is ASCII, so a joiner behind it joins nothing and is written out as well.
pub fn written_out(text: &str, is_unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_shown = |before, character| !is_invisible(before, character) && !is_unfit(character);
    let mut before = None;
    if text.chars().all(|character| is_shown(before.replace(character), character)) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_shown(written.chars().next_back(), character) {
            written.push(character);
        } else {
            written.extend(character.escape_default());
        }
    }
    Cow::Owned(written)
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
            let shown = seen(text).filter(|(_, is_invisible)| !is_invisible);
            let shown: String = shown.map(|(character, _)| character).collect();
            assert_eq!(shown, "ab", "{name}");
        }
    }

    #[test]
    fn what_shows_stays() {
        for text in [
            "plain",
            "naïve e\u{301}",
            "❤\u{fe0f}",
            "日本語",
            "नमस्ते",
            "שלום",
            "👩\u{200d}👧",
            "می\u{200c}خواهم",
        ] {
            assert_eq!(with_invisible_shown(text), text);
        }
    }

    #[test]
    fn who_decides_sees_all_but_ordinary_blanks() {
        for character in
            "\u{a0}\u{2003}\u{3000}\u{2800}\u{fe0f}\u{200d}\u{3164}\u{ad}\u{1d159}\t".chars()
        {
            assert!(shows_nothing(character), "{character:?}");
        }
        for character in "a é❤漢👩/-".chars() {
            assert!(!shows_nothing(character), "{character:?}");
        }
    }

    #[test]
    fn joiners_join_what_they_can_and_carry_nothing() {
        let text = "é\u{200d}\u{200c}\u{200d}";
        assert_eq!(with_invisible_shown(text), "é\u{200d}\\u{200c}\\u{200d}");
    }

    #[test]
    fn a_joiner_behind_what_is_written_out_is_written_out_as_well() {
        assert_eq!(with_invisible_shown("é\u{200b}\u{200d}"), "é\\u{200b}\\u{200d}");
        assert_eq!(written_out("é\n\u{200d}", char::is_control), "é\\n\\u{200d}");
    }

    #[test]
    fn what_nobody_sees_can_be_written_out() {
        assert_eq!(with_invisible_shown("a\u{e0068}\nb\u{202e}"), "a\\u{e0068}\nb\\u{202e}");
    }
}
