//! `kill`: ends a session with every process in it.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// End a session and all its processes
#[derive(Debug, Args)]
pub struct Kill {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
}

impl Kill {
    /// Runs the command.
    ///
    /// # Errors
    /// The session was not ended, with the reason.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let arguments = json!({"session": self.session, "action": "kill"});
        let killed = context.daemon().await?.call("manage_session", arguments).await?;
        let notes = vec![killed.text.clone()];
        Ok(Report { notes, ..killed.report("") })
    }
}
