//! `commands`: lists the commands of a session, or prints the output of one.

use std::time::UNIX_EPOCH;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::{offer_commands, offer_sessions};
use crate::cli::context::Context;
use crate::cli::duration::millis;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::{CommandReport, OutputForm};
use crate::cli::run::output::Printed;
use crate::cli::table::render;
use crate::core::counted::counted;
use crate::core::human_duration::rough;
use crate::wire::command::{CommandList, CommandStatus, CommandWire};
use crate::wire::word;

/// The columns, in the order of [`row`].
const HEAD: [&str; 7] = ["ID", "WHEN", "TOOK", "EXIT", "BY", "CWD", "COMMAND"];

/// How many characters of a command the table shows.
const COMMAND_CHARACTERS: usize = 60;

/// List the commands that ran in a session, or print the output of one
#[derive(Debug, Args)]
pub struct CommandsCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// The number of a command: print as much of its output as history keeps
    #[arg(add = ArgValueCompleter::new(offer_commands), value_parser = number::<u64>)]
    id: Option<u64>,
    /// List at most this many, the newest, up to 100 [default: 20]
    #[arg(long, value_name = "COMMANDS", conflicts_with = "id", value_parser = number::<u64>)]
    limit: Option<u64>,
    /// List only commands older than this one
    #[arg(long, value_name = "ID", conflicts_with = "id", value_parser = number::<u64>)]
    before: Option<u64>,
    /// Print only this many lines from the start of the output, up to 2000
    #[arg(long, value_name = "LINES", requires = "id", value_parser = number::<u64>)]
    head: Option<u64>,
    /// Print only this many lines from the end of the output, up to 2000
    #[arg(long, value_name = "LINES", requires = "id", value_parser = number::<u64>)]
    tail: Option<u64>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("id", "ID"),
    ("limit", "--limit"),
    ("before", "--before"),
    ("head", "--head"),
    ("tail", "--tail"),
];

impl CommandsCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let daemon = context.daemon().await?;
        let answer = daemon.call("read_commands", self.arguments()).await;
        let answer = answer.map_err(|failure| self.unknown(failure))?;
        let list: CommandList = answer.read()?;
        match self.id {
            Some(id) if context.output.form() == OutputForm::People => {
                let whole = self.head.is_none() && self.tail.is_none();
                if whole {
                    Printed::of(&list.session, id).show(&daemon, &context.output).await?;
                }
                let text = list.output.filter(|_| !whole).unwrap_or_default();
                let notes = list.commands.iter().map(ending).collect();
                Ok(CommandReport { notes, ..answer.report(text) })
            }
            Some(_) => Ok(answer.report("")),
            None => {
                let now = context.output.clock().wall_time();
                let now = millis(now.duration_since(UNIX_EPOCH).unwrap_or_default());
                Ok(CommandReport { notes: about(&list), ..answer.report(table(&list, now)) })
            }
        }
    }

    /// Turns a refused number into [`CliFailure::NotFound`], and keeps other failures.
    fn unknown(&self, failure: CliFailure) -> CliFailure {
        if failure.parameter() == Some("id") {
            return CliFailure::NotFound {
                why: failure.as_typed(TYPED).to_string(),
                hint: format!("`termgate commands {}` lists those that are known", self.session),
            };
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

/// A table of the commands; empty when there are none.
fn table(list: &CommandList, now: u64) -> String {
    let rows: Vec<_> = list.commands.iter().map(|command| row(command, now)).collect();
    if rows.is_empty() { String::new() } else { render(HEAD, &rows) }
}

fn row(command: &CommandWire, now: u64) -> [String; 7] {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let first = command.command.trim();
    let mut shown: String = first.chars().take(COMMAND_CHARACTERS).collect();
    if shown.len() < first.len() {
        shown.push('…');
    }
    [
        command.command_id.to_string(),
        format!("{} ago", rough(now.saturating_sub(command.started))),
        rough(command.duration_ms),
        code(command),
        or_dash(&command.by),
        or_dash(&command.cwd),
        shown,
    ]
}

/// The exit code or status, for a cell.
fn code(command: &CommandWire) -> String {
    match (command.exit_code, command.status) {
        (Some(code), _) => code.to_string(),
        (None, status @ (CommandStatus::Running | CommandStatus::NotRun)) => {
            word(&status).to_string()
        }
        (None, CommandStatus::Completed | CommandStatus::Exited) => "?".to_owned(),
    }
}

/// The exit code or status, shown after the output.
fn ending(command: &CommandWire) -> String {
    match (command.exit_code, command.status) {
        (Some(code), _) => format!("[exit code {code}]"),
        (None, CommandStatus::Completed) => "[exit code unknown]".to_owned(),
        (None, status) => format!("[{}]", word(&status)),
    }
}

fn about(list: &CommandList) -> Vec<String> {
    let Some(first) = list.commands.first() else {
        return vec!["no command is known to have run here".to_owned()];
    };
    let first = first.command_id;
    let older =
        |older| format!("{}: continue with --before {first}", counted(older, "older command"));
    list.older.map(older).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> CommandWire {
        CommandWire {
            command_id: 3,
            command: "make -j2".to_owned(),
            cwd: Some("/src".to_owned()),
            by: Some("ci#t1".to_owned()),
            started: 1_000_000,
            duration_ms: 2_000,
            status: CommandStatus::Completed,
            exit_code: Some(2),
            evidence: None,
            full_screen: false,
            cut: false,
        }
    }

    fn list(commands: Vec<CommandWire>, older: Option<usize>) -> CommandList {
        let list = json!({"session": "0a", "commands": commands, "older": older, "watermark": 1});
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn a_command_is_one_line() {
        let expected = ["3", "1m1s ago", "2s", "2", "ci#t1", "/src", "make -j2"];
        assert_eq!(row(&command(), 1_061_000), expected);
    }

    #[test]
    fn an_unknown_exit_code_is_not_made_up() {
        let it = CommandWire { exit_code: None, ..command() };
        assert_eq!((code(&it).as_str(), ending(&it).as_str()), ("?", "[exit code unknown]"));
        let it = CommandWire { status: CommandStatus::Running, ..it };
        assert_eq!((code(&it).as_str(), ending(&it).as_str()), ("running", "[running]"));
    }

    #[test]
    fn a_long_command_is_cut_and_older_ones_are_counted() {
        let it = CommandWire { command: "x".repeat(80), ..command() };
        assert_eq!(row(&it, 0)[6], "x".repeat(COMMAND_CHARACTERS) + "…");
        assert_eq!(about(&list(vec![it], Some(4))), ["4 older commands: continue with --before 3"]);
        assert_eq!(table(&list(Vec::new(), None), 0), "");
    }
}
