//! Answers: what of sessions and commands goes into them, how it is worded for models, and how much
//! of it there is room for.

pub mod budget;
pub mod command;
pub mod delta;
pub mod gap;
pub mod lease;
pub mod page;
pub mod session;
