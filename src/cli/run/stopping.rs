//! What `run` reports when it is ended before its command: by a signal, or because nobody reads its output.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::daemon::DaemonClient;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::run::interrupts::Interrupts;
use crate::cli::run::output::LiveCommand;
use crate::cli::run::resumed::ResumedCommand;
use crate::cli::run::{bare, of_code};
use crate::transport::client::ClientError;
use crate::wire::policy::ApprovalList;

/// How long an interrupted command may take to end.
const PARTING_MAX: Duration = Duration::from_secs(5);

/// How long the daemon may take to explain why the interrupt failed.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The report of a command that was interrupted because this program ends, with its last output.
///
/// Without a daemon it is unknown whether the interrupt arrived.
pub(super) async fn interrupted(
    live: &mut LiveCommand<'_>,
    interrupts: &mut Interrupts,
    exit: CommandExit,
    resumed: &ResumedCommand<'_>,
) -> Result<CommandReport, CliFailure> {
    let ended = tokio::select! {
        ended = timeout(PARTING_MAX, live.rest()) => match ended {
            Ok(Err(CliFailure::Request(ClientError::Closed))) => {
                return Err(resumed.left_at_interrupt(live));
            }
            ended => ended.ok().and_then(Result::ok),
        },
        // A second signal ends the wait.
        _ = interrupts.next() => None,
    };
    let exit = ended.flatten().map_or(exit, of_code);
    let data =
        json!({"session": live.session, "status": "interrupted", "exit_code": ended.flatten()});
    let mut report = bare(data, exit);
    if ended.is_none() {
        let read = format!("`termgate read {}`", live.session);
        report.notes.push(match prevented(live).await {
            Some(why) => {
                report.data["status"] = json!("timeout");
                report.data["warning"] = json!(why);
                format!("{why}; it keeps running, and {read} shows it")
            }
            None => format!("interrupted; {read} shows whether it has ended"),
        });
    }
    Ok(report)
}

/// The note when this program was ended before its call was approved.
pub(super) const UNAPPROVED: &str = "interrupted while it waited for an approval; nothing ran";

/// The report when this program was ended while its call waited for an approval.
pub(super) fn unapproved(session: Option<&str>, exit: CommandExit) -> CommandReport {
    let data = json!({"session": session, "status": "interrupted", "exit_code": null});
    let notes = vec![UNAPPROVED.to_owned()];
    CommandReport { notes, ..bare(data, exit) }
}

/// The report when standard output was closed.
pub(super) fn unread() -> CommandReport {
    bare(Value::Null, CommandExit::UNREAD)
}

/// The report when this program was ended, and its call may have been approved a moment before.
pub(super) fn unknown((session, name): (&str, &str), exit: CommandExit) -> CommandReport {
    let data = json!({"session": session, "status": "interrupted", "exit_code": null});
    let notes = vec![format!("interrupted; it may have run: `termgate read {name}` shows it")];
    CommandReport { notes, ..bare(data, exit) }
}

/// Whether this approval is still to be given; none if the daemon does not say.
pub(super) async fn is_waiting(daemon: &DaemonClient, approval: &str) -> Option<bool> {
    let look = async {
        // A connection is not shown the approvals of its own calls.
        let other = DaemonClient::connect(daemon.path()).await?;
        other.call("list_approvals", json!({})).await?.read::<ApprovalList>()
    };
    let listed = timeout(LOOK_MAX, look).await.ok()?.ok()?;
    Some(listed.approvals.iter().any(|it| it.approval_id == approval))
}

/// Whether the session lists the command; none if the daemon does not say. One that is about to be typed is not listed.
pub(super) async fn is_listed(live: &mut LiveCommand<'_>) -> Option<bool> {
    let number = timeout(LOOK_MAX, live.number()).await.ok()?.ok()?;
    Some(number.is_some())
}

/// Why the daemon does not allow this client to interrupt the command, if it does not.
async fn prevented(live: &LiveCommand<'_>) -> Option<String> {
    let look = json!({
        "session": live.session, "id": live.known()?, "timeout_ms": 0, "on_cancel": "interrupt",
    });
    let told = timeout(LOOK_MAX, live.daemon.call("follow_command", look)).await.ok()?.ok()?;
    told.data["warning"].as_str().map(str::to_owned)
}
