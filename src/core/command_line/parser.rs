//! The parser of shell text, which panics on some texts: those count as not understood.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::Program;
use brush_parser::{Parser, ParserOptions};

/// The commands of a text.
pub(super) fn program(text: &str) -> Option<Program> {
    let parse = || Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program();
    // What it had begun is dropped with it.
    catch_unwind(AssertUnwindSafe(parse)).ok()?.ok()
}
