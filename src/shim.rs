//! The shim: the process that owns one terminal and outlives the daemon.
//! It is a separate process so that the program keeps running when the daemon ends or crashes.
//! It moves bytes and stores checkpoints, but knows neither screen nor lease.

pub mod allocator;
pub mod bounded;
pub mod children;
pub mod confinement;
pub mod family;
pub mod input;
pub mod inside;
pub mod kept;
pub mod mark;
pub mod memory;
pub mod orphan_timeout;
pub mod output;
pub mod place;
pub mod program;
pub mod readiness;
pub mod ring;
pub mod run;
pub mod sandbox;
pub mod socket;
pub mod start;
pub mod starter;
pub mod stat;
pub mod terminal;
pub mod title;
pub mod user;
pub mod wire;
pub mod word;

use std::ffi::{CStr, OsString};
use std::process::ExitCode;

/// The first word of a shim's command line.
pub const NAME: &str = "termgate";

/// The name of a shim in `/proc/PID/stat`. Only a process itself can set its name.
pub const COMM: &CStr = c"termgate-shim";

/// The hidden subcommand that starts the process that forks shims.
pub const WORD: &str = "shim";

/// The hidden subcommand that is the first process of a sandbox.
pub const INSIDE: &str = "inside";

/// Runs the process that forks the shims of one daemon, and each shim until its session ends. `words` is the command
/// line.
pub fn run_shims(words: &[OsString]) -> ExitCode {
    starter::serve(words, |mut shim, mut room| {
        // A kernel without seccomp still runs the shim.
        let _ = confinement::enter();
        shim.run(&mut room);
        shim.end();
    })
}
