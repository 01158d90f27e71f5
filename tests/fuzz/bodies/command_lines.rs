//! Command lines: a line has a bounded number of programs, and what is quoted as one word stays one word.

use termgate::core::command_line::ParsedCommandLine;

/// More calls than any line has.
const CALLS_MAX: usize = 256;

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let line = ParsedCommandLine::parse(text);
    assert!(line.calls.len() <= CALLS_MAX);
    // No text gets out of single quotes.
    if text.contains('\'') || text.chars().any(|it| it.is_control() && it != '\n') {
        return;
    }
    let quoted = ParsedCommandLine::parse(&format!("echo '{text}'"));
    let words = vec!["echo".to_owned(), text.to_owned()];
    if quoted.unknown.is_empty() {
        assert_eq!(quoted, ParsedCommandLine::of_arguments(words), "{text:?}");
    }
}
