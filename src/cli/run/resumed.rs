//! A command whose daemon went away: it goes on, and is followed by its number under the next one.
//!
//! It never sends the command again, whatever is known of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::Signal;

use crate::cli::context::Context;
use crate::cli::daemon::Answer;
use crate::cli::duration::millis;
use crate::cli::failure::Failure;
use crate::cli::reader;
use crate::cli::run::live::Live;
use crate::cli::run::{End, follow};
use crate::config::paths::RuntimePaths;
use crate::core::moment::Moment;
use crate::session::pty::held::options::socket_of;

/// How long the next daemon is looked for.
const RETURN_MAX: Duration = Duration::from_secs(10);

/// What is known of a command that goes on without a daemon.
#[derive(Debug)]
pub(super) struct Resumed<'a> {
    pub(super) context: &'a Context,
    /// The name of its session.
    pub(super) name: &'a str,
    pub(super) lease: Option<&'a str>,
    pub(super) max_lines: u64,
    /// Until when it is waited for.
    pub(super) until: Moment,
}

impl Resumed<'_> {
    /// Waits for the next daemon, and follows the command under it until it ends or asks.
    ///
    /// # Errors
    /// That there is none in time, or that it knows of no such command.
    pub(super) async fn follow(
        &self,
        live: &mut Live<'_>,
        interrupts: &mut Signal,
    ) -> Result<End, Failure> {
        let daemon = tokio::select! {
            found = self.context.next_daemon(RETURN_MAX, || self.is_held(live)) => found.ok(),
            _ = interrupts.recv() => None,
            () = reader::gone() => return Ok(End::Unread),
        };
        let Some(daemon) = daemon else { return Err(self.left(live)) };
        live.resume(Arc::new(daemon)).await?;
        let Some(number) = live.number().await? else { return Err(self.unsent(live)) };
        loop {
            let told = self.read(live, number).await?;
            if told.data["status"] != "running" {
                return Ok(End::Answered(told));
            }
            let wait = json!({
                "session": live.session,
                "command_done": true,
                "needs_input": true,
                "since": told.data["watermark"],
                "timeout_ms": millis(self.context.output.clock().now().until(self.until)),
            });
            let waiting = live.daemon().post("wait_for", wait)?;
            let waited = match follow(waiting, live, interrupts).await? {
                End::Answered(waited) => waited,
                End::Interrupted => {
                    self.interrupt(live).await;
                    return Ok(End::Interrupted);
                }
                End::Unread => return Ok(End::Unread),
            };
            let outcome = waited.text_at("/outcome");
            if outcome == "command_done" {
                continue;
            }
            // What came while it was waited for is told as well.
            let mut told = self.read(live, number).await?;
            told.data = at(told.data, outcome, waited.data);
            return Ok(End::Answered(told));
        }
    }

    /// The command as it is now, in the words of `run`.
    async fn read(&self, live: &Live<'_>, number: u64) -> Result<Answer, Failure> {
        let asked = json!({
            "session": live.session,
            "id": number,
            "head": self.max_lines.div_ceil(2),
            "tail": self.max_lines / 2,
        });
        let mut answer = live.daemon().call("read_commands", asked).await?;
        answer.data = of_run(answer.data);
        Ok(answer)
    }

    /// Presses C-c, which nobody else does any more.
    async fn interrupt(&self, live: &Live<'_>) {
        let keys = json!({"session": live.session, "keys": "C-c", "lease_id": self.lease});
        // Whether it ended is seen all the same.
        let _ = live.daemon().call("send_keys", keys).await;
    }

    /// Whether somebody still has the terminal of the session.
    fn is_held(&self, live: &Live<'_>) -> bool {
        is_held(self.context, &live.session).unwrap_or(true)
    }

    fn left(&self, live: &Live<'_>) -> Failure {
        let name = self.name;
        let number = live.known();
        let details = json!({"session": live.session, "command_id": number});
        if !self.is_held(live) {
            let what = "the daemon went away, and the session and the command with it";
            let hint = "`termgate ls` shows the sessions there are".to_owned();
            return Failure::Left { what, hint, details };
        }
        let number = number.map_or_else(String::new, |number| format!(" {number}"));
        let what = "the daemon went away while the command ran; the command goes on";
        let hint = format!(
            "do not run it again: once a daemon runs (`termgate serve` starts one), `termgate \
             commands {name}{number}` tells what became of it"
        );
        Failure::Left { what, hint, details }
    }

    fn unsent(&self, live: &Live<'_>) -> Failure {
        let what = "the daemon went away, and the next one knows of no such command";
        let name = self.name;
        let hint = format!("look with `termgate read {name}` before you run it again");
        Failure::Left { what, hint, details: json!({"session": live.session, "command_id": null}) }
    }
}

/// What `read_commands` tells of one command, as `run` would.
fn of_run(mut data: Value) -> Value {
    let mut command = data["commands"][0].take();
    if let Value::Object(members) = &mut data {
        members.remove("commands");
    }
    for member in ["command_id", "status", "exit_code", "evidence"] {
        data[member] = command[member].take();
    }
    data
}

/// The same, where a wait for its end had this outcome instead.
fn at(mut data: Value, outcome: String, mut waited: Value) -> Value {
    let asks = waited["last_rows"].as_array_mut().and_then(Vec::pop);
    if let Some(asks) = asks.filter(|_| outcome == "needs_input") {
        data["prompt"] = asks;
    }
    data["status"] = Value::String(outcome);
    data["activity"] = waited["activity"].take();
    data
}

/// Whether there is somebody at the place where the terminal of a session is held, as far as that can
/// be told.
fn is_held(context: &Context, session: &str) -> Option<bool> {
    let operator = context.operator_socket().ok()?;
    let paths = RuntimePaths::at(operator.parent().map(Path::to_owned)?).ok()?;
    Some(socket_of(&paths.holders(), session.parse().ok()?).exists())
}
