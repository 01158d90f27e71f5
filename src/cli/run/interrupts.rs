//! The signals that end this program, which first interrupt the command.
//!
//! Every such signal has the same effect as C-c.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::exit::CommandExit;
use crate::transport::unix::handed::onward::ignores_hangup;

/// A shell adds this to the number of the signal that ended a program.
const BY_SIGNAL: u8 = 128;

/// The signals, from the moment of listening.
#[derive(Debug)]
pub(super) struct Interrupts {
    key: Signal,
    terminate: Signal,
    /// None when the program ignores hangups, as under nohup.
    hang_up: Option<Signal>,
}

impl Interrupts {
    /// Starts to listen. Call it inside a runtime.
    pub(super) fn listen() -> io::Result<Self> {
        let hang_up = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        let (key, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { key: signal(key)?, terminate: signal(terminate)?, hang_up })
    }

    /// Waits for the next signal and returns the exit code for it. Cancel-safe.
    pub(super) async fn next(&mut self) -> CommandExit {
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
        CommandExit::Command(BY_SIGNAL + kind.as_raw_value() as u8)
    }
}
