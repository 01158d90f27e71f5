//! `send`: types text into a session.

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::ToolAnswer;
use crate::cli::duration::{millis, millis_within, parse_duration};
use crate::cli::exit::{CommandExit, WaitedFor};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::cli::own_lease::OwnLease;
use crate::cli::table::of_delta;
use crate::core::counted::counted;
use crate::wire::wait::WaitOutcome;
use crate::wire::wait::WriteResult;
use crate::wire::word;

/// Type text into a session
///
/// Without a lease, it takes the session's lease for this one call if it is free. If it waits, it prints
/// the rows that changed, and ends with 6 when it timed out.
#[derive(Debug, Args)]
pub struct SendCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// The text; write `--` before it if it begins with a dash
    text: String,
    /// Press Enter after it
    #[arg(long)]
    enter: bool,
    /// Send the text as one paste, so that newlines run no commands; auto: if the program supports it
    #[arg(long, value_enum, default_value_t = PasteMode::Auto)]
    paste: PasteMode,
    #[command(flatten)]
    lease: OwnLease,
    /// Type only if the screen has not changed since this watermark, from `read --json`
    #[arg(long, value_name = "WATERMARK", value_parser = number::<u64>)]
    expect: Option<u64>,
    /// Then wait until this text appears, also where it only echoes what was typed
    #[arg(long, value_name = "TEXT")]
    until_text: Option<String>,
    /// Then wait until a line matches this regular expression
    #[arg(long, value_name = "REGEX")]
    until_pattern: Option<String>,
    /// Then wait until the screen has not changed for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    until_idle: Option<Duration>,
    /// Wait at most this long [default: 5s, with one of --until]; alone, it waits until the screen has not
    /// changed for 200ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// When text is a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum PasteMode {
    Auto,
    Always,
    Never,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("session", "SESSION"),
    ("text", "TEXT"),
    ("lease_id", "--lease-file or TERMGATE_LEASE"),
    ("expect_watermark", "--expect"),
    ("until.text", "--until-text"),
    ("until.pattern", "--until-pattern"),
    ("until.idle_ms", "--until-idle"),
    ("wait_ms", "--wait"),
];

impl SendCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        if let Some(wait) = self.wait {
            millis_within("--wait", wait, 0..=600_000).map_err(CliFailure::Usage)?;
        }
        if let Some(idle) = self.until_idle {
            millis_within("--until-idle", idle, 1..=600_000).map_err(CliFailure::Usage)?;
        }
        let lease = self.lease.id()?;
        let daemon = context.daemon().await?;
        write_report(daemon.act("send_text", self.arguments(lease)).await?)
    }

    fn arguments(self, lease: Option<String>) -> Value {
        let waits =
            self.until_text.is_some() || self.until_pattern.is_some() || self.until_idle.is_some();
        let until = waits.then(|| {
            json!({
                "text": self.until_text,
                "pattern": self.until_pattern,
                "idle_ms": self.until_idle.map(millis),
            })
        });
        json!({
            "session": self.session,
            "text": self.text,
            "enter": self.enter,
            "paste": self.paste,
            "lease_id": lease,
            "expect_watermark": self.expect,
            "until": until,
            "wait_ms": self.wait.map(millis),
        })
    }
}

/// The report of a command that typed: the changes, if it waited, and any problems.
///
/// # Errors
/// The answer has another form than that of a write.
pub fn write_report(answer: ToolAnswer) -> Result<CommandReport, CliFailure> {
    let written: WriteResult = answer.read()?;
    let text = written.changed.as_ref().map_or_else(String::new, of_delta);
    let report = answer.report(text);
    Ok(CommandReport { notes: notes(&written), exit: exit(&written), ..report })
}

fn exit(written: &WriteResult) -> CommandExit {
    let wait = written.wait.as_ref();
    wait.map_or(CommandExit::Done, |wait| {
        CommandExit::of_outcome(wait.outcome, WaitedFor::OtherThings)
    })
}

fn notes(written: &WriteResult) -> Vec<String> {
    let session = &written.session;
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    let queued = some(written.queued_bytes)
        .map(|count| format!("{} queued: the program does not read", counted(count, "byte")));
    let discarded =
        some(written.discarded).map(|count| format!("{} discarded", counted(count, "byte")));
    let warning = written.warning.as_ref().map(|warning| format!("warning: {warning}"));
    let outcome = written.wait.as_ref().map(|wait| {
        if wait.outcome != WaitOutcome::DaemonLeft {
            return word(&wait.outcome).to_string();
        }
        format!(
            "the daemon was upgraded after you typed {}; do not type them again: continue with \
             `termgate wait {session} ... --since {}`",
            counted(written.written, "byte"),
            written.watermark
        )
    });
    let left_out = written.changed.as_ref().and_then(|changed| {
        let (rows, from) = (changed.rows_left_out?, changed.from);
        Some(format!(
            "{} changed: `termgate read {session} --since {from}` prints all",
            counted(rows, "more row")
        ))
    });
    [queued, discarded, warning, outcome, left_out].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(more: Value) -> WriteResult {
        let mut written = json!({
            "session": "0a", "written": 5, "queued_bytes": 0, "discarded": 0, "watermark": 9,
        });
        written.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(written).unwrap()
    }

    fn waited(outcome: &str) -> WriteResult {
        let activity =
            json!({"state": "running", "evidence": "kernel", "echo": true, "canonical": true});
        written(json!({"wait": {
            "outcome": outcome, "session": "0a", "activity": activity, "last_rows": [],
            "watermark": 9, "elapsed_ms": 1,
        }}))
    }

    #[test]
    fn a_write_that_was_sent_whole_says_nothing() {
        let written = written(json!({}));
        assert_eq!((notes(&written), exit(&written)), (Vec::new(), CommandExit::Done));
    }

    #[test]
    fn bytes_that_did_not_arrive_and_warnings_are_reported() {
        let more = json!({"queued_bytes": 2, "discarded": 3, "warning": "the line is cut"});
        let notes = notes(&written(more));
        assert!(notes[0].starts_with("2 bytes queued"), "{notes:?}");
        assert!(notes[1].starts_with("3 bytes discarded"), "{notes:?}");
        assert_eq!(notes[2], "warning: the line is cut");
    }

    #[test]
    fn changed_rows_that_are_left_out_are_reported_with_the_way_to_them() {
        let changed = json!({
            "from": 7, "watermark": 9, "base_row": 0, "rows_left_out": 3, "next_top": 5,
            "updates": [],
        });
        let notes = notes(&written(json!({"changed": changed})));
        assert_eq!(notes, ["3 more rows changed: `termgate read 0a --since 7` prints all"]);
    }

    #[test]
    fn a_daemon_that_left_says_what_was_typed_and_how_to_go_on() {
        let written = waited("daemon_left");
        let notes = notes(&written);
        assert!(notes[0].contains("after you typed 5 bytes"), "{notes:?}");
        assert!(notes[0].contains("`termgate wait 0a ... --since 9`"), "{notes:?}");
        assert_eq!(exit(&written), CommandExit::Unreachable);
    }

    #[test]
    fn a_wait_after_the_write_decides_how_the_command_ends() {
        assert_eq!(exit(&waited("timeout")), CommandExit::TimedOut);
        assert_eq!(exit(&waited("matched")), CommandExit::Done);
        assert_eq!(exit(&waited("exited")), CommandExit::Failed);
    }
}
