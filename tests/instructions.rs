//! How many instructions the hot paths of single parts take, beside the figures in `tests/instructions/figures.toml`.
//!
//! valgrind runs this program again and counts one path. Unlike times, counts are the same on a busy machine. A path
//! that takes more fails here, and so does one that takes less, until its new figure is committed.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

// The figures are those of one kind of build.
#[cfg(all(target_arch = "x86_64", debug_assertions))]
mod instructions {
    mod calls;
    mod counting;
    mod screens;
}
