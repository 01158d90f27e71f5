//! The process that owns one terminal and outlives the daemon, and what it speaks with daemons.
//!
//! It knows no screen, no lease and no tenant: it moves bytes, keeps what it is handed, and counts.
//! It is a process of its own so that a daemon may end in any way at any moment without the program
//! in the terminal noticing.

pub mod bounded;
pub mod children;
pub mod confinement;
pub mod family;
pub mod input_log;
pub mod kept;
pub mod mark;
pub mod memory;
pub mod orphan_timeout;
pub mod output;
pub mod peer_check;
pub mod place;
pub mod program;
pub mod readiness;
pub mod ring;
pub mod run;
pub mod socket;
pub mod start;
pub mod stat;
pub mod terminal;
pub mod wire;

use std::ffi::{CStr, OsString};
use std::process::ExitCode;

/// What a shim is called on its command line.
pub const NAME: &str = "termgate";

/// What the kernel calls a shim; only a process itself can have itself called so.
pub const COMM: &CStr = c"termgate-shim";

/// The hidden word on the command line that makes a process a shim.
pub const WORD: &str = "shim";

/// Holds a session from its start to its end, by the words of the command line.
pub fn run_shim(words: &[OsString]) -> ExitCode {
    match start::start(words) {
        Ok((mut shim, mut room)) => {
            // A kernel that cannot confine is no reason not to hold.
            let _ = confinement::enter();
            shim.run(&mut room);
            shim.end();
            ExitCode::SUCCESS
        }
        Err(exit) => exit,
    }
}
