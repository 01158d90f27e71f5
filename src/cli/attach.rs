//! `attach`: a person sits down at a session.
//!
//! The session is painted from the daemon's deltas, and what is typed goes there as the bytes that
//! came. What a program writes never reaches the person's terminal as it is: it could ask that
//! terminal for answers, which would come back as typing.

pub mod canvas;
pub mod chord;
pub mod desk;
pub mod scene;
pub mod scrollback;
pub mod signals;
pub mod status;
pub mod terminal;
pub mod view;

use std::env;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::attach::desk::{Desk, Leaving};
use crate::cli::attach::scene::room_for_session;
use crate::cli::attach::terminal::{Terminal, TerminalError};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::start::Rights;
use crate::mcp::attach::ATTACH_METHOD;

/// Sit down at a session: see it live and type into it
///
/// Typing suspends the lease of the agent that works there; it goes on when you hand back, leave, or
/// do not type for ten seconds. C-\ and then: d detaches, t takes over until you hand back, h hands
/// back, [ shows the history, ? lists these keys, C-\ types C-\.
#[derive(Debug, Args)]
pub struct Attach {
    /// Id, unique prefix of one, or name [default: the session created last]
    session: Option<String>,
    /// Watch and do not type
    #[arg(long)]
    view_only: bool,
    /// Do not start a daemon
    #[arg(long)]
    no_spawn: bool,
}

impl Attach {
    /// Runs the command.
    ///
    /// # Errors
    /// Why nobody could sit down, or that the daemon went away meanwhile.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let daemon = match self.no_spawn {
            true => context.running_daemon().await?,
            false => context.daemon_to_create(Rights::AsConfigured).await?,
        };
        let terminal = Terminal::take().map_err(refused)?;
        let room = room_for_session(terminal.room());
        let params = json!({
            "session": self.session,
            "cols": room.cols,
            "rows": room.rows,
            "view_only": self.view_only,
            "label": env::var("USER").ok(),
        });
        let attach = daemon.client().open(ATTACH_METHOD, &params)?;
        let mut desk = Desk::new(&daemon, attach, terminal, self.view_only);
        let left = desk.sit().await;
        // The terminal is the person's again before anything else is printed on it.
        let (session, name) = desk.leave();
        let leaving = left?;
        Ok(report(&session, &name, &leaving))
    }
}

fn refused(error: TerminalError) -> Failure {
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
        Leaving::Closed => ("closed", format!("[{name} is gone]")),
    };
    let exit = if *leaving == Leaving::Closed { Exit::Unreachable } else { Exit::Done };
    let data: Value = json!({"session": session, "name": name, "ended": ended});
    Report { data, text: String::new(), notes: vec![note], exit, mcp_version: None }
}
