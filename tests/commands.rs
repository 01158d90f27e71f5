//! The program itself, run as people run it: its words, what it prints, how it ends.
//!
//! Every test has directories and a daemon of its own, and knows no type of the program.

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

mod commands {
    mod approving;
    mod attach;
    mod attach_choices;
    mod attach_restarts;
    mod blocking;
    mod completions;
    mod doctor;
    mod install;
    mod install_skills;
    mod journal;
    mod lost;
    mod man;
    mod mounted_tls;
    mod mounting;
    mod other_users;
    mod recordings;
    mod refusals;
    mod run;
    mod run_asked;
    mod run_between;
    mod run_fresh;
    mod run_restarted;
    mod seat;
    mod serve;
    mod status;
    mod still;
    mod terminal;
    mod top;
    mod upgraded;
    mod user;
    mod watch;
    mod writing;
}
