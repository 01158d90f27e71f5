//! What tests of sessions need: a terminal in memory.

pub(in crate::session) mod fake;
