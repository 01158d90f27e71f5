//! Prints a command's data on standard output and its notes on standard error.
//!
//! Every answer passes here, so that `--json` means the same everywhere: one object, or one per line for
//! streams.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use serde_json::Value;
use tokio::io::Interest;

use crate::cli::duration::millis;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::core::moment::Moment;
use crate::session::clock::Clock;
use crate::session::pty::watch::watch;
use crate::wire::error::Envelope;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    People,
    Json,
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct CommandReport {
    /// The result for programs.
    pub data: Value,
    /// The result for people. An empty text is not printed.
    pub text: String,
    /// Notes for people.
    pub notes: Vec<String>,
    pub exit: CommandExit,
    /// The protocol revision of the daemon's answer, if there was one.
    pub mcp_version: Option<Cow<'static, str>>,
}

impl CommandReport {
    /// The report of a success, without notes.
    pub fn new(data: Value, text: impl Into<String>) -> Self {
        let (text, notes) = (text.into(), Vec::new());
        Self { data, text, notes, exit: CommandExit::Done, mcp_version: None }
    }
}

/// The envelope and its data as one object.
#[derive(Debug, Serialize)]
struct Wrapped<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    data: &'a Value,
}

#[derive(Debug)]
pub struct CommandOutput {
    form: OutputForm,
    clock: Clock,
    started: Moment,
}

impl CommandOutput {
    /// Creates the output of a command that starts now.
    pub fn new(form: OutputForm, clock: Clock) -> Self {
        Self { form, started: clock.now(), clock }
    }

    pub fn form(&self) -> OutputForm {
        self.form
    }

    /// The clock that measures elapsed time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Prints a command's final result.
    pub fn report(&self, report: &CommandReport) -> Result<(), CliFailure> {
        match self.form {
            OutputForm::Json => {
                let mcp_version = report.mcp_version.clone();
                self.print_wrapped(Envelope { mcp_version, ..self.envelope() }, &report.data)
            }
            OutputForm::People => {
                report.notes.iter().for_each(|note| self.note(note));
                if report.text.is_empty() { Ok(()) } else { print(&report.text) }
            }
        }
    }

    /// Prints one item of a stream.
    pub fn item(&self, data: &Value, text: &str) -> Result<(), CliFailure> {
        match self.form {
            OutputForm::Json => self.print_wrapped(self.envelope(), data),
            OutputForm::People if text.is_empty() => Ok(()),
            OutputForm::People => print(text),
        }
    }

    /// Prints one line unchanged, in every form.
    pub fn raw_line(&self, line: &str) -> Result<(), CliFailure> {
        print(line)
    }

    /// Prints text for people unchanged and without a line end.
    pub fn text(&self, text: &str) -> Result<(), CliFailure> {
        match self.form {
            OutputForm::Json => Ok(()),
            OutputForm::People => put(text),
        }
    }

    /// Prints a failure: on standard error for people, otherwise as an envelope.
    pub fn failure(&self, failure: &CliFailure) -> Result<(), CliFailure> {
        match self.form {
            OutputForm::Json => {
                let envelope = Envelope {
                    ok: false,
                    error: Some(failure.to_string()),
                    error_code: failure.code().map(str::to_owned),
                    hint: failure.hint(),
                    ..self.envelope()
                };
                self.print_wrapped(envelope, &failure.details())
            }
            OutputForm::People => {
                let text = failure.to_string();
                let (what, rest) = text.split_once('\n').unwrap_or((&text, ""));
                let code = failure.code().map(|code| format!(" ({code})")).unwrap_or_default();
                self.note(&format!("termgate: {what}{code}"));
                rest.lines().for_each(|line| self.note(line));
                if let Some(hint) = failure.hint() {
                    self.note(&format!("hint: {hint}"));
                }
                Ok(())
            }
        }
    }

    /// Prints a note for people.
    pub fn note(&self, text: &str) {
        if self.form == OutputForm::People {
            note_to_all(text);
        }
    }

    /// Says at a terminal that an MCP client should have it, and not a person.
    pub fn note_client_expected(&self) {
        if io::stdin().is_terminal() {
            self.note(
                "an MCP client is expected on standard input; `termgate install` configures one, C-c leaves",
            );
        }
    }

    fn envelope(&self) -> Envelope {
        let now = self.clock.wall_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        Envelope {
            ok: true,
            elapsed_ms: millis(self.clock.now().since(self.started)),
            version: env!("CARGO_PKG_VERSION").into(),
            now: millis(now),
            ..Envelope::default()
        }
    }

    fn print_wrapped(&self, envelope: Envelope, data: &Value) -> Result<(), CliFailure> {
        let line = serde_json::to_string(&Wrapped { envelope, data });
        print(&line.map_err(|error| CliFailure::Other(error.into()))?)
    }
}

/// Prints a note on standard error in every form, for what a person must know while the command still waits.
pub fn note_to_all(text: &str) {
    // A closed standard error cannot be reported.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes text to standard output as it is, at once.
///
/// # Errors
/// [`CliFailure::Output`] when it takes none.
pub fn put(text: &str) -> Result<(), CliFailure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliFailure::Output)
}

/// Prints text with a line end and flushes it.
fn print(text: &str) -> Result<(), CliFailure> {
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{text}").and_then(|()| out.flush());
    printed.map_err(CliFailure::Output)
}

/// Completes when the reader of standard output is gone. It never completes when that cannot happen, as
/// with a file.
///
/// # Panics
/// Outside a runtime.
pub async fn reader_gone() {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    // The kernel cannot watch regular files.
    let Ok(stdout) = stdout.and_then(|stdout| watch(stdout, Interest::ERROR)) else {
        return std::future::pending().await;
    };
    if stdout.ready(Interest::ERROR).await.is_err() {
        // The runtime is shutting down, and ends this task with it.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_and_its_envelope_are_one_object() {
        let envelope = Envelope { ok: true, version: "1".into(), ..Envelope::default() };
        let wrapped = Wrapped { envelope, data: &json!({"n": 1}) };
        let expected =
            json!({"ok": true, "elapsed_ms": 0, "version": "1", "now": 0, "data": {"n": 1}});
        assert_eq!(serde_json::to_value(wrapped).unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_envelope_tells_how_long_the_command_took_and_the_time_of_day() {
        let output = CommandOutput::new(OutputForm::Json, Clock::paused());
        tokio::time::advance(std::time::Duration::from_millis(20)).await;
        let envelope = output.envelope();
        // A paused clock begins 1,000 s after the epoch.
        assert_eq!((envelope.elapsed_ms, envelope.now), (20, 1_000_020));
    }
}
