//! The output of a command as text: all that is kept, in pieces that fit one answer.
//!
//! While the command runs, a reader can follow it line by line.

use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::CommandRecord;
use crate::surface::answer::budget::{cut, escaped_bytes};
use crate::surface::answer::excerpt::LINE_END_BYTES;
use crate::wire::command::OutputFacts;
use crate::wire::session::GapWire;

/// A piece of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputPiece {
    /// Its lines, each with a line end. A line that is too long is cut.
    pub(super) text: String,
    /// The number of the first line of the next piece.
    pub(super) next_line: u64,
    /// The number of existing lines after this piece.
    pub(super) lines_left_out: u64,
    /// The number of lines that were asked for and are no longer kept.
    pub(super) lines_trimmed: u64,
}

impl OutputPiece {
    /// The lines before line `end`, from line `from` on, within `room` bytes of JSON, but at least one.
    pub(super) fn between(output: &Output, (from, end): (u64, u64), room: usize) -> Self {
        let first = from.max(output.lines_trimmed());
        let (mut text, mut bytes, mut next_line) = (String::new(), 0, first);
        let lines = output.text_from(first);
        for line in lines.lines().take(end.saturating_sub(first) as usize) {
            bytes += escaped_bytes(line) + LINE_END_BYTES;
            if bytes > room && next_line > first {
                break;
            }
            text.push_str(&cut(line, room));
            text.push('\n');
            next_line += 1;
        }
        let lines_left_out = end.saturating_sub(next_line);
        Self { text, next_line, lines_left_out, lines_trimmed: first - from }
    }

    /// The metadata of the piece.
    pub(super) fn facts(&self, record: &CommandRecord, lost_output: Vec<GapWire>) -> OutputFacts {
        OutputFacts {
            status: record.into(),
            exit_code: record.finish.and_then(|finish| finish.code),
            next_line: self.next_line,
            lines_left_out: self.lines_left_out,
            lines_trimmed: self.lines_trimmed,
            lost_output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes one answer has.
    const ROOM: usize = 20_000;

    fn numbers(count: u64) -> Output {
        let mut output = Output::default();
        (0..count).for_each(|number| output.append(&format!("{number}\n")));
        output
    }

    #[test]
    fn an_output_that_is_too_large_is_read_in_pieces() {
        let output = numbers(9_000);
        let (mut from, mut read) = (0, String::new());
        loop {
            let piece = OutputPiece::between(&output, (from, 9_000), ROOM);
            assert!(escaped_bytes(&piece.text) <= ROOM);
            assert_eq!(piece.next_line + piece.lines_left_out, 9_000);
            read.push_str(&piece.text);
            from = piece.next_line;
            if piece.lines_left_out == 0 {
                break;
            }
        }
        assert_eq!(read, output.text());
        let none = OutputPiece::between(&output, (9_000, 9_000), ROOM);
        assert_eq!((none.text.as_str(), none.next_line, none.lines_left_out), ("", 9_000, 0));
    }

    #[test]
    fn lines_that_are_gone_are_counted_once() {
        let mut output = numbers(9_000);
        output.trim(10_000);
        let trimmed = output.lines_trimmed();
        let piece = OutputPiece::between(&output, (100, 9_000), ROOM);
        assert_eq!(piece.lines_trimmed, trimmed - 100);
        assert!(piece.text.starts_with(&format!("{trimmed}\n")));
        let next = OutputPiece::between(&output, (piece.next_line, 9_000), ROOM);
        assert_eq!(next.lines_trimmed, 0);
    }

    #[test]
    fn a_line_without_room_is_cut_and_not_left_out() {
        let mut output = Output::default();
        output.append(&("x".repeat(50_000) + "\nafter\n"));
        let piece = OutputPiece::between(&output, (0, 2), ROOM);
        assert!(piece.text.ends_with("x[… 30000 more bytes of this line]\n"));
        assert_eq!((piece.next_line, piece.lines_left_out), (1, 1));
    }
}
