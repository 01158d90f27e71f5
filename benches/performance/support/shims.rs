//! The processes that hold the terminals of one daemon's sessions, found by where they listen.
//!
//! It knows nothing of what they do. They are told by the directory of the bench's own, so that no
//! other daemon's can be meant.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::samples::now;

/// How long they may take to end.
const END_MAX: Duration = Duration::from_secs(10);

/// Those whose sockets are below a runtime directory, in no order.
pub(crate) fn of(runtime: &Path) -> Vec<Pid> {
    let directory = runtime.as_os_str().as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    numbers.filter(|number| holds_below(*number, directory)).map(Pid::from_raw).collect()
}

fn holds_below(process: i32, directory: &[u8]) -> bool {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"shim") && words.next().is_some_and(|word| word.starts_with(directory))
}

/// Ends them, and with their terminals the programs, and waits until they have gone.
pub(crate) fn end_all(runtime: &Path) {
    let give_up = now() + END_MAX;
    loop {
        let left = of(runtime);
        if left.is_empty() || now() > give_up {
            return;
        }
        for shim in left {
            // One that ends by itself meanwhile is none any more.
            let _ = kill(shim, Signal::SIGKILL);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
