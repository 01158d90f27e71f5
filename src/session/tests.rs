//! What tests of a session's task need: failures on purpose, and permits.

pub(in crate::session) mod faults;
#[cfg(all(target_arch = "x86_64", debug_assertions))] // Counts of instructions alone need it.
pub(crate) mod listed;
pub(in crate::session) mod permitted;
