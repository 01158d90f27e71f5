//! Sessions outlive their daemon, with the real program and nothing replaced.
//!
//! Every test has directories and daemons of its own, knows only the wire and what the kernel says
//! of processes, and prints the seed of what it left to chance.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

// Each family uses a part of it.
#[allow(dead_code)]
#[path = "harness"]
mod harness {
    pub(crate) mod daemon;
    pub(crate) mod dice;
    pub(crate) mod disk;
    pub(crate) mod home;
    pub(crate) mod line_client;
    pub(crate) mod linearizability;
    pub(crate) mod processes;
    pub(crate) mod waiting;
}

mod outlive {
    mod aside;
    mod audience;
    mod bridged;
    mod busy;
    mod client;
    mod commands;
    mod day;
    mod descriptors;
    mod events;
    mod forged;
    mod former;
    mod full_disk;
    mod gone;
    mod histories;
    mod home;
    mod inside;
    mod journal;
    mod kept;
    mod kills;
    mod lock;
    mod lost_output;
    mod observer;
    mod programs;
    mod recording;
    mod retired;
    mod retried;
    mod sandbox;
    mod search;
    mod sent;
    mod shims;
    mod shortage;
    mod silent;
    mod sockets;
    mod standstill;
    mod stopped;
    mod storm;
    mod turns;
    mod writer;
}
