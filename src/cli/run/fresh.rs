//! A session that is there for one command: your shell, where you are, and gone with the command.
//!
//! It never ends what goes on: whoever has to answer or to wait finds the session by its name.

use serde_json::{Value, json};

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::new::{create, surroundings};
use crate::cli::output::Report;

/// Such a session.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) id: String,
    pub(super) name: String,
}

impl Fresh {
    /// Creates it.
    pub(super) async fn create(daemon: &Daemon) -> Result<Self, Failure> {
        let mut arguments = surroundings(None)?;
        arguments["lease"] = Value::Bool(false);
        let created = create(daemon, arguments).await?;
        Ok(Self { id: created.text_at("/session/id"), name: created.text_at("/session/name") })
    }

    /// Removes it, unless the command goes on in it.
    pub(super) async fn leave(
        self,
        daemon: &Daemon,
        ended: Result<Report, Failure>,
    ) -> Result<Report, Failure> {
        if matches!(ended, Err(Failure::Left { .. })) {
            return ended;
        }
        let status = ended.as_ref().ok().and_then(|report| report.data["status"].as_str());
        if matches!(status, Some("timeout" | "needs_input" | "lease_lost" | "lease_suspended")) {
            return ended.map(|mut report| {
                report.notes.push(format!("session {} is left to it", self.name));
                report
            });
        }
        let over = matches!(status, Some("exited" | "interrupted"));
        self.remove(daemon).await;
        ended.map(|mut report| {
            if over {
                // They tell of the session.
                report.notes.clear();
            }
            if let Value::Object(members) = &mut report.data {
                members.remove("rest");
            }
            report
        })
    }

    async fn remove(&self, daemon: &Daemon) {
        let kill = || daemon.call("manage_session", json!({"session": self.id, "action": "kill"}));
        // The first ends it, unless it has ended, and the next one has it forgotten. What is gone
        // needs neither.
        for _ in 0..2 {
            if kill().await.is_err() {
                break;
            }
        }
    }
}
