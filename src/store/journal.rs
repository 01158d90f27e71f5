//! The journal: an append-only, hash-chained record of every act, in JSON lines.
//!
//! Each act has one record before it takes effect and one of its outcome. A record's hash covers the hash before it,
//! so that no record can be changed, removed or inserted unnoticed. The files are the only state.

pub mod chain;
mod content;
mod event;
pub mod events;
pub mod line;
mod lock;
mod open;
pub mod reader;
mod segment;
pub mod writer;
