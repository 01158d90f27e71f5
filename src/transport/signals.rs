//! The signals that end the process.
//!
//! Listening must start before any work that the end must undo.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Exit and end everything that was started: SIGTERM and SIGINT.
    End,
    /// Exit and leave the sessions running: SIGUSR1.
    Leave,
}

#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    leave: Signal,
}

impl Signals {
    /// Starts listening. Call it inside a runtime.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt, leave: signal(SignalKind::user_defined1())? })
    }

    /// Waits for the first signal.
    pub async fn told(mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.leave.recv() => Told::Leave,
        }
    }

    /// Waits for the first signal, when nothing can be left running.
    pub async fn told_to_end(self) {
        match self.told().await {
            Told::End | Told::Leave => {}
        }
    }
}
