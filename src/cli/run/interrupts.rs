//! The signals that end this program; the command is to be interrupted first.
//!
//! It knows nothing of commands. Whoever ends the program in whatever way means the same as with C-c.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::exit::Exit;
use crate::transport::unix::handed::onward::ignores_hangup;

/// What a shell adds to the number of the signal that ended a program.
const BY_SIGNAL: u8 = 128;

/// Every such signal from the moment of listening on.
#[derive(Debug)]
pub(super) struct Interrupts {
    key: Signal,
    terminate: Signal,
    /// None where the program is to outlive its terminal, as by nohup.
    hang_up: Option<Signal>,
}

impl Interrupts {
    /// Begins to listen; must be called inside a runtime.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(super) fn listen() -> io::Result<Self> {
        let hang_up = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        let (key, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { key: signal(key)?, terminate: signal(terminate)?, hang_up })
    }

    /// Waits for the next one, and tells how a program ends that it ends; cancel-safe.
    pub(super) async fn next(&mut self) -> Exit {
        let hung_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.key.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hung_up => SignalKind::hangup(),
        };
        Exit::Command(BY_SIGNAL + kind.as_raw_value() as u8)
    }
}
