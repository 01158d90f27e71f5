//! The signals that a person's terminal, shell and machine send, as what they mean here.
//!
//! They know nothing of the session; what is to be done about them is the desk's affair.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals a person's terminal and shell send.
#[derive(Debug)]
pub struct Signals {
    resized: Signal,
    stop: Signal,
    goes_on: Signal,
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

/// What a signal means.
#[derive(Debug)]
pub enum Hint {
    Resized,
    Stop,
    GoesOn,
    Leave,
}

impl Signals {
    /// Signals from now on.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(nix::libc::SIGTSTP))?,
            goes_on: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one; cancel-safe.
    pub async fn next(&mut self) -> Hint {
        tokio::select! {
            _ = self.terminate.recv() => Hint::Leave,
            _ = self.hang_up.recv() => Hint::Leave,
            _ = self.interrupt.recv() => Hint::Leave,
            _ = self.resized.recv() => Hint::Resized,
            _ = self.stop.recv() => Hint::Stop,
            _ = self.goes_on.recv() => Hint::GoesOn,
        }
    }
}
