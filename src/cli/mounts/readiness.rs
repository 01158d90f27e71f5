//! What becomes of servers that were just added: waits until each lists its tools or fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::mounts::edit::{MountsEdit, ServerWait};
use crate::cli::output::CommandReport;
use crate::core::counted::counted;
use crate::core::ids::SessionId;
use crate::core::mount::INITIALIZE_TIMEOUT;
use crate::wire::mount::{MountList, MountWire};
use crate::wire::status::Switched;

/// How long servers may take before the command ends without them: longer than the daemon waits for one, so that it is told
/// why one did not start.
const READY_WAIT: Duration = INITIALIZE_TIMEOUT.saturating_add(Duration::from_secs(5));

/// The pause between two looks. The daemon tells nobody when a server fails.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The status of a server that lists its tools.
const RUNNING: &str = "running";

/// What has become of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct AddedServerState {
    name: String,
    /// `ready`, `failed`, `changed` where a server of this name had other tools, `waiting` after the time is up, or
    /// `unknown` to the daemon.
    state: &'static str,
    /// How many tools it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Whether the daemon starts it again by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retries: bool,
}

impl AddedServerState {
    /// `None` while that is open.
    fn of(mount: &MountWire) -> Option<Self> {
        let (name, retries) = (mount.name.clone(), mount.retries);
        match (&mount.problem, mount.accepted) {
            (Some(problem), _) => {
                let problem = Some(problem.clone());
                Some(Self { name, state: "failed", tools: None, problem, retries })
            }
            (None, _) if mount.changed => {
                let problem = format!("its tools have changed: termgate mounts accept {name}");
                Some(Self { name, state: "changed", tools: None, problem: Some(problem), retries })
            }
            (None, Some(count)) if mount.status == RUNNING => {
                Some(Self { name, state: "ready", tools: Some(count), problem: None, retries })
            }
            (None, _) => None,
        }
    }

    fn without(name: &str, state: &'static str) -> Self {
        Self { name: name.to_owned(), state, tools: None, problem: None, retries: false }
    }

    fn line(&self) -> String {
        let name = &self.name;
        match (self.tools, &self.problem, self.state) {
            (Some(count), ..) => format!("{name}: {}", counted(count, "tool")),
            (None, Some(problem), _) if self.retries => {
                format!("{name}: {problem}; it is tried again: `termgate mounts` shows how it does")
            }
            (None, Some(problem), _) => format!("{name}: {problem}"),
            (None, None, "unknown") => format!("{name}: the daemon does not read this file"),
            (None, None, _) => {
                let most = READY_WAIT.as_secs();
                format!("{name}: not ready after {most} s; `termgate mounts` shows when it is")
            }
        }
    }
}

/// Has a running daemon read what was written, and says what becomes of the servers that were added.
pub(super) async fn reloaded_and_ready(
    edit: MountsEdit,
    wait: ServerWait,
    context: &Context,
) -> CommandReport {
    let edit = edit.reloaded(context).await;
    let (is_read, mut report) = (edit.is_read, edit.report);
    let added = Vec::<String>::deserialize(&report.data["added"]).unwrap_or_default();
    if wait.no_wait || !is_read || added.is_empty() {
        return report;
    }
    // What was done is told before the wait.
    report.notes.drain(..).for_each(|note| context.output.note(&note));
    if let Err(failure) = watch(context, added, &mut report).await {
        // The servers were added all the same.
        report.notes.push(format!("what becomes of them is not known: {failure}"));
    }
    report
}

async fn watch(
    context: &Context,
    mut open: Vec<String>,
    report: &mut CommandReport,
) -> Result<(), CliFailure> {
    let daemon = context.running_daemon().await?;
    let clock = context.output.clock();
    let until = clock.now() + READY_WAIT;
    let mut states = Vec::new();
    let list: MountList = daemon.call("manage_mounts", json!({"action": "list"})).await?.read()?;
    let is_known = |it: &&MountWire| it.accepted.is_some() && it.generation == 0;
    for mount in list.mounts.iter().filter(is_known).filter(|it| open.contains(&it.name)) {
        // Its tools are known from before, so that it would start with its first call.
        daemon.call("manage_mounts", json!({"action": "restart", "mount": mount.name})).await?;
    }
    while !open.is_empty() {
        let is_late = clock.now() >= until;
        let list: MountList =
            daemon.call("manage_mounts", json!({"action": "list"})).await?.read()?;
        open.retain(|name| {
            let state = match list.mounts.iter().find(|it| it.name == *name) {
                None => Some(AddedServerState::without(name, "unknown")),
                Some(mount) => AddedServerState::of(mount),
            };
            let late = || is_late.then(|| AddedServerState::without(name, "waiting"));
            let Some(state) = state.or_else(late) else { return true };
            context.output.note(&state.line());
            states.push(state);
            false
        });
        report.data["servers"] = json!(states);
        if !open.is_empty() {
            sleep(LOOK_AGAIN).await;
        }
    }
    let writing = is_writing_on(&daemon).await?;
    report.data["writing"] = json!(writing);
    if !writing && states.iter().any(|it| it.tools.is_some_and(|count| count > 0)) {
        report.notes.push(
            "writing is off: clients see no tools that may write until you run: termgate allow-write on"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether any clients may write beyond single sessions, whose switches do not count for mounts.
async fn is_writing_on(daemon: &DaemonClient) -> Result<bool, CliFailure> {
    let switched = daemon.call("set_write", json!({"state": "status"})).await?;
    let switched: Switched = switched.read()?;
    let is_session = |scope: &str| scope.parse::<SessionId>().is_ok();
    Ok(switched.write.on.iter().any(|it| !is_session(&it.scope)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(accepted: Option<usize>, problem: Option<&str>) -> MountWire {
        let told = json!({
            "name": "a", "server": "x", "trust": "trusted", "status": "running", "generation": 1,
            "accepted": accepted, "changed": false, "problem": problem,
        });
        serde_json::from_value(told).unwrap()
    }

    #[test]
    fn a_server_is_open_until_its_tools_are_known_or_it_has_failed() {
        assert_eq!(AddedServerState::of(&mount(None, None)), None);
        let line = |mount| AddedServerState::of(&mount).unwrap().line();
        assert_eq!(line(mount(Some(1), None)), "a: 1 tool");
        assert_eq!(line(mount(None, Some("it ended"))), "a: it ended");
        let retries = MountWire { retries: true, ..mount(None, Some("it ended")) };
        assert!(line(retries).starts_with("a: it ended; it is tried again"));
        let mut other = mount(Some(1), None);
        other.changed = true;
        assert!(line(other).contains("termgate mounts accept a"));
        let starts = MountWire { status: "starting".to_owned(), ..mount(Some(1), None) };
        assert_eq!(AddedServerState::of(&starts), None);
        // Its tools are known from before, and it does not start.
        assert_eq!(line(mount(Some(1), Some("it ended"))), "a: it ended");
    }
}
