//! Fits texts into rows without cutting a word that would fit.

use crate::core::frame::line::Line;

/// The end of a text that was shortened.
const ELLIPSIS: char = '…';

/// How many columns a text covers.
pub fn columns(text: &str) -> usize {
    Line { text: text.into(), ..Line::default() }.columns().into()
}

/// The text in rows of at most so many columns. Only a word wider than a row is split.
pub fn wrapped(text: &str, cols: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for mut word in text.split_whitespace() {
        while columns(word) > cols {
            let start = beginning(word, cols);
            if start.is_empty() {
                break;
            }
            rows.push(start.to_owned());
            word = &word[start.len()..];
        }
        match rows.last_mut() {
            Some(row) if columns(row) + 1 + columns(word) <= cols => {
                row.push(' ');
                row.push_str(word);
            }
            Some(_) | None => rows.push(word.to_owned()),
        }
    }
    rows
}

/// The text in rows of at most so many columns, with every character of it. Only a character wider than a row takes
/// more.
pub fn broken(text: &str, cols: usize) -> Vec<String> {
    let (mut rows, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = beginning(rest, cols).len().max(first.len_utf8());
        rows.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    rows
}

/// The first words of a text that fit with an ellipsis, or the whole text. Only a first word that is wider
/// is cut.
pub fn shortened(text: &str, cols: usize) -> String {
    if columns(text) <= cols {
        return text.to_owned();
    }
    let room = cols.saturating_sub(1);
    let ends = text.match_indices(' ').map(|(at, _)| text[..at].trim_end_matches([' ', '|']));
    let mut fitting = ends.filter(|start| !start.is_empty() && columns(start) <= room);
    let start = fitting.next_back().unwrap_or_else(|| beginning(text, room));
    format!("{start}{ELLIPSIS}")
}

/// As much of the start of a text as fits.
fn beginning(text: &str, cols: usize) -> &str {
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    let end = ends.take_while(|end| columns(&text[..*end]) <= cols).last();
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_words_and_only_a_word_wider_than_a_row_is_split() {
        assert_eq!(wrapped("take over: keep it", 10), ["take over:", "keep it"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("漢字 a", 3), ["漢", "字", "a"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }

    #[test]
    fn rows_that_are_broken_anywhere_have_every_character() {
        assert_eq!(broken("a  b c", 3), ["a  ", "b c"]);
        assert_eq!(broken("a漢字e\u{301}b", 3), ["a漢", "字e\u{301}", "b"]);
        assert_eq!(broken("漢", 1), ["漢"]);
        assert_eq!(broken("", 9), [""; 0]);
    }

    #[test]
    fn a_shortened_text_ends_in_a_whole_word_and_says_that_it_was_longer() {
        assert_eq!(shortened("free: type", 10), "free: type");
        assert_eq!(shortened("build | free: type", 17), "build | free:…");
        assert_eq!(shortened("build | free: type", 9), "build…");
        assert_eq!(shortened("buildings", 5), "buil…");
        assert_eq!(shortened("", 0), "");
    }
}
