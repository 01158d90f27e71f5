//! Shapes of words: one that is made of a real word accepts this word, and so do the rules about it.

use std::path::Path;

use termgate::config::policy::read;
use termgate::core::command_line::{LineWord, ParsedCommandLine, ShapePiece};
use termgate::core::policy::rules::facts::{CallFacts, SessionFacts};
use termgate::core::policy::rules::patterns::Patterns;
use termgate::core::policy::rules::{PolicyRules, RuleEffect};
use termgate::surface::TOOL_NAMES;

use super::choices::Choices;

const DIRECTORY: &str = "/home/ada/project";
/// A pattern has at most 256 bytes, and each of a word may need two.
const WORD_BYTES_MAX: usize = 100;

/// A piece that may stand for this text behind what is before it.
fn piece(before: &str, text: &str, choices: &mut Choices) -> ShapePiece {
    let text = text.to_owned();
    let is_alphanumeric = text.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_branch = text.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    match choices.below(8) {
        0 => ShapePiece::OneOf(vec!["x".to_owned(), text, String::new()]),
        1 if text.bytes().all(|it| it.is_ascii_digit()) => ShapePiece::Digits,
        2 if is_alphanumeric => ShapePiece::Letters,
        3 if !text.is_empty() && !text.contains('/') => ShapePiece::Name,
        // Behind the place where a search begins.
        4 if text.starts_with('/') != before.ends_with('/') => ShapePiece::Path,
        5 if text.is_empty() || is_branch => ShapePiece::Branch,
        6 => ShapePiece::Any,
        _ => ShapePiece::Text(text),
    }
}

/// The pieces of a word, some of them for nothing; none if a part of the path that is computed is `.` or `..`, which no
/// piece stands for.
fn pieces(word: &str, choices: &mut Choices) -> Option<Vec<ShapePiece>> {
    let (mut pieces, mut computed, mut rest) = (Vec::new(), Vec::new(), word);
    while !rest.is_empty() {
        let count = choices.below(6);
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
        let (text, after) = rest.split_at(end);
        let piece = piece(&word[..word.len() - rest.len()], text, choices);
        let is_text = matches!(piece, ShapePiece::Text(_));
        computed.extend(text.bytes().map(|_| !is_text));
        pieces.push(piece);
        rest = after;
    }
    let mut begin = 0;
    for part in word.split('/') {
        let end = begin + part.len();
        if matches!(part, "." | "..") && computed[begin..end].contains(&true) {
            return None;
        }
        begin = end + 1;
    }
    Some(pieces)
}

/// A pattern that matches this text alone.
fn exactly(text: &str) -> String {
    let escaped = |it: char| match it.is_ascii_punctuation() && !"/-_.".contains(it) {
        true => vec!['\\', it],
        false => vec![it],
    };
    text.chars().flat_map(escaped).collect()
}

/// The path of a file below the directory, without `.` and `..`.
fn absolute(file: &str) -> String {
    let whole = if file.starts_with('/') { file.to_owned() } else { format!("{DIRECTORY}/{file}") };
    let mut parts = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What a rule says that asks before this file is written.
fn judged(path: &str, word: LineWord) -> RuleEffect {
    let rule = "[[rule]]\nname = 'a'\neffect = 'ask'";
    let text = format!("{rule}\nwrites = '{}'", exactly(path));
    let mut rules = PolicyRules::default();
    assert_eq!(read(&text, Path::new("policy.toml"), TOOL_NAMES, &mut rules), [], "{text}");
    let line = ParsedCommandLine { targets: vec![word], ..ParsedCommandLine::default() };
    let session = SessionFacts { directory: Some(DIRECTORY.to_owned()), ..Default::default() };
    let call = CallFacts { line: Some(&line), session: Some(session), ..CallFacts::default() };
    rules.judge(&call).effect
}

pub fn check(data: &[u8]) {
    let Ok(word) = str::from_utf8(data) else { return };
    // `~` is a directory of its own, and a pattern is written between quotes.
    let is_other = word.is_empty() || word.starts_with('~') || word.contains('\'');
    if is_other || word.len() > WORD_BYTES_MAX || word.chars().any(char::is_control) {
        return;
    }
    let mut choices = Choices::of(data);
    let Some(pieces) = pieces(word, &mut choices) else { return };
    let shape = LineWord::of_pieces(pieces);
    let told = format!("{word:?}: {shape:?}");
    assert!(!word.starts_with('-') || shape.may_be_flag(), "{told}");
    match &shape {
        LineWord::Known(text) => assert_eq!(text, word),
        LineWord::Computed(shape) => {
            let pattern = Patterns::new(vec![exactly(word)]).unwrap();
            assert!(pattern.matches(word) && pattern.may_match(shape.pieces()), "{told}");
        }
    }
    assert!(judged(&absolute(word), shape) > RuleEffect::Allow, "{told}");
}
