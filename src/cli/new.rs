//! `new`: creates a session, and starts the daemon if none runs.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::call::parse_pair;
use crate::cli::context::{Context, Spawn};
use crate::cli::daemon::{DaemonClient, ToolAnswer};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::session::pty::environment::ClientEnvironment;
use crate::wire::session::Created;

/// Create a session and print its id
///
/// Starts the daemon when none is running, unless TERMGATE_AUTOSTART=0.
#[derive(Debug, Args)]
pub struct NewCommand {
    /// Its name: letters, digits, `.`, `_` and `-` [default: that of its program]
    #[arg(long)]
    name: Option<String>,
    /// Its working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Acquire its lease and print the lease's id on a second line
    #[arg(long)]
    lease: bool,
    /// Record it from its first byte, for `replay`
    #[arg(long)]
    record: bool,
    /// Sandbox it: its programs cannot signal or trace others, nor see termgate's files
    #[arg(long)]
    sandbox: bool,
    /// Rows of its screen [default: 40]
    #[arg(long, value_parser = number::<u64>)]
    rows: Option<u64>,
    /// Columns of its screen [default: 120]
    #[arg(long, value_parser = number::<u64>)]
    cols: Option<u64>,
    /// A tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Who may know of it: you alone, your tenant, or by its name all tenants [default: as configured]
    #[arg(long, value_name = "WHO", value_parser = ["private", "tenant", "listed"])]
    visibility: Option<String>,
    /// Set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    spawn: Spawn,
    /// A program and its arguments, or a shell command as one argument [default: your shell, which then
    /// reports exit codes to `run`]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("name", "--name"),
    ("cwd", "--cwd"),
    ("rows", "--rows"),
    ("cols", "--cols"),
    ("tags", "--tag"),
    ("visibility", "--visibility"),
    ("env", "--env"),
    ("sandbox", "--sandbox"),
    ("command", "CMD"),
    ("args", "CMD"),
];

impl NewCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let daemon = self.spawn.daemon(context).await?;
        let (answer, Created { session, lease, recording }) =
            create(&daemon, self.arguments()?).await?;
        let lease = lease.map_or_else(String::new, |lease| format!("\n{}", lease.lease_id));
        let mut report = answer.report(session.id + &lease);
        report.notes.push(format!("created session {}", session.name));
        report.notes.extend(recording.map(|path| format!("recording to {path}")));
        Ok(report)
    }

    fn arguments(self) -> Result<Value, CliFailure> {
        let mut arguments = surroundings(self.cwd)?;
        let env: Map<String, Value> =
            self.env.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let (command, args) = command(self.command);
        for (name, value) in [
            ("name", json!(self.name)),
            ("command", json!(command)),
            ("args", json!(args)),
            ("env", json!(env)),
            ("rows", json!(self.rows)),
            ("cols", json!(self.cols)),
            ("tags", json!(self.tags)),
            ("visibility", json!(self.visibility)),
            ("lease", json!(self.lease)),
            ("record", json!(self.record)),
            ("sandbox", json!(self.sandbox)),
        ] {
            arguments[name] = value;
        }
        Ok(arguments)
    }
}

/// Creates a session.
pub async fn create(
    daemon: &DaemonClient,
    arguments: Value,
) -> Result<(ToolAnswer, Created), CliFailure> {
    let answer = daemon.act("create_session", arguments).await?;
    let created = answer.read()?;
    Ok((answer, created))
}

/// What a session takes from this process: the working directory, or the requested one, and parts
/// of the environment.
pub fn surroundings(cwd: Option<PathBuf>) -> Result<Value, CliFailure> {
    let cwd = std::path::absolute(cwd.unwrap_or_else(|| PathBuf::from(".")));
    let cwd = cwd.context("the current directory is gone")?;
    let cwd = cwd.to_str().context("the directory's name is not UTF-8")?;
    Ok(json!({"cwd": cwd, "env_client": handed_on()}))
}

/// The program with its arguments, or the shell line, from the words after `--`.
fn command(words: Vec<String>) -> (Option<String>, Option<Vec<String>>) {
    let mut words = words.into_iter();
    let Some(first) = words.next() else { return (None, None) };
    let args: Vec<String> = words.collect();
    let is_line = args.is_empty() && first.contains(char::is_whitespace);
    (Some(first), (!is_line).then_some(args))
}

/// The environment variables that the session gets from this process.
fn handed_on() -> Map<String, Value> {
    let vars = ClientEnvironment::of(env::vars_os());
    let text =
        vars.vars().iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    text.map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_are_a_program_and_its_arguments() {
        let expected = (Some("make".to_owned()), Some(words(&["-j", "all tests"])));
        assert_eq!(command(words(&["make", "-j", "all tests"])), expected);
        assert_eq!(command(words(&["vim"])), (Some("vim".to_owned()), Some(Vec::new())));
    }

    #[test]
    fn a_single_word_with_blanks_is_a_shell_line() {
        assert_eq!(command(words(&["make; date"])), (Some("make; date".to_owned()), None));
    }

    #[test]
    fn without_words_the_daemon_chooses_the_shell() {
        assert_eq!(command(Vec::new()), (None, None));
    }
}
