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
use crate::cli::exit::CommandExit;
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
        if self.ids.is_empty() {
            return Ok(daemon.call("list_approvals", json!({})).await?.report_as_told());
        }
        let mut decided = Vec::new();
        for id in &self.ids {
            let one = if self.always {
                self.for_good(&daemon, context, id).await
            } else if self.deny {
                decide(&daemon, "deny", json!({"approval_id": id})).await
            } else {
                decide(&daemon, "approve", json!({"approval_id": id, "for_ms": for_ms})).await
            };
            let closed = matches!(one, Err(CliFailure::Request(ClientError::Closed)));
            decided.push((id.as_str(), one.map_err(|failure| failure.as_typed(TYPED))));
            if closed {
                // Nobody is left who could decide the others.
                break;
            }
        }
        if decided.len() == 1 {
            return decided.swap_remove(0).1;
        }
        Ok(told(decided))
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

/// What became of several calls. It ends with the highest exit code of those that are not decided.
fn told(decided: Vec<(&str, Result<CommandReport, CliFailure>)>) -> CommandReport {
    let (mut done, mut failed, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut notes, mut exit) = (Vec::new(), CommandExit::Done);
    for (id, one) in decided {
        match one {
            Ok(report) => {
                lines.push(report.text);
                done.push(report.data);
            }
            Err(failure) => {
                let (code, hint) = (failure.code(), failure.hint());
                let shown = code.map(|code| format!(" ({code})")).unwrap_or_default();
                notes.push(format!("termgate: {id}: {failure}{shown}"));
                failed.push(json!({
                    "approval_id": id, "error": failure.to_string(), "error_code": code, "hint": hint,
                }));
                exit =
                    [exit, failure.exit()].into_iter().max_by_key(|it| it.number()).unwrap_or(exit);
            }
        }
    }
    let data = json!({"decided": done, "failed": failed});
    CommandReport { notes, exit, ..CommandReport::new(data, lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_decisions_end_with_the_highest_exit_code_and_name_each_failure() {
        let failure = |why: &str| CliFailure::NotFound { why: why.to_owned(), hint: String::new() };
        let report = told(vec![
            ("a", Err(failure("none"))),
            ("b", Ok(CommandReport::new(json!({"approval_id": "b"}), "approved: x"))),
            ("c", Err(CliFailure::Usage("no id".to_owned()))),
        ]);
        assert_eq!((report.exit, report.text.as_str()), (CommandExit::NotFound, "approved: x"));
        assert_eq!(report.data["decided"][0]["approval_id"], "b");
        assert_eq!(report.data["failed"][1]["error_code"], "invalid_argument");
        assert_eq!(report.notes[0], "termgate: a: none (invalid_argument)");
    }
}
