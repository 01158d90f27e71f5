//! `approve`: the calls that wait for an approval, and what becomes of them.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_approvals;
use crate::cli::context::Context;
use crate::cli::duration::{millis_within, parse_duration};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::CommandReport;

/// List the calls that wait for an approval, let one pass, or deny it
///
/// A call that passes does so once, and only while its terminal is as it was: its directory, the program in front, the
/// last command, and for keys the screen. With --for, the same programs of the same client pass in that session for a time.
/// A call waits ten minutes. A denied one is refused for a minute without asking again.
#[derive(Debug, Args)]
pub struct ApproveCommand {
    /// The approval [default: list all that wait]
    #[arg(add = ArgValueCompleter::new(offer_approvals))]
    id: Option<String>,
    /// Deny it
    #[arg(long, requires = "id", conflicts_with = "duration")]
    deny: bool,
    /// Let the same programs of this client pass for this long, one hour at most
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "id")]
    duration: Option<Duration>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[("approval_id", "ID"), ("for_ms", "--for")];

impl ApproveCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let within = |given| millis_within("--for", given, 1..=3_600_000);
        let for_ms = self.duration.map(within).transpose().map_err(CliFailure::Usage)?;
        let daemon = context.daemon().await?;
        let (tool, arguments) = match (&self.id, self.deny) {
            (None, _) => ("list_approvals", json!({})),
            (Some(id), true) => ("deny", json!({"approval_id": id})),
            (Some(id), false) => ("approve", json!({"approval_id": id, "for_ms": for_ms})),
        };
        Ok(daemon.call(tool, arguments).await?.report_as_told())
    }
}
