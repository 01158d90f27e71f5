//! The search index: the text of terminals and the commands that ran there, in one SQLite database.
//!
//! One thread writes it, and searches read it beside that thread. It is a copy that may be lost: a damaged file is set
//! aside, and a new one begins.

pub mod content;
pub mod database;
pub mod hits;
pub mod query;
mod reader;
pub mod retention;
mod words;
pub mod writer;
