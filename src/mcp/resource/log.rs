//! The log of a session in Markdown: each command, its principal, time, directory, result and first lines of output.
//!
//! Text of programs is in fences that it cannot close, so that no reader takes it for text of the log.

use std::fmt::Write;

use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::human_duration::measured;
use crate::core::one_line::one_line;
use crate::core::shell::commands::record::CommandRecord;
use crate::mcp::resource::uri_of;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::answer::budget::escaped_bytes;
use crate::surface::answer::command::output_uri;
use crate::wire::command::{CommandStatus, CommandWire};
use crate::wire::date::rfc3339;
use crate::wire::word;

/// The number of output lines per command.
const LINES_MAX: usize = 10;
/// The maximum number of characters per line.
const CHARACTERS_MAX: usize = 200;

/// The space reserved for text around the commands, in bytes.
const AROUND_BYTES: usize = 500;

/// The log within `room` bytes of JSON, oldest command first. If there is not enough space, the newest commands.
pub(super) fn of(
    session: &Session,
    frame: &Frame,
    clock: &Clock,
    (before, room): (Option<u64>, usize),
) -> String {
    let before = before.unwrap_or(u64::MAX);
    let commands = frame.commands.value.iter();
    let known: Vec<&CommandRecord> =
        commands.filter(|it| it.id.0 < before).map(|it| &**it).collect();
    let mut left = room.saturating_sub(AROUND_BYTES);
    let mut entries: Vec<String> = Vec::new();
    for record in known.iter().rev() {
        let entry = entry(session, record, frame, clock);
        let bytes = escaped_bytes(&entry);
        // Include at least one command, so that a reader can continue to the end.
        if bytes > left && !entries.is_empty() {
            break;
        }
        left = left.saturating_sub(bytes);
        entries.push(entry);
    }
    entries.reverse();
    let mut text = format!("# What ran in {}\n", session.name());
    let older = known.len() - entries.len();
    // Writing to a string never fails, here and below.
    if older > 0 {
        let uri = uri_of(session.id(), "log");
        let oldest = known[older].id.0;
        let _ = write!(text, "\n{older} older commands: <{uri}?before={oldest}>\n");
    } else if let Some(gone) = known.first().map(|oldest| oldest.id.0 - 1).filter(|gone| *gone > 0)
    {
        let _ = write!(text, "\n{gone} older commands are not kept any more.\n");
    }
    if entries.is_empty() {
        text.push_str("\nNo command is known to have run here.\n");
    }
    text + &entries.concat()
}

fn entry(session: &Session, record: &CommandRecord, frame: &Frame, clock: &Clock) -> String {
    let command = CommandWire::of(record, clock);
    let mut text = format!("\n## Command {}\n\n", command.command_id);
    text.push_str(&fenced(&command.command, "sh"));
    let _ = write!(text, "\n- when: {}", rfc3339(command.started / 1_000));
    let _ = write!(text, ", {}", measured(command.duration_ms));
    if let Some(by) = &command.by {
        let _ = write!(text, "\n- by: {}", code(by));
    }
    if let Some(cwd) = &command.cwd {
        let _ = write!(text, "\n- in: {}", code(cwd));
    }
    let _ = write!(text, "\n- end: {}\n", ending(&command));
    let output = frame.output(record);
    if output.lines_total() > 0 {
        let printed = output.beginning();
        let first = printed.lines().take(LINES_MAX);
        let shown: Vec<String> =
            first.map(|line| line.chars().take(CHARACTERS_MAX).collect()).collect();
        let _ = write!(text, "\n{}", fenced(&shown.join("\n"), "text"));
    }
    if output.lines_total() > LINES_MAX as u64 {
        let uri = output_uri(session.id(), record.id);
        let _ = writeln!(text, "\n{} in all: <{uri}>", counted(output.lines_total(), "line"));
    }
    text
}

fn ending(command: &CommandWire) -> String {
    match (command.exit_code, command.status) {
        (Some(code), _) => format!("exit code {code}"),
        (None, CommandStatus::Running) => "it still runs".to_owned(),
        (None, CommandStatus::NotRun) => "the shell could not read it".to_owned(),
        (None, status @ (CommandStatus::Completed | CommandStatus::Exited)) => {
            format!("{}, exit code unknown", word(&status))
        }
    }
}

/// A code block with the unchanged text.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_ticks(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// Inline code on one line.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_ticks(&text) + 1);
    format!("{ticks} {text} {ticks}")
}

/// The length of the longest run of backticks.
fn longest_ticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_fence() {
        assert_eq!(fenced("a", "sh"), "```sh\na\n```\n");
        assert_eq!(fenced("```\n# b", "text"), "````text\n```\n# b\n````\n");
        assert_eq!(code("a`b\nc"), r"`` a`b\nc ``");
    }
}
