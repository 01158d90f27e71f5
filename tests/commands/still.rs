//! The process that holds the terminal of a home's session, and what it is to stand still.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::harness::Home;
use crate::commands::seat::until;

/// The process that holds the only terminal of a home.
pub(crate) fn shim(home: &Home) -> Pid {
    let held_at = home.path("run/termgate/h").display().to_string();
    let is_one = |pid: Pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).starts_with(&format!("termgate\0shim\0{held_at}"))
    };
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok()).map(Pid::from_raw);
    let shims: Vec<Pid> = pids.filter(|pid| is_one(*pid)).collect();
    assert_eq!(shims.len(), 1);
    shims[0]
}

/// A shim that stands still until this is dropped.
pub(crate) struct Still(Pid);

impl Still {
    pub(crate) fn of(home: &Home) -> Self {
        let still = Self(shim(home));
        kill(still.0, Signal::SIGSTOP).unwrap();
        let stat = format!("/proc/{}/stat", still.0);
        let is_stopped = || fs::read_to_string(&stat).unwrap().contains(") T ");
        until("the shim to stand still", is_stopped);
        still
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}
