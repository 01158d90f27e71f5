//! `approve`: the calls that wait for an approval, and what becomes of them.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::cli::asking::confirmed;
use crate::cli::candidates::offer_approvals;
use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::duration::{millis_within, parse_duration};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::CommandReport;
use crate::mcp::settings::FOR_GOOD_METHOD;
use crate::transport::client::ClientError;
use crate::wire::policy::RuleWritten;

/// List the calls that wait for an approval, let some pass, or deny them
///
/// A call that passes does so once, and only while its terminal is as it was: its directory, the program in front, the
/// last command, and for keys the screen. With --for, the same programs of the same client pass in that session for a time.
/// With --always, a rule that lets such calls pass in that directory is added to the policy file whose rule asked; it is
/// shown first. A call waits ten minutes. A denied one is refused for a minute without asking again.
#[derive(Debug, Args)]
pub struct ApproveCommand {
    /// The approvals [default: list all that wait]
    #[arg(value_name = "ID", add = ArgValueCompleter::new(offer_approvals))]
    ids: Vec<String>,
    /// Deny them
    #[arg(long, requires = "ids", conflicts_with_all = ["duration", "always"])]
    deny: bool,
    /// Let the same programs of this client pass for this long, one hour at most
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "ids")]
    duration: Option<Duration>,
    /// Write a rule that lets this command pass in its directory from now on
    #[arg(long, requires = "ids", conflicts_with = "duration")]
    always: bool,
    /// Write the rule without asking
    #[arg(long, requires = "always")]
    yes: bool,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[("approval_id", "ID"), ("for_ms", "--for")];

impl ApproveCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let within = |given| millis_within("--for", given, 1..=3_600_000);
        let for_ms = self.duration.map(within).transpose().map_err(CliFailure::Usage)?;
        let daemon = context.daemon().await?;
        if self.always && self.ids.len() > 1 {
            // Another rule makes the other approvals void.
            let why = "--always takes one approval at a time".to_owned();
            return Err(CliFailure::Usage(why));
        }
        let mut reports = Vec::new();
        for id in &self.ids {
            let decided = if self.always {
                self.for_good(&daemon, context, id).await
            } else if self.deny {
                decide(&daemon, "deny", json!({"approval_id": id})).await
            } else {
                decide(&daemon, "approve", json!({"approval_id": id, "for_ms": for_ms})).await
            };
            match decided {
                Ok(report) => reports.push(report),
                Err(failure) => {
                    // What was decided before stays so.
                    reports.iter().for_each(|done| context.output.note(&done.text));
                    return Err(failure);
                }
            }
        }
        match reports.len() {
            0 => Ok(daemon.call("list_approvals", json!({})).await?.report_as_told()),
            1 => Ok(reports.swap_remove(0)),
            _ => {
                let text = reports.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n");
                let decided: Vec<Value> = reports.into_iter().map(|it| it.data).collect();
                Ok(CommandReport::new(json!({"decided": decided}), text))
            }
        }
    }

    /// Shows the rule by which a call passes for good, and writes it if the person says so.
    async fn for_good(
        &self,
        daemon: &DaemonClient,
        context: &Context,
        id: &str,
    ) -> Result<CommandReport, CliFailure> {
        let ask = async |write: bool| {
            let asked = json!({"approval_id": id, "write": write});
            let answer = daemon.client().request(FOR_GOOD_METHOD, asked).await?;
            RuleWritten::deserialize(answer).map_err(|_| ClientError::Malformed)
        };
        let rule = ask(false).await?;
        let why = "--always asks at a terminal before it writes; give --yes besides";
        if !self.yes && !confirmed(&context.output, &rule.diff(), "Write this rule?", why)? {
            return Ok(CommandReport::new(json!(rule), "nothing was written"));
        }
        let rule = ask(true).await?;
        let text = if self.yes { rule.diff() } else { format!("written to {}", rule.path) };
        Ok(CommandReport::new(json!(rule), text))
    }
}

async fn decide(
    daemon: &DaemonClient,
    tool: &str,
    arguments: Value,
) -> Result<CommandReport, CliFailure> {
    Ok(daemon.call(tool, arguments).await?.report_as_told())
}
