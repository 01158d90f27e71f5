//! A process the bench started and ends again, however the bench ends.
//!
//! It knows nothing of what the process does. Ended by its own handle, so that no other daemon of
//! the machine can be meant.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that is told to end, and waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct Owned(pub(crate) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // The pid is the child's own until it was waited for, which happens here alone.
        let told = i32::try_from(self.0.id()).map(|pid| kill(Pid::from_raw(pid), Signal::SIGTERM));
        if !matches!(told, Ok(Ok(()))) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}
