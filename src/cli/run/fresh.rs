//! A session for one command: the user's shell in the working directory, removed after the command.
//!
//! It keeps a session whose command continues, so that the user finds it by its name.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::new::surroundings;
use crate::cli::output::{CommandReport, note_to_all, reader_gone};
use crate::cli::run::interrupts::Interrupts;
use crate::cli::run::stopping::{UNAPPROVED, unapproved, unread};
use crate::core::code::Code;
use crate::session::pty::environment::handed_down;
use crate::transport::client::ClientError;
use crate::wire::session::Created;

/// How long its removal may take.
const REMOVAL_MAX: Duration = Duration::from_secs(5);

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
    /// Creates it with the environment of this process and these variables.
    ///
    /// What each session gets from its client, as `termgate new` hands it on, is not set once more: rules ask about a `PATH`
    /// that is set.
    /// It waits for an approval at most this long.
    pub(super) async fn create(
        daemon: &DaemonClient,
        (cwd, env): (Option<PathBuf>, &[(String, String)]),
        most: Duration,
        interrupts: &mut Interrupts,
    ) -> Result<Creating, CliFailure> {
        let mut arguments = surroundings(cwd)?;
        let handed_on = arguments["env_client"].as_object().cloned().unwrap_or_default();
        let inherited = handed_down(env::vars_os());
        let inherited = inherited.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let inherited = inherited.filter(|(name, _)| !handed_on.contains_key(name));
        let own: BTreeMap<String, String> = inherited.chain(env.iter().cloned()).collect();
        arguments["env"] = json!(own);
        arguments["lease"] = Value::Bool(false);
        arguments["one_command"] = Value::Bool(true);
        let posted = daemon.post_patiently("create_session", arguments, most)?;
        let asked = posted.asked_about();
        // A session that nobody is asked about is there in a moment, and is removed after that.
        let given_up = async {
            asked.asked().await;
            tokio::select! {
                exit = interrupts.next() => unapproved(None, exit),
                () = reader_gone() => unread(),
            }
        };
        tokio::select! {
            biased;
            answer = posted.wait() => {
                let Created { session, .. } = answer?.read()?;
                Ok(Creating::Created(Self { id: session.id, name: session.name }))
            }
            given_up = given_up => Ok(Creating::GivenUp(given_up)),
        }
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
        // A hung daemon must not delay the exit.
        let removed = timeout(REMOVAL_MAX, self.remove(daemon)).await;
        let problem = match removed {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure.to_string()),
            Err(_) => Some("the daemon does not answer".to_owned()),
        };
        if let Some(problem) = problem {
            let name = &self.name;
            note_to_all(&format!(
                "session `{name}` was kept: {problem}; `termgate kill {name}` ends it"
            ));
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
