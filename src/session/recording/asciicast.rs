//! The lines of an asciicast v3 file: a header, then events with the time since the one before, and comments.
//!
//! Comments that begin with [`STATE`] say up to where the lines before them record the output, so that a recording
//! can be continued. Players skip them.

use std::io::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::core::frame::{Exit, Size};

/// How a comment begins that has a [`RecordingState`].
pub const STATE: &str = "# termgate ";

/// What happened, as an event of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastEvent {
    Output(String),
    Resize(Size),
    Marker(String),
    /// The exit code of the program; 128 and its number for a signal.
    Exit(i32),
}

/// What a recording says of itself at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastHeader {
    pub size: Size,
    /// Seconds since 1970.
    pub timestamp: u64,
    pub title: String,
    pub command: String,
}

/// Where a recording stands after the lines before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingState {
    /// All output before this offset was taken: it is in the lines before, or in `held`.
    pub offset: u64,
    /// The beginning of a character that is not complete yet, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub held: String,
    /// The time of the last event, in milliseconds since boot.
    pub at_ms: u64,
    pub rows: u16,
    pub cols: u16,
    /// Nothing follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

impl CastHeader {
    pub fn line(&self) -> String {
        let Self { size, timestamp, title, command } = self;
        let term = json!({"cols": size.cols, "rows": size.rows, "type": "xterm-256color"});
        let header = json!({
            "version": 3, "term": term, "timestamp": timestamp, "title": title,
            "command": command,
        });
        format!("{header}\n")
    }
}

impl CastEvent {
    /// The exit code that stands for how a program ended, if that is known.
    pub fn exit(exit: Exit) -> Option<Self> {
        match exit {
            Exit::Code(code) => Some(Self::Exit(code)),
            Exit::Signal(signal) => Some(Self::Exit(128 + signal)),
            Exit::Unknown | Exit::Lost => None,
        }
    }

    /// Appends the line of the event, which comes so many milliseconds after the one before.
    pub fn write(&self, out: &mut Vec<u8>, after_ms: u64) {
        let (seconds, millis) = (after_ms / 1_000, after_ms % 1_000);
        let (code, data) = match self {
            Self::Output(text) => ('o', json!(text)),
            Self::Resize(size) => ('r', json!(format!("{}x{}", size.cols, size.rows))),
            Self::Marker(text) => ('m', json!(text)),
            Self::Exit(code) => ('x', json!(code.to_string())),
        };
        // Memory takes all that is written to it.
        let _ = writeln!(out, r#"[{seconds}.{millis:03}, "{code}", {data}]"#);
    }
}

impl RecordingState {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(STATE.as_bytes());
        // Memory takes all that is written to it.
        let _ = serde_json::to_writer(&mut *out, self);
        out.push(b'\n');
    }

    /// Reads a comment, without its line end. `None` for any other line.
    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line.strip_prefix(STATE.as_bytes())?).ok()
    }

    pub fn held_bytes(&self) -> Vec<u8> {
        let digits = self.held.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        digits.filter_map(byte).take(CHARACTER_BYTES - 1).collect()
    }
}

/// The most bytes of a character.
const CHARACTER_BYTES: usize = 4;

/// Makes text of bytes that may end in the middle of a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitText {
    /// The beginning of a character.
    held: Vec<u8>,
}

impl SplitText {
    pub fn holding(held: Vec<u8>) -> Self {
        Self { held }
    }

    /// The beginning of a character that is not complete, in hexadecimal digits.
    pub fn held(&self) -> String {
        self.held.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Appends the text of these bytes, with a replacement character for each sequence that is no character, and
    /// holds back the beginning of a character at their end.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.held.is_empty() {
            return self.push_whole(bytes, text);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(bytes);
        self.push_whole(&joined, text);
    }

    fn push_whole(&mut self, bytes: &[u8], text: &mut String) {
        let mut rest = bytes.utf8_chunks().peekable();
        while let Some(chunk) = rest.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if rest.peek().is_none() && is_beginning(invalid) {
                self.held = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

/// Whether more bytes can make a character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    let wrong = str::from_utf8(bytes).err();
    wrong.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(pieces: &[&[u8]]) -> (String, String) {
        let (mut split, mut text) = (SplitText::default(), String::new());
        pieces.iter().for_each(|piece| split.push(piece, &mut text));
        (text, split.held())
    }

    #[test]
    fn a_character_that_is_split_is_held_back_until_it_is_complete() {
        assert_eq!(text_of(&[b"a\xe6"]), ("a".to_owned(), "e6".to_owned()));
        assert_eq!(text_of(&[b"a\xe6", b"\xbc", b"\xa2b"]), ("a漢b".to_owned(), String::new()));
        assert_eq!(text_of(&[b"\xf0\x9f", b"\x98\x80"]), ("😀".to_owned(), String::new()));
    }

    #[test]
    fn bytes_that_are_no_character_become_one_replacement_each() {
        assert_eq!(text_of(&[b"a\xffb\xe6c"]), ("a\u{fffd}b\u{fffd}c".to_owned(), String::new()));
        assert_eq!(text_of(&[b"\xe6", b"x"]), ("\u{fffd}x".to_owned(), String::new()));
        assert_eq!(text_of(&[b"\xff"]), ("\u{fffd}".to_owned(), String::new()));
    }

    #[test]
    fn events_are_lines_of_the_format() {
        let mut out = Vec::new();
        CastEvent::Output("a\x1b[m\"\r\n".to_owned()).write(&mut out, 1_050);
        CastEvent::Resize(Size { rows: 24, cols: 80 }).write(&mut out, 0);
        CastEvent::Marker("$ ls".to_owned()).write(&mut out, 7);
        CastEvent::Exit(3).write(&mut out, 60_000);
        let expected = [
            r#"[1.050, "o", "a\u001b[m\"\r\n"]"#,
            r#"[0.000, "r", "80x24"]"#,
            r#"[0.007, "m", "$ ls"]"#,
            r#"[60.000, "x", "3"]"#,
        ];
        assert_eq!(String::from_utf8(out).unwrap().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_state_is_a_comment_that_reads_back() {
        let state = RecordingState {
            offset: 12,
            held: "e6bc".to_owned(),
            at_ms: 5,
            rows: 24,
            cols: 80,
            is_over: false,
        };
        let mut out = Vec::new();
        state.write(&mut out);
        let line = out.strip_suffix(b"\n").unwrap();
        assert!(line.starts_with(b"#"));
        assert_eq!(RecordingState::read(line), Some(state.clone()));
        assert_eq!(state.held_bytes(), b"\xe6\xbc");
        assert_eq!(RecordingState::read(b"# something else"), None);
        assert_eq!(RecordingState::read(br#"[1.0, "o", "x"]"#), None);
    }
}
