//! What interactive shells tell of their prompts and commands: real shells in real terminals, with
//! files of their users that do what they like.
//!
//! Nothing here reads the marks but these tests; only what comes out of the terminal counts.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

// Each family uses a part of it.
#[allow(dead_code)]
#[path = "harness"]
mod harness {
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod processes;
    pub(crate) mod waiting;
}

mod shell_marks {
    mod bash;
    mod every;
    mod fish;
    mod harness;
    mod zsh;
}
