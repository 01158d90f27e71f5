//! `policy`: shows how termgate reads a command line.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::core::command_line::{KnownWord, ParsedCommandLine, ProgramCall};

/// Show how termgate reads command lines
#[derive(Debug, Args)]
pub struct PolicyCommand {
    #[command(subcommand)]
    action: PolicyAction,
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    Check(CheckCommandLine),
}

/// Show what a command line runs, without running it
///
/// Lists each program with its flags and operands, also inside wrappers such as sudo, and names the parts that are
/// known only when the line runs. Flags have one name: `-rf`, `-r -f` and `--recursive --force` of rm are the same.
#[derive(Debug, Args)]
struct CheckCommandLine {
    /// A line of a POSIX shell or bash, as one word
    #[arg(value_name = "LINE")]
    line: String,
}

impl PolicyCommand {
    pub fn run(self) -> CommandReport {
        let PolicyAction::Check(CheckCommandLine { line }) = self.action;
        let line = ParsedCommandLine::parse(&line);
        let rows: Vec<[String; 4]> = line.calls.iter().map(row).collect();
        let table = || render(["PROGRAM", "FLAGS", "OPERANDS", "RUN BY"], &rows);
        let text = if rows.is_empty() { String::new() } else { table() };
        CommandReport { notes: notes(&line), ..CommandReport::new(report(&line), text) }
    }
}

/// A word as it is shown; `?` if it is known only when the line runs.
fn shown(word: &KnownWord) -> &str {
    word.as_deref().unwrap_or("?")
}

fn row(call: &ProgramCall) -> [String; 4] {
    let program = call.path.as_deref().unwrap_or_else(|| shown(&call.name));
    let joined = |words: &mut dyn Iterator<Item = &str>| words.collect::<Vec<_>>().join(" ");
    [
        program.to_owned(),
        joined(&mut call.flags.iter().map(String::as_str)),
        joined(&mut call.operands.iter().map(shown)),
        joined(&mut call.through.iter().map(String::as_str)),
    ]
}

fn notes(line: &ParsedCommandLine) -> Vec<String> {
    let sets = line.sets.iter().map(|name| format!("sets {name}"));
    let writes = line.writes.iter().map(|file| format!("writes {}", shown(file)));
    let unknown = line.unknown.iter().map(|part| format!("unknown: {part}"));
    sets.chain(writes).chain(unknown).collect()
}

fn report(line: &ParsedCommandLine) -> Value {
    let call = |call: &ProgramCall| {
        json!({
            "program": call.name,
            "path": call.path,
            "flags": call.flags,
            "operands": call.operands,
            "run_by": call.through,
        })
    };
    json!({
        "known": line.is_known(),
        "programs": line.calls.iter().map(call).collect::<Vec<_>>(),
        "sets": line.sets,
        "writes": line.writes,
        "unknown": line.unknown.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
