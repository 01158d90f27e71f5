//! Terminals that another process holds, with the real process and real programs.
//!
//! What every terminal does is tested for those of the daemon's own as well. Each test waits for a
//! condition and has directories of its own.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

// Each family uses a part of it.
#[allow(dead_code)]
#[path = "harness"]
mod harness {
    pub(crate) mod processes;
    pub(crate) mod waiting;
}

mod shim {
    mod either;
    mod endings;
    mod fake;
    mod golden;
    mod harness;
    mod hiding;
    mod input;
    mod noise;
    mod orphans;
    mod output;
    mod run_as;
    mod starter;
    mod strangers;
    mod takeover;
    mod transcript;
}
