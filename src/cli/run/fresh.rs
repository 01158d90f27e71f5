//! A session for one command: the user's shell in the working directory, removed after the command.
//!
//! It keeps a session whose command continues, so that the user finds it by its name.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::cli::daemon::{AskedAbout, DaemonClient, ToolAnswer};
use crate::cli::failure::CliFailure;
use crate::cli::new::surroundings;
use crate::cli::output::{CommandReport, note_to_all, reader_gone};
use crate::cli::run::interrupts::Interrupts;
use crate::cli::run::stopping::{UNAPPROVED, is_waiting, unapproved, unread};
use crate::core::code::Code;
use crate::session::pty::environment::handed_down;
use crate::transport::client::ClientError;
use crate::wire::session::Created;

/// How long its removal may take.
const REMOVAL_MAX: Duration = Duration::from_secs(5);

/// How often to look whether its approval is still to be given.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The parameter for a session that is ended without an approval.
const ONE_COMMAND: &str = "one_command";

/// What is said where it is unknown whether the session was created.
const MAY_BE_LEFT: &str =
    "its session may have been created: `termgate ls` shows it, and `termgate kill` ends it";

/// A session for one command.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) id: String,
    pub(super) name: String,
}

/// How the creation of a session for one command ended.
#[derive(Debug)]
pub(super) enum Creating {
    Created(Fresh),
    /// `run` was ended while the session waited for an approval.
    GivenUp(CommandReport),
}

impl Fresh {
    /// Creates it with the environment of this process and these variables. It waits for an approval at most this long.
    pub(super) async fn create(
        daemon: &DaemonClient,
        (cwd, env): (Option<PathBuf>, &[(String, String)]),
        most: Duration,
        interrupts: &mut Interrupts,
    ) -> Result<Creating, CliFailure> {
        let mut arguments = arguments(cwd, env)?;
        arguments[ONE_COMMAND] = Value::Bool(true);
        let made = Self::request(daemon, arguments.clone(), most, interrupts).await;
        let Err(refused) = &made else { return made };
        let is_older = refused.code() == Some(Code::InvalidArgument.as_str())
            && refused.parameter() == Some(ONE_COMMAND);
        if !is_older {
            return made;
        }
        // A daemon from before this parameter did nothing.
        arguments[ONE_COMMAND] = Value::Null;
        Self::request(daemon, arguments, most, interrupts).await
    }

    async fn request(
        daemon: &DaemonClient,
        arguments: Value,
        most: Duration,
        interrupts: &mut Interrupts,
    ) -> Result<Creating, CliFailure> {
        let posted = daemon.post_patiently("create_session", arguments, most)?;
        let asked = posted.asked_about();
        let mut answer = pin!(posted.wait());
        // A session that nobody is asked about is there in a moment, and is removed after that.
        let given_up = async {
            asked.clone().asked().await;
            tokio::select! {
                exit = interrupts.next() => unapproved(None, exit),
                () = reader_gone() => unread(),
            }
        };
        let report = tokio::select! {
            biased;
            answer = &mut answer => return Ok(Creating::Created(Self::of(&answer?)?)),
            report = given_up => report,
        };
        let problem = tokio::select! {
            made = timeout(REMOVAL_MAX, &mut answer) => match made.map(|made| Self::of(&made?)) {
                Ok(Ok(fresh)) => fresh.end(daemon).await,
                Ok(Err(_)) => None,
                Err(_) => Some(MAY_BE_LEFT.to_owned()),
            },
            // Its call is cancelled on return.
            is_unapproved = is_unapproved(daemon, &asked) => {
                (!is_unapproved).then(|| MAY_BE_LEFT.to_owned())
            }
            _ = interrupts.next() => Some(MAY_BE_LEFT.to_owned()),
        };
        if let Some(problem) = problem {
            note_to_all(&problem);
        }
        Ok(Creating::GivenUp(report))
    }

    fn of(answer: &ToolAnswer) -> Result<Self, CliFailure> {
        let Created { session, .. } = answer.read()?;
        Ok(Self { id: session.id, name: session.name })
    }

    /// Removes it, unless its command continues.
    pub(super) async fn leave(
        self,
        daemon: &DaemonClient,
        ended: Result<CommandReport, CliFailure>,
    ) -> Result<CommandReport, CliFailure> {
        if matches!(ended, Err(CliFailure::Left { .. })) {
            return ended;
        }
        let code = ended.as_ref().err().and_then(CliFailure::code);
        if matches!(ended, Err(CliFailure::Request(ClientError::Closed)))
            || code == Some(Code::UpstreamUnavailable.as_str())
        {
            return Err(self.idle());
        }
        let status = ended.as_ref().ok().and_then(|report| report.data["status"].as_str());
        if matches!(status, Some("timeout" | "needs_input" | "lease_lost" | "lease_suspended")) {
            return ended.map(|mut report| {
                report.notes.push(format!("session `{}` was kept", self.name));
                report
            });
        }
        let known = ended.as_ref().is_ok_and(|report| !report.data["exit_code"].is_null());
        let over = status == Some("interrupted") || status == Some("exited") && known;
        if let Some(problem) = self.end(daemon).await {
            note_to_all(&problem);
            return ended;
        }
        ended.map(|mut report| {
            if over {
                // The other notes mention the removed session.
                report.notes.retain(|note| note == UNAPPROVED);
            }
            if let Value::Object(members) = &mut report.data {
                members.remove("rest");
            }
            report
        })
    }

    /// Removes it, and says what to do where that fails.
    async fn end(&self, daemon: &DaemonClient) -> Option<String> {
        // A hung daemon must not delay the exit.
        let removed = timeout(REMOVAL_MAX, self.remove(daemon)).await;
        kept(&self.name, removed.ok())
    }

    /// The failure when the daemon exited before the command was sent.
    fn idle(&self) -> CliFailure {
        let name = &self.name;
        let what = "the daemon went away before the command was sent; nothing ran";
        let hint = format!(
            "session {name} is left with a shell: once a daemon runs (`termgate serve` starts one), \
             `termgate run {name} COMMAND` runs it there, and `termgate kill {name}` ends it"
        );
        CliFailure::Left { what, hint, details: json!({"session": self.id, "command_id": null}) }
    }

    /// # Errors
    /// Why the daemon does not remove it.
    async fn remove(&self, daemon: &DaemonClient) -> Result<(), CliFailure> {
        let kill = || daemon.call("manage_session", json!({"session": self.id, "action": "kill"}));
        // The first call ends the session, if it still runs; the second removes it. A session that is
        // gone needs neither.
        for _ in 0..2 {
            match kill().await {
                Err(refused @ CliFailure::Tool { .. })
                    if refused.code() != Some(Code::SessionNotFound.as_str()) =>
                {
                    return Err(refused);
                }
                Err(_) => break,
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

/// Waits until the approval of the call is known to be still to be given; false if the daemon does not say.
async fn is_unapproved(daemon: &DaemonClient, asked: &AskedAbout) -> bool {
    let Some(id) = asked.approval() else { return false };
    loop {
        match is_waiting(daemon, &id).await {
            Some(true) => return true,
            None => return false,
            // It is decided, or the call is just made again.
            Some(false) => sleep(LOOK_AGAIN).await,
        }
    }
}

/// The arguments that create it. What each session gets from its client, as `termgate new` hands it on, is not set once
/// more: rules ask about a `PATH` that is set.
fn arguments(cwd: Option<PathBuf>, env: &[(String, String)]) -> Result<Value, CliFailure> {
    let mut arguments = surroundings(cwd)?;
    let handed_on = arguments["env_client"].as_object().cloned().unwrap_or_default();
    let inherited = handed_down(env::vars_os());
    let inherited = inherited
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let inherited = inherited.filter(|(name, _)| !handed_on.contains_key(name));
    let own: BTreeMap<String, String> = inherited.chain(env.iter().cloned()).collect();
    arguments["env"] = json!(own);
    arguments["lease"] = Value::Bool(false);
    Ok(arguments)
}

/// What is said where a session was not removed; `removed` is none where the daemon does not answer.
fn kept(name: &str, removed: Option<Result<(), CliFailure>>) -> Option<String> {
    let problem = match removed {
        Some(Ok(())) => return None,
        Some(Err(failure)) => format!("was kept: {failure}"),
        None => "may have been kept: the daemon does not answer".to_owned(),
    };
    Some(format!("session `{name}` {problem}; `termgate kill {name}` ends it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_whose_removal_was_not_answered_may_be_gone() {
        assert_eq!(kept("bash", Some(Ok(()))), None);
        let refused = kept("bash", Some(Err(CliFailure::Usage("no".to_owned()))));
        assert_eq!(refused.unwrap(), "session `bash` was kept: no; `termgate kill bash` ends it");
        assert!(kept("bash", None).unwrap().contains("may have been kept"));
    }
}
