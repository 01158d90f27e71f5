//! The process that holds the terminal of a home's session, and what it is to stand still.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::blocking::until;
use crate::harness::home::Home;
use crate::harness::processes::is_stopped;

/// The process that holds the only terminal of a home.
pub(crate) fn shim(home: &Home) -> Pid {
    let shims = home.shims();
    assert_eq!(shims.len(), 1);
    Pid::from_raw(shims[0])
}

/// A shim that stands still until this is dropped.
pub(crate) struct Still(Pid);

impl Still {
    pub(crate) fn of(home: &Home) -> Self {
        let still = Self(shim(home));
        kill(still.0, Signal::SIGSTOP).unwrap();
        until("the shim to stand still", || is_stopped(still.0.as_raw()));
        still
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}
