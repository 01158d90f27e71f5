//! Every shape that crosses a socket: results, deltas, notifications, errors, and the words in them.
//!
//! The daemon writes these types and the command line reads them. A reader ignores members that it
//! does not know, and a member that is sometimes left out has a default. Only the core is named here.

pub mod activity;
pub mod attach;
pub mod command;
pub mod date;
pub mod delta;
pub mod error;
pub mod event;
pub mod lease;
pub mod line;
pub mod mount;
pub mod policy;
pub mod recording;
pub mod rows;
pub mod screen;
pub mod search;
pub mod session;
pub mod status;
pub mod untrusted;
pub mod wait;

use std::fmt;

use serde::Serialize;

/// The word of a value that is one on the wire.
pub fn word(value: &impl Serialize) -> impl fmt::Display {
    fmt::from_fn(move |f| value.serialize(f))
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
