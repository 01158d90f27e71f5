//! How much room an answer has on the wire, and texts cut to what there is.
//!
//! Bytes are counted as JSON has them, since what a program wrote may be nothing but quotes.

use std::io;

use serde::Serialize;

/// How many bytes a result has that was not asked to be large: what models and programs read of it
/// together, as JSON.
pub const RESULT_BYTES_MAX: usize = 30_000;

/// How many of those are kept free for what stands around every result, and for a warning.
const AROUND_BYTES: usize = 1_500;

/// How many bytes of the long texts of a session or a command are told, as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextBounds {
    pub title: usize,
    pub command: usize,
    pub cwd: usize,
}

/// What each session or command of a list has: twenty of them fit into one result, whatever they show.
pub const IN_LIST: TextBounds = TextBounds { title: 160, command: 240, cwd: 160 };

/// How many bytes a text takes in JSON, without its quotes.
pub fn escaped_bytes(text: &str) -> usize {
    text.bytes().map(escaped_byte).sum()
}

/// The beginning of a text that takes so many bytes in JSON at most.
pub fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    let end = text.char_indices().find(|(_, character)| {
        bytes += escaped(*character);
        bytes > bytes_max
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// The text, or its beginning and a sign that there is more.
pub fn abridged(text: &str, bytes_max: usize) -> String {
    let told = beginning(text, bytes_max);
    if told.len() == text.len() { text.to_owned() } else { format!("{told}…") }
}

/// The text, or its beginning and its end in about so many bytes, saying how much is missing between
/// them.
pub fn ends(text: &str, bytes_max: usize) -> String {
    if escaped_bytes(text) <= bytes_max {
        return text.to_owned();
    }
    let head = beginning(text, bytes_max / 2);
    let tail = ending(&text[head.len()..], bytes_max / 2);
    let left = text.len() - head.len() - tail.len();
    format!("{head}[… {left} more bytes …]{tail}")
}

/// The end of a text that takes so many bytes in JSON at most.
fn ending(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    let told = text.char_indices().rev().take_while(|(_, character)| {
        bytes += escaped(*character);
        bytes <= bytes_max
    });
    told.last().map_or("", |(start, _)| &text[start..])
}

/// A line that one answer has room for, saying how much of it is missing.
pub fn cut(line: &str, bytes_max: usize) -> String {
    let told = beginning(line, bytes_max);
    match line.len() - told.len() {
        0 => line.to_owned(),
        left => format!("{told}[… {left} more bytes of this line]"),
    }
}

/// How many bytes a result has left beside this for programs and this for models.
pub fn room_left(result: &impl Serialize, text: &str) -> usize {
    let taken = AROUND_BYTES + json_bytes(result) + escaped_bytes(text);
    RESULT_BYTES_MAX.saturating_sub(taken)
}

/// How many of some things fit, and the bytes they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    pub count: usize,
    pub bytes: usize,
}

/// How many of the first of these sizes fit into so much room.
pub fn fitting(costs: impl Iterator<Item = usize>, room: usize) -> Fitting {
    let mut fitting = Fitting { count: 0, bytes: 0 };
    for cost in costs {
        if fitting.bytes + cost > room {
            break;
        }
        fitting = Fitting { count: fitting.count + 1, bytes: fitting.bytes + cost };
    }
    fitting
}

/// How many bytes a value takes as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counted = ByteCount(0);
    // What goes onto the wire always serializes.
    serde_json::to_writer(&mut counted, value).map_or(0, |()| counted.0)
}

/// Counts what is written to it.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn escaped(character: char) -> usize {
    u8::try_from(character).ok().filter(u8::is_ascii).map_or(character.len_utf8(), escaped_byte)
}

/// How many bytes this byte of a text takes in JSON. Those of characters beyond ASCII stay as they are.
fn escaped_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_json_makes_it() {
        for text in ["", "plain", "a\"b\\c\n", "ä漢\u{7f}\u{1}\u{1b}\u{8}", "\r\t\u{c}\u{2028}"] {
            assert_eq!(escaped_bytes(text) + 2, json_bytes(&text), "{text:?}");
        }
    }

    #[test]
    fn a_beginning_ends_between_characters_and_before_there_is_too_much() {
        assert_eq!(beginning("abc", 3), "abc");
        assert_eq!(beginning("äöü", 3), "ä");
        assert_eq!(beginning("\"\"\"", 5), "\"\"");
        assert_eq!(beginning("\u{1}a", 5), "");
    }

    #[test]
    fn of_a_text_that_is_too_long_both_ends_are_told_and_how_much_is_missing() {
        assert_eq!(ends("abcdef", 6), "abcdef");
        assert_eq!(ends("abcdefg", 4), "ab[… 3 more bytes …]fg");
        assert_eq!(ends("äbcdö", 4), "ä[… 3 more bytes …]ö");
        assert_eq!(ends("\"\"\"\"", 4), "\"[… 2 more bytes …]\"");
        assert_eq!(ends("\u{1}\u{1}", 4), "[… 2 more bytes …]");
    }

    #[test]
    fn a_line_that_was_cut_says_how_much_is_missing() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äöü", 4), "äö[… 2 more bytes of this line]");
    }
}
