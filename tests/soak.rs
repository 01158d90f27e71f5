//! Everything at once, for as long as wanted, while something goes wrong every few seconds.
//!
//! Without words it is a miniature of ten seconds. `cargo test --test soak -- --for 10m [--full] [--without FAULT]` is the
//! load that docs/RELIABILITY.md names; `SOAK_PROGRAM` is the program whose daemon is tested, `SOAK_SEED` what is left to
//! chance.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "a soak prints how it goes")]

// Each family uses a part of it.
#[allow(dead_code)]
#[path = "harness"]
mod harness {
    pub(crate) mod daemon;
    pub(crate) mod dice;
    pub(crate) mod disk;
    pub(crate) mod home;
    pub(crate) mod line_client;
    pub(crate) mod processes;
    pub(crate) mod waiting;
}

#[allow(dead_code)]
#[path = "outlive"]
mod outlive {
    pub(crate) mod client;
    pub(crate) mod home;
    pub(crate) mod observer;
    pub(crate) mod programs;
}

#[path = "soak"]
mod soak {
    pub(crate) mod fault;
    pub(crate) mod growth;
    pub(crate) mod latency;
    pub(crate) mod plan;
    pub(crate) mod printer;
    pub(crate) mod puppet;
    pub(crate) mod report;
    pub(crate) mod run;
    pub(crate) mod users;
    pub(crate) mod world;
}

use std::process::ExitCode;

use crate::soak::plan::Plan;
use crate::soak::{puppet, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(puppet::WORD) => puppet::serve(&words[1..]),
        // Test runners ask which tests there are, and which of them are to be left out.
        Some("--list") => {
            if !words.iter().any(|word| word == "--ignored") {
                println!(
                    "nothing_is_lost_under_load_while_something_goes_wrong_all_the_time: test"
                );
            }
            ExitCode::SUCCESS
        }
        Some(_) | None => match Plan::of(&words) {
            Ok(plan) => run::run(plan),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        },
    }
}
