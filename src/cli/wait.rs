//! `wait`: sleeps until something happens in a session.

use std::time::Duration;

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis, parse_duration};
use crate::cli::exit::{Exit, WaitedFor};
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// Wait until something happens in a session, or in the first of several
///
/// Ends with 0 when what was waited for happened, with 6 when the time is over, and with 1 when the
/// stop text appeared or the program ended although that was not waited for.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("condition").required(true).multiple(true))]
pub struct Wait {
    /// Ids, unique prefixes of them, or names
    #[arg(required = true, add = ArgValueCompleter::new(offer_sessions))]
    sessions: Vec<String>,
    /// Until this text appears
    #[arg(long, value_name = "TEXT", group = "condition", conflicts_with = "regex")]
    pattern: Option<String>,
    /// Until this regular expression matches; --stop is one then as well
    #[arg(long, group = "condition")]
    regex: Option<String>,
    /// Give up when this text appears
    #[arg(long, value_name = "TEXT", group = "condition")]
    stop: Option<String>,
    /// Until the screen stands still for so long
    #[arg(long, value_name = "DURATION", group = "condition", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// Until anything changes
    #[arg(long, group = "condition")]
    change: bool,
    /// Until a command ends
    #[arg(long, group = "condition")]
    command_done: bool,
    /// Until the program waits for somebody to type
    #[arg(long, group = "condition")]
    needs_input: bool,
    /// Until the program ends
    #[arg(long, group = "condition")]
    exit: bool,
    /// Count what happened after this watermark, not only what comes
    #[arg(long, value_name = "WATERMARK")]
    since: Option<u64>,
    /// Wait so long at most
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    timeout: Duration,
}

impl Wait {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead; running out of time is no error.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let waited_for = if self.exit { WaitedFor::Exit } else { WaitedFor::OtherThings };
        let several = self.sessions.len() > 1;
        let answer = context.daemon().await?.call("wait_for", self.arguments()).await?;
        let exit = Exit::of_outcome(&answer.text_at("/outcome"), waited_for);
        let session = several.then(|| format!("in session {}", answer.text_at("/session")));
        let report = answer.report_as_told();
        Ok(Report { exit, notes: session.into_iter().collect(), ..report })
    }

    fn arguments(self) -> Value {
        json!({
            "sessions": self.sessions,
            "regex": self.regex.is_some(),
            "pattern": self.pattern.or(self.regex),
            "stop_pattern": self.stop,
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
