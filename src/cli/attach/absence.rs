//! Waits for another daemon while a person is attached.
//!
//! If the daemon returns soon, as after an upgrade, the screen only freezes for a moment. Otherwise
//! `attach` restores the terminal and prints a note.

use std::pin::pin;
use std::time::Duration;

use crate::cli::attach::client::terminal_failed;
use crate::cli::attach::refused;
use crate::cli::attach::signals::{Hint, Signals};
use crate::cli::attach::terminal::Terminal;
use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::transport::client::ClientError;

/// How long to retry after the terminal was restored.
const RETURN_MAX: Duration = Duration::from_secs(5);
/// How long to retry before that, with the terminal unchanged.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// A daemon that exited while a person was attached.
#[derive(Debug)]
pub struct Absence<'a> {
    name: &'a str,
    context: &'a Context,
    signals: &'a mut Signals,
}

/// Why a pause ended without a daemon.
enum Over {
    /// It timed out, or the person suspended the process.
    Pause,
    /// The person gave up.
    Patience,
}

impl<'a> Absence<'a> {
    pub fn of(name: &'a str, context: &'a Context, signals: &'a mut Signals) -> Self {
        Self { name, context, signals }
    }

    /// Waits until a daemon runs again at the same place, and returns the terminal to continue with.
    ///
    /// # Errors
    /// No daemon returned in time, or the person gave up. The terminal is restored.
    pub async fn until_back(
        mut self,
        mut terminal: Terminal,
    ) -> Result<(Daemon, Terminal), Failure> {
        let over = match self.pause(&mut terminal).await? {
            Ok(daemon) => return Ok((daemon, terminal)),
            Err(over) => over,
        };
        // Input for the session must not reach the shell.
        terminal.discard_typed();
        drop(terminal);
        match over {
            Over::Patience => Err(ClientError::Closed.into()),
            Over::Pause => {
                let daemon = self.look_openly().await?;
                Ok((daemon, Terminal::take().map_err(refused)?))
            }
        }
    }

    /// Retries with the last picture on the terminal. Input waits in the terminal meanwhile.
    async fn pause(&mut self, terminal: &mut Terminal) -> Result<Result<Daemon, Over>, Failure> {
        let mut looking = pin!(self.context.next_daemon(PAUSE_MAX, || true));
        loop {
            tokio::select! {
                found = &mut looking => return Ok(found.map_err(|_| Over::Pause)),
                hint = self.signals.next() => match hint {
                    Hint::Resized => terminal.resize(),
                    Hint::GoesOn => terminal.enter().map_err(terminal_failed)?,
                    Hint::Stop => return Ok(Err(Over::Pause)),
                    Hint::Leave => return Ok(Err(Over::Patience)),
                },
                painted = terminal.turn(&mut [], false) => if painted.is_err() {
                    return Ok(Err(Over::Pause));
                },
            }
        }
    }

    /// Retries after the terminal was restored.
    async fn look_openly(&mut self) -> Result<Daemon, Failure> {
        let name = self.name;
        let gone = format!("[{name}: the daemon is gone; looking for it, C-c to stop]");
        self.context.output.note(&gone);
        let leaving = async { while !matches!(self.signals.next().await, Hint::Leave) {} };
        tokio::select! {
            found = self.context.next_daemon(RETURN_MAX, || true) => found,
            () = leaving => Err(ClientError::Closed.into()),
        }
    }
}
