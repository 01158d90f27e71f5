//! The time without a daemon, at a person's terminal.
//!
//! It knows nothing of the session. A daemon that is back soon, as after an upgrade, costs the person
//! a moment in which nothing moves; only then is the terminal given back and the person told.

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

/// How long a daemon that has gone is looked for with the terminal in the person's hands.
const RETURN_MAX: Duration = Duration::from_secs(5);
/// How long before that the terminal is kept as it is.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// A daemon that has gone while somebody was attached.
#[derive(Debug)]
pub struct Absence<'a> {
    name: &'a str,
    context: &'a Context,
    signals: &'a mut Signals,
}

/// How a pause ended without a daemon.
enum Over {
    /// It was too long, or the terminal is needed.
    Pause,
    /// The person has enough of it.
    Patience,
}

impl<'a> Absence<'a> {
    /// An absence at the session of this name.
    pub fn of(name: &'a str, context: &'a Context, signals: &'a mut Signals) -> Self {
        Self { name, context, signals }
    }

    /// Waits until there is a daemon again where the last one was, unless the person has enough of
    /// it; gives back the terminal to go on with.
    ///
    /// # Errors
    /// That there is none in time; the terminal is the person's again.
    pub async fn until_back(
        mut self,
        mut terminal: Terminal,
    ) -> Result<(Daemon, Terminal), Failure> {
        let over = match self.pause(&mut terminal).await? {
            Ok(daemon) => return Ok((daemon, terminal)),
            Err(over) => over,
        };
        // What was typed for the session is not for the shell.
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

    /// Looks for a daemon with the last picture on the terminal; what is typed meanwhile waits there.
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

    /// Looks for a daemon with the terminal in the person's hands.
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
