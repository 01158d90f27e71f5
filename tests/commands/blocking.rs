//! What the harness waits for, in tests that are no tasks.

use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::waiting;

impl Home {
    /// Starts a daemon that allows writing, and waits until it is ready.
    pub(crate) fn daemon(&self) -> Daemon {
        self.daemon_with("--allow-write")
    }

    /// Starts a daemon with these options, and waits until it is ready.
    pub(crate) fn daemon_with(&self, options: &str) -> Daemon {
        ready(self.start(self.termgate(&format!("serve {options}"))))
    }
}

impl Daemon {
    /// Ends it as if the machine had: without a word.
    pub(crate) fn killed(self) {
        block(self.kill());
    }
}

/// Waits until a daemon is ready.
pub(crate) fn ready(mut daemon: Daemon) -> Daemon {
    block(daemon.is_ready());
    daemon
}

/// Looks until a condition holds.
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    block(waiting::until(what, holds));
}

fn block<F: Future>(waiting: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(waiting)
}
