//! The signals by which a process is told to end.
//!
//! It must not know what ends. They are listened to before anything is begun that must be ended.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// To end, with all that it began: SIGTERM and SIGINT.
    End,
    /// To end and leave what can go on without it: SIGUSR1.
    Leave,
}

/// The signals, from the moment of listening on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    leave: Signal,
}

impl Signals {
    /// Begins to listen; must be called inside a runtime.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt, leave: signal(SignalKind::user_defined1())? })
    }

    /// Waits for the first of them.
    pub async fn told(mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.leave.recv() => Told::Leave,
        }
    }

    /// Waits for the first of them, where nothing could be left.
    pub async fn told_to_end(self) {
        match self.told().await {
            Told::End | Told::Leave => {}
        }
    }
}
