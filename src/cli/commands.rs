//! `commands`: what ran in a session, and what one of those printed.

use std::time::UNIX_EPOCH;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::{offer_commands, offer_sessions};
use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::duration::{millis, rough};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::{Form, Report};
use crate::cli::printed::Printed;
use crate::cli::table::render;

/// The columns, in the order of [`row`].
const HEAD: [&str; 7] = ["ID", "WHEN", "TOOK", "EXIT", "BY", "CWD", "COMMAND"];

/// How many characters of a command a table shows.
const COMMAND_CHARACTERS: usize = 60;

/// List the commands that ran in a session, or print the output of one
#[derive(Debug, Args)]
pub struct Commands {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// The number of one command: print all of its output that history holds
    #[arg(add = ArgValueCompleter::new(offer_commands))]
    id: Option<u64>,
    /// List so many of the newest, up to 100 [default: 20]
    #[arg(long, value_name = "COMMANDS", conflicts_with = "id")]
    limit: Option<u64>,
    /// List only those older than this one
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    before: Option<u64>,
    /// Print the first so many lines of output, up to 2000
    #[arg(long, value_name = "LINES", requires = "id")]
    head: Option<u64>,
    /// Print the last so many lines of output, up to 2000
    #[arg(long, value_name = "LINES", requires = "id")]
    tail: Option<u64>,
}

impl Commands {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let daemon = context.daemon().await?;
        let answer = daemon.call("read_commands", self.arguments()).await;
        let answer = answer.map_err(|failure| self.unknown(failure))?;
        let session = answer.text_at("/session");
        match self.id {
            Some(id) if context.output.form() == Form::People => {
                let whole = self.head.is_none() && self.tail.is_none();
                let text = if whole { String::new() } else { answer.text_at("/output") };
                let ended = ending(&answer.data["commands"][0]);
                if whole {
                    show(&daemon, context, &session, id).await?;
                }
                let report = answer.report(text);
                Ok(Report { notes: vec![ended], ..report })
            }
            Some(_) => Ok(answer.report("")),
            None => {
                let now = context.output.clock().wall_time();
                let now = millis(now.duration_since(UNIX_EPOCH).unwrap_or_default());
                let text = table(&answer.data, now);
                let notes = about(&answer.data);
                Ok(Report { notes, exit: Exit::Done, ..answer.report(text) })
            }
        }
    }

    /// The failure, which is about what does not exist when it is the number that is refused.
    fn unknown(&self, failure: Failure) -> Failure {
        if failure.parameter() == Some("id") {
            return Failure::NoCommand { session: self.session.clone(), why: failure.to_string() };
        }
        failure
    }

    fn arguments(&self) -> Value {
        json!({
            "session": self.session,
            "id": self.id,
            "limit": self.limit,
            "before": self.before,
            "head": self.head,
            "tail": self.tail,
        })
    }
}

async fn show(daemon: &Daemon, context: &Context, session: &str, id: u64) -> Result<(), Failure> {
    Printed::of(session, id).show(daemon, &context.output).await
}

fn listed(list: &Value) -> &[Value] {
    list["commands"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The commands, one a line; nothing where there are none.
fn table(list: &Value, now: u64) -> String {
    let rows: Vec<_> = listed(list).iter().map(|command| row(command, now)).collect();
    if rows.is_empty() { String::new() } else { render(HEAD, &rows) }
}

fn row(command: &Value, now: u64) -> [String; 7] {
    let text = |name: &str| command[name].as_str().unwrap_or("-").to_owned();
    let number = |name: &str| command[name].as_u64().unwrap_or_default();
    let first = command["command"].as_str().unwrap_or_default().trim();
    let mut shown: String = first.chars().take(COMMAND_CHARACTERS).collect();
    if shown.len() < first.len() {
        shown.push('…');
    }
    [
        number("command_id").to_string(),
        format!("{} ago", rough(now.saturating_sub(number("started")))),
        rough(number("duration_ms")),
        code(command),
        text("by"),
        text("cwd"),
        shown,
    ]
}

/// How it ended, for a cell.
fn code(command: &Value) -> String {
    match (command["exit_code"].as_i64(), command["status"].as_str()) {
        (Some(code), _) => code.to_string(),
        (None, Some(status @ ("running" | "not_run"))) => status.to_owned(),
        (None, Some(_) | None) => "?".to_owned(),
    }
}

/// How it ended, for people who see its output.
fn ending(command: &Value) -> String {
    let status = command["status"].as_str().unwrap_or_default();
    match command["exit_code"].as_i64() {
        Some(code) => format!("[exit code {code}]"),
        None if status == "completed" => "[exit code unknown]".to_owned(),
        None => format!("[{status}]"),
    }
}

fn about(list: &Value) -> Vec<String> {
    let none = listed(list).is_empty().then(|| "no command is known to have run here".to_owned());
    let first = &list["commands"][0]["command_id"];
    let older = list["older"]
        .as_u64()
        .map(|older| format!("{older} older ones: go on with --before {first}"));
    none.into_iter().chain(older).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Value {
        json!({
            "command_id": 3, "command": "make -j2", "cwd": "/src", "by": "ci#t1",
            "started": 1_000_000, "duration_ms": 2_000, "status": "completed", "exit_code": 2,
        })
    }

    #[test]
    fn a_command_is_told_in_one_line() {
        let expected = ["3", "1m ago", "2s", "2", "ci#t1", "/src", "make -j2"];
        assert_eq!(row(&command(), 1_061_000), expected);
    }

    #[test]
    fn a_code_that_nobody_said_is_not_made_up() {
        let mut it = command();
        it["exit_code"] = Value::Null;
        assert_eq!((code(&it).as_str(), ending(&it).as_str()), ("?", "[exit code unknown]"));
        it["status"] = json!("running");
        assert_eq!((code(&it).as_str(), ending(&it).as_str()), ("running", "[running]"));
    }

    #[test]
    fn a_long_command_is_cut_and_older_ones_are_counted() {
        let mut it = command();
        it["command"] = json!("x".repeat(80));
        assert_eq!(row(&it, 0)[6], "x".repeat(COMMAND_CHARACTERS) + "…");
        let older = about(&json!({"commands": [it], "older": 4}));
        assert_eq!(older, ["4 older ones: go on with --before 3"]);
        assert_eq!(table(&json!({"commands": []}), 0), "");
    }
}
