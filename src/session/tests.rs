//! What tests of a session's task need: failures on purpose.

pub(in crate::session) mod faults;
