//! What tests of a session's task need: failures on purpose, and permits.

pub(in crate::session) mod faults;
pub(crate) mod listed;
pub(in crate::session) mod permitted;
