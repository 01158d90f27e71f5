//! Answers: what they say of sessions and commands, the words for models, and the room they have.

pub mod budget;
pub mod command;
pub mod excerpt;
pub mod page;
pub mod session;
