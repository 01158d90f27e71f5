//! The parser of shell text, which panics on some texts: those count as not understood.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::Program;
use brush_parser::word::{WordPieceWithSource, parse, parse_heredoc};
use brush_parser::{Parser, ParserOptions};

/// The commands of a text.
pub(super) fn program(text: &str) -> Option<Program> {
    understood(|| Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program())
}

/// The pieces of a word.
pub(super) fn word(text: &str) -> Option<Vec<WordPieceWithSource>> {
    understood(|| parse(text, &ParserOptions::default()))
}

/// The pieces of a here-document.
pub(super) fn here_document(text: &str) -> Option<Vec<WordPieceWithSource>> {
    understood(|| parse_heredoc(text, &ParserOptions::default()))
}

fn understood<T, E>(parsing: impl FnOnce() -> Result<T, E>) -> Option<T> {
    // What it had begun is dropped with it.
    catch_unwind(AssertUnwindSafe(parsing)).ok()?.ok()
}
