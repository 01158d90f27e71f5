//! `attach`: connects a person's terminal to a session.
//!
//! It paints the session from the daemon's deltas and sends typed bytes unchanged. Program output never
//! reaches the person's terminal raw, because the terminal's answers to queries would count as typing.

pub mod absence;
pub mod client;
pub mod exit;
pub mod layout;
pub mod notice;
pub mod pointer;
pub mod prefix_key;
pub mod renderer;
pub mod requests;
pub mod room_told;
pub mod scrollback;
pub mod signals;
pub mod status;
pub mod taken_over;
pub mod terminal;
pub mod unanswered;
pub mod view;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::attach::absence::Absence;
use crate::cli::attach::client::{Carried, Desk, terminal_failed};
use crate::cli::attach::exit::Leaving;
use crate::cli::attach::layout::room_for_session;
use crate::cli::attach::signals::Signals;
use crate::cli::attach::terminal::{Terminal, TerminalError};
use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::spawn::Spawn;
use crate::mcp::attach::ATTACH_METHOD;
use crate::transport::client::ClientError;

/// Attach to a session: see it live and type into it
///
/// Typing suspends the agent's lease. The agent gets it back when you hand back, detach, or do not type
/// for ten seconds. Press C-\ and then d to detach, t to take over, h to hand back, [ for the history,
/// ? for a list of these keys, or C-\ to type C-\. Taking over lasts until you hand back, another person
/// takes over, or ten minutes pass without a key. If the daemon exits, `attach` waits for the next one;
/// after three seconds it restores your terminal and retries for five more.
#[derive(Debug, Args)]
pub struct Attach {
    /// Id, unique prefix of one, or name [default: the session created last]
    session: Option<String>,
    /// Watch only
    #[arg(long)]
    view_only: bool,
    #[command(flatten)]
    spawn: Spawn,
}

impl Attach {
    /// Runs the command.
    ///
    /// # Errors
    /// The person could not attach, or the daemon exited and did not return.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let mut daemon = self.spawn.daemon(context).await?;
        // Before the terminal is taken, so that every signal restores it.
        let mut signals = Signals::new().map_err(terminal_failed)?;
        let mut terminal = Terminal::take().map_err(refused)?;
        let mut carried = Carried::default();
        loop {
            let Sitting { left, terminal: kept, carried: taken_along } =
                self.sit(&daemon, terminal, carried, &mut signals).await;
            carried = taken_along;
            match left {
                Err(Failure::Request(ClientError::Closed)) if !carried.session.is_empty() => {
                    let absence = Absence::of(&carried.name, context, &mut signals);
                    (daemon, terminal) = absence.until_back(kept).await?;
                }
                left => {
                    // Restores the terminal before anything else prints on it.
                    drop(kept);
                    return Ok(report(&carried.session, &carried.name, &left?));
                }
            }
        }
    }

    /// Attaches once.
    async fn sit(
        &self,
        daemon: &Daemon,
        mut terminal: Terminal,
        mut carried: Carried,
        signals: &mut Signals,
    ) -> Sitting {
        if !carried.session.is_empty()
            && let Some(left) = carried.outlast_silence(daemon, &mut terminal, signals).await
        {
            return Sitting { left, terminal, carried };
        }
        let room = room_for_session(terminal.room());
        let seen = Some(&carried.session).filter(|id| !id.is_empty());
        let params = json!({
            "session": seen.or(self.session.as_ref()),
            "cols": room.cols,
            "rows": room.rows,
            "view_only": self.view_only,
        });
        let attach = match daemon.client().open(ATTACH_METHOD, &params) {
            Ok(attach) => attach,
            Err(error) => return Sitting { left: Err(error.into()), terminal, carried },
        };
        let mut desk = Desk::new(daemon, attach, terminal, carried, self.view_only);
        let left = desk.sit(signals).await;
        desk.rise(left).await
    }
}

/// The result of one attachment.
#[derive(Debug)]
pub struct Sitting {
    pub left: Result<Leaving, Failure>,
    /// The terminal, still in use.
    pub terminal: Terminal,
    pub carried: Carried,
}

/// The failure for a terminal that cannot be used.
pub fn refused(error: TerminalError) -> Failure {
    match error {
        TerminalError::NoTerminal | TerminalError::Dumb => {
            Failure::Usage(format!("{error}; `termgate watch` and `termgate read` need none"))
        }
        TerminalError::Failed(error) => {
            Failure::Other(anyhow::Error::new(error).context("cannot use this terminal"))
        }
    }
}

fn report(session: &str, name: &str, leaving: &Leaving) -> Report {
    let (ended, note) = match leaving {
        Leaving::Detached => ("detached", format!("[detached from {name}]")),
        Leaving::SentAway => ("detached", format!("[{name}: everybody attached was sent away]")),
        Leaving::Exited(exit) => ("exited", format!("[{name} {exit}]")),
    };
    let data: Value = json!({"session": session, "name": name, "ended": ended});
    Report { data, text: String::new(), notes: vec![note], exit: Exit::Done, mcp_version: None }
}

#[cfg(test)]
mod tests;
