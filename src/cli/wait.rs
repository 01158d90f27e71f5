//! `wait`: waits until something happens in a session.

use std::time::Duration;

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCompleter;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::{RETURN_MAX, ToolAnswer};
use crate::cli::duration::{millis, millis_within, parse_duration};
use crate::cli::exit::{CommandExit, WaitedFor};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::core::human_duration::measured;
use crate::transport::client::ClientError;
use crate::wire::wait::WaitOutcome;

/// The least time to reach a daemon, even with a shorter timeout.
const REACHED_WITHIN: Duration = Duration::from_secs(1);

/// Wait until something happens in a session, or in the first of several
///
/// Ends with 0 when any of the conditions is met, and with 6 when it timed out. Ends with 1 when a stop
/// condition was met, when the program ended without --exit, or when searching for the pattern took too long
/// (`pattern_too_costly`): use a simpler pattern.
///
/// After an upgrade of the daemon it continues under the next one; with --since also after a crash. Ends
/// with 7 if it cannot continue: with several sessions, after a crash without --since, or if no daemon
/// returns.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("condition").required(true).multiple(true))]
pub struct WaitCommand {
    /// Ids, unique prefixes of them, or names
    #[arg(required = true, add = ArgValueCompleter::new(offer_sessions))]
    sessions: Vec<String>,
    /// Until this text appears
    #[arg(long, alias = "until-text", group = "condition")]
    text: Option<String>,
    /// Until a line matches this regular expression
    #[arg(long, alias = "until-pattern", value_name = "REGEX", group = "condition")]
    pattern: Option<String>,
    /// Give up when this text appears
    #[arg(long, value_name = "TEXT", group = "condition")]
    stop_text: Option<String>,
    /// Give up when a line matches this regular expression
    #[arg(long, value_name = "REGEX", group = "condition")]
    stop_pattern: Option<String>,
    /// Until the screen has not changed for this long
    #[arg(long, value_name = "DURATION", group = "condition", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// Until anything changes
    #[arg(long, group = "condition")]
    change: bool,
    /// Until a command ends
    #[arg(long, group = "condition")]
    command_done: bool,
    /// Until the program waits for input
    #[arg(long, group = "condition")]
    needs_input: bool,
    /// Until the program ends
    #[arg(long, group = "condition")]
    exit: bool,
    /// Also match changes that happened after this watermark
    #[arg(long, value_name = "WATERMARK", value_parser = number::<u64>)]
    since: Option<u64>,
    /// Wait at most this long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    timeout: Duration,
}

impl WaitCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        millis_within("--timeout", self.timeout, 0..=600_000).map_err(CliFailure::Usage)?;
        if let Some(idle) = self.idle {
            millis_within("--idle", idle, 1..=600_000).map_err(CliFailure::Usage)?;
        }
        let waited_for = if self.exit { WaitedFor::Exit } else { WaitedFor::OtherThings };
        let answer = self.wait(context).await?;
        let exit = CommandExit::of_outcome(outcome(&answer)?, waited_for);
        let notes = self.notes(&answer);
        Ok(CommandReport { exit, notes, ..answer.report_as_told() })
    }

    /// Waits. If the daemon exits and the watermark is known, continues under the next one.
    async fn wait(&self, context: &Context) -> Result<ToolAnswer, CliFailure> {
        let clock = context.output.clock();
        let begun = clock.now();
        let until = begun + self.timeout;
        let mut asked = self.arguments();
        let reached = timeout(self.timeout.max(REACHED_WITHIN), context.daemon()).await;
        let Ok(daemon) = reached else {
            return Ok(self.overdue(&asked["since"], clock.now().since(begun)));
        };
        let mut daemon = daemon?;
        loop {
            match daemon.call("wait_for", asked.clone()).await {
                // Each session has its own watermarks, so a wait on several sessions cannot continue.
                Ok(mut told) if has_left(&told) && self.sessions.len() == 1 => {
                    asked["since"] = told.data["watermark"].take();
                }
                Err(CliFailure::Request(ClientError::Closed)) if asked["since"].is_null() => {
                    return Err(self.lost());
                }
                Err(CliFailure::Request(ClientError::Closed)) => {}
                Ok(told) => return Ok(lasted(told, clock.now().since(begun))),
                Err(failure) => return Err(failure),
            }
            if daemon.resume(RETURN_MAX.min(clock.now().until(until))).await.is_err() {
                return match clock.now() < until {
                    true => Err(self.not_back(&asked["since"])),
                    false => Ok(self.overdue(&asked["since"], clock.now().since(begun))),
                };
            }
            asked["timeout_ms"] = json!(millis(clock.now().until(until)));
        }
    }

    /// The notes for people besides the answer.
    fn notes(&self, answer: &ToolAnswer) -> Vec<String> {
        if self.sessions.len() == 1 {
            return Vec::new();
        }
        let session =
            answer.data["session"].as_str().map(|session| format!("in session {session}"));
        let left = has_left(answer).then(|| {
            "the daemon was upgraded; of several sessions none is waited for under the next one: run \
             it again, or wait for each by itself with --since"
                .to_owned()
        });
        [session, left].into_iter().flatten().collect()
    }

    /// The failure when the daemon died and the watermark is unknown.
    fn lost(&self) -> CliFailure {
        let what = "the daemon exited during the wait";
        let hint = "nothing was changed: once a daemon runs (`termgate serve` starts one), run it \
                    again, with --since and a watermark to count what happened meanwhile";
        CliFailure::Left {
            what,
            hint: hint.to_owned(),
            details: json!({"sessions": self.sessions}),
        }
    }

    fn not_back(&self, since: &Value) -> CliFailure {
        let what = "the daemon exited, and no other started in time; the session keeps running";
        CliFailure::Left { what, hint: self.going_on(since), details: json!({"since": since}) }
    }

    /// The answer when the time is over while no daemon runs.
    fn overdue(&self, since: &Value, elapsed: Duration) -> ToolAnswer {
        let elapsed_ms = millis(elapsed);
        let told = "no daemon was there when the time was over";
        let going_on = self.going_on(since);
        let text = format!("timeout after {}: {told}\n{going_on}", measured(elapsed_ms));
        let mut data = json!({
            "outcome": "timeout",
            "watermark": since,
            "elapsed_ms": elapsed_ms,
            "warning": told,
        });
        if let [session] = &*self.sessions {
            data["session"] = json!(session);
        }
        ToolAnswer { data, text, mcp_version: None }
    }

    fn going_on(&self, since: &Value) -> String {
        let names = self.sessions.join(" ");
        let from = since.as_u64().map_or_else(String::new, |since| format!(" --since {since}"));
        format!(
            "once a daemon runs (`termgate serve` starts one), continue with `termgate wait {names} \
             ...{from}`"
        )
    }

    fn arguments(&self) -> Value {
        json!({
            "sessions": self.sessions,
            "text": self.text,
            "pattern": self.pattern,
            "stop_text": self.stop_text,
            "stop_pattern": self.stop_pattern,
            "idle_ms": self.idle.map(millis),
            "change": self.change,
            "command_done": self.command_done,
            "needs_input": self.needs_input,
            "exit": self.exit,
            "since": self.since,
            "timeout_ms": millis(self.timeout),
        })
    }
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("sessions", "SESSIONS"),
    ("text", "--text"),
    ("pattern", "--pattern"),
    ("stop_text", "--stop-text"),
    ("stop_pattern", "--stop-pattern"),
    ("idle_ms", "--idle"),
    ("since", "--since"),
    ("timeout_ms", "--timeout"),
];

fn has_left(answer: &ToolAnswer) -> bool {
    matches!(outcome(answer), Ok(WaitOutcome::DaemonLeft))
}

/// Parses only the outcome, since an answer made here lacks the other members of a wait.
fn outcome(answer: &ToolAnswer) -> Result<WaitOutcome, CliFailure> {
    let outcome = WaitOutcome::deserialize(&answer.data["outcome"]);
    Ok(outcome.map_err(|_| ClientError::Malformed)?)
}

/// Sets the answer's time to that of the whole wait, including earlier daemons.
fn lasted(mut told: ToolAnswer, elapsed: Duration) -> ToolAnswer {
    let last = told.data["elapsed_ms"].take().as_u64().unwrap_or_default();
    let all = millis(elapsed).max(last);
    let after = |millis| format!(" after {}", measured(millis));
    told.text = told.text.replacen(&after(last), &after(all), 1);
    told.data["elapsed_ms"] = json!(all);
    told
}
