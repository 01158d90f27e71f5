//! What tests of sessions need: a terminal in memory.

pub(crate) mod fake;
