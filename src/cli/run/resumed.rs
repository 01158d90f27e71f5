//! Follows a running command under the next daemon after its daemon exited.
//!
//! It never sends the command again.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::daemon::RETURN_MAX;
use crate::cli::duration::millis;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::{CommandReport, reader_gone};
use crate::cli::run::interrupts::Interrupts;
use crate::cli::run::output::LiveCommand;
use crate::cli::run::{FollowEnd, bare, follow};
use crate::config::paths::RuntimePaths;
use crate::core::moment::Moment;
use crate::session::pty::held::shims::socket_of;
use crate::session::pty::sidecar_files::Remains;

/// A command that continues without a daemon.
#[derive(Debug)]
pub(super) struct ResumedCommand<'a> {
    pub(super) context: &'a Context,
    /// The name of its session.
    pub(super) name: &'a str,
    pub(super) max_lines: Option<u64>,
    /// The end of the wait.
    pub(super) until: Moment,
}

impl ResumedCommand<'_> {
    /// Waits for the next daemon, and follows the command under it until it ends or waits for input.
    pub(super) async fn follow(
        &self,
        live: &mut LiveCommand<'_>,
        interrupts: &mut Interrupts,
    ) -> Result<FollowEnd, CliFailure> {
        let session = &live.session;
        // Whether a daemon can follow the command in time.
        let returning = async {
            let most = RETURN_MAX.min(self.time_left());
            if live.daemon.resume_while(most, || self.is_held(session)).await.is_err() {
                return Ok(false);
            }
            let answers = live.daemon.outlast_silence(session, self.name, &self.context.output);
            let answers = timeout(self.time_left(), answers).await;
            answers.map_or(Ok(false), |answers| answers.map(|()| true))
        };
        let is_back = tokio::select! {
            is_back = returning => is_back?,
            _ = interrupts.next() => return Err(self.left(live)),
            () = reader_gone() => return Ok(FollowEnd::Unread),
        };
        if !is_back {
            let overdue = self.time_left().is_zero() && self.is_held(session);
            return if overdue { Ok(FollowEnd::Overdue) } else { Err(self.left(live)) };
        }
        live.subscribe().await?;
        let Some(number) = live.number().await? else { return Err(self.unsent(live)) };
        // Sent before anything is shown, so that ending this program interrupts the command.
        let posted = live.daemon.post("follow_command", self.arguments(live, number))?;
        match live.catch_up().await {
            Err(failure) if failure.is_unread() => Ok(FollowEnd::Unread),
            shown => {
                shown?;
                follow(posted, live, interrupts).await
            }
        }
    }

    fn arguments(&self, live: &LiveCommand<'_>, number: u64) -> Value {
        json!({
            "session": live.session,
            "id": number,
            "timeout_ms": millis(self.time_left()),
            "max_lines": self.max_lines,
            "on_cancel": "interrupt",
        })
    }

    fn time_left(&self) -> Duration {
        self.context.output.clock().now().until(self.until)
    }

    /// The report when the time is over and no daemon returned.
    pub(super) fn overdue(&self, live: &LiveCommand<'_>) -> CommandReport {
        let name = self.name;
        let told = "the daemon exited, and no other started in time; the command keeps running";
        let data = json!({
            "session": live.session,
            "command_id": live.known(),
            "status": "timeout",
            "exit_code": null,
            "warning": told,
        });
        let hint = format!(
            "once a daemon runs (`termgate serve` starts one), wait with `termgate wait {name} \
             --command-done --since 0`, or stop it with `termgate keys {name} C-c`"
        );
        CommandReport { notes: vec![told.to_owned(), hint], ..bare(data, CommandExit::GOES_ON) }
    }

    /// Whether the session still has a shim.
    pub(super) fn is_held(&self, session: &str) -> bool {
        is_held(self.context, session).unwrap_or(true)
    }

    fn left(&self, live: &LiveCommand<'_>) -> CliFailure {
        self.gone(live, "the daemon exited while the command ran; the command keeps running")
    }

    /// The failure when the daemon exited while the command was interrupted.
    pub(super) fn left_at_interrupt(&self, live: &LiveCommand<'_>) -> CliFailure {
        self.gone(live, "the daemon went away during the interrupt; the command may still run")
    }

    fn gone(&self, live: &LiveCommand<'_>, what: &'static str) -> CliFailure {
        let name = self.name;
        let number = live.known();
        let details = json!({"session": live.session, "command_id": number});
        if !self.is_held(&live.session) {
            let what = "the daemon exited, and the session and the command with it";
            let hint = "`termgate ls` shows the sessions there are".to_owned();
            return CliFailure::Left { what, hint, details };
        }
        let number = number.map_or_else(String::new, |number| format!(" {number}"));
        let hint = format!(
            "do not run it again: once a daemon runs (`termgate serve` starts one), `termgate \
             commands {name}{number}` tells what became of it"
        );
        CliFailure::Left { what, hint, details }
    }

    fn unsent(&self, live: &LiveCommand<'_>) -> CliFailure {
        let what = "the daemon exited, and the next one does not know the command";
        let name = self.name;
        let hint = format!("look with `termgate read {name}` before you run it again");
        CliFailure::Left {
            what,
            hint,
            details: json!({"session": live.session, "command_id": null}),
        }
    }
}

/// Whether the session waits for a daemon, with a shim or without; none when that is unknown.
fn is_held(context: &Context, session: &str) -> Option<bool> {
    let operator = context.operator_socket().ok()?;
    let paths = RuntimePaths::at(operator.parent().map(Path::to_owned)?).ok()?;
    let socket = socket_of(&paths.shims(), session.parse().ok()?);
    Some(socket.exists() || Remains::beside(&socket).has_ended())
}
