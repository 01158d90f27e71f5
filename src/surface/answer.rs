//! Answers: what of sessions and commands goes into them, how it is worded for models, and how much
//! of it there is room for.

pub mod budget;
pub mod command;
pub mod page;
pub mod session;
