//! What interactive shells tell of their prompts and commands: real shells in real terminals, with
//! files of their users that do what they like.
//!
//! Nothing here reads the marks but these tests; only what comes out of the terminal counts.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

mod shell_marks {
    mod bash;
    mod every;
    mod fish;
    mod harness;
    mod zsh;
}
