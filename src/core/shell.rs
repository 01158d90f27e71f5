//! What the shell or program in a terminal is doing, which commands ran there, and how they ended.
//!
//! Marks of the shell decide where there are any, then the kernel's view of the terminal.

pub mod activity;
pub mod commands;
