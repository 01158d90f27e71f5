//! The signals of the person's terminal, shell and machine, by their meaning for `attach`.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub struct Signals {
    resized: Signal,
    stop: Signal,
    goes_on: Signal,
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

#[derive(Debug)]
pub enum Hint {
    Resized,
    Stop,
    GoesOn,
    Leave,
}

impl Signals {
    /// Starts to receive the signals.
    ///
    /// # Errors
    /// The kernel refused.
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

    /// Waits for the next signal. Cancel-safe.
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
