//! The whole daemon, over its sockets: what clients of both protocol eras can rely on.
//!
//! Nothing of the daemon is replaced and nothing inside it is looked at; every test has one of its
//! own.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

// Each family uses a part of it.
#[allow(dead_code)]
#[path = "harness"]
mod harness {
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod line_client;
    pub(crate) mod processes;
    pub(crate) mod waiting;
}

mod daemon {
    mod approvals;
    mod arguments;
    mod bridge;
    mod configuration;
    mod contract;
    mod counters;
    mod departure;
    mod doors;
    mod driven;
    mod elicitation;
    mod endings;
    mod eras;
    mod events;
    mod harness;
    mod kept_switches;
    mod leases;
    mod limits;
    mod mount_addresses;
    mod mount_asked_links;
    mod mount_asked_roots;
    mod mount_asks;
    mod mount_content;
    mod mount_eras;
    mod mount_errors;
    mod mount_exact;
    mod mount_inputs;
    mod mount_leases;
    mod mount_links;
    mod mount_lists;
    mod mount_logs;
    mod mount_modes;
    mod mount_news;
    mod mount_restarts;
    mod mount_shares;
    mod mount_tasks;
    mod mounts;
    mod observe;
    mod order;
    mod orphans;
    mod people;
    mod policy;
    mod program;
    mod prompt_words;
    mod prompts;
    mod rates;
    mod reading;
    mod recordings;
    mod resource_reader;
    mod resources;
    mod resources_work;
    mod rmcp_client;
    mod run_calls;
    mod run_long;
    mod run_programs;
    mod run_ready;
    mod run_repeats;
    mod run_sequences;
    mod run_shells;
    mod run_unasked;
    mod run_unread;
    mod search;
    mod seeds;
    mod set_limits;
    mod settings;
    mod shell_marks;
    mod shell_words;
    mod shells;
    mod sizes;
    mod standstill;
    mod stdio;
    mod supervised;
    mod tenants;
    mod tokens;
    mod typed_lines;
    mod upgrading;
    mod waits;
    mod walls;
    mod walls_mounts;
    mod write_switch;
}
