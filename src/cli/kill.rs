//! `kill`: ends a session with every process in it.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;

/// End a session and all its processes
///
/// `ls` still shows the ended session, whose history can be read. A second `kill` removes it, and says
/// `removed`.
#[derive(Debug, Args)]
pub struct KillCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
}

impl KillCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({"session": self.session, "action": "kill"});
        Ok(context.daemon().await?.act("manage_session", arguments).await?.report_as_note())
    }
}
