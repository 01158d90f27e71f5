//! `run`: runs one command in an existing or a new session, and shows its output meanwhile.
//!
//! The tool reports how the command ended. The output comes from its resource, which only history bounds.

mod fresh;
mod input;
mod interrupts;
mod line;
pub mod output;
mod resumed;
mod stopping;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::call::parse_pair;
use crate::cli::candidates::offer_sessions;
use crate::cli::context::{Context, Spawn};
use crate::cli::daemon::{DaemonClient, Posted, ToolAnswer};
use crate::cli::duration::{millis, millis_within, parse_duration};
use crate::cli::exit::CommandExit;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::{CommandReport, OutputForm, reader_gone};
use crate::cli::own_lease::OwnLease;
use crate::cli::run::fresh::{Creating, Fresh};
use crate::cli::run::input::PipedInput;
use crate::cli::run::interrupts::Interrupts;
use crate::cli::run::line::line_of;
use crate::cli::run::output::LiveCommand;
use crate::cli::run::resumed::ResumedCommand;
use crate::cli::run::stopping::{interrupted, is_listed, is_waiting, unapproved, unknown, unread};
use crate::transport::client::ClientError;
use crate::wire::command::{Followed, RunStatus};

/// Run a command in a session, show its output, and end with its exit code
///
/// Without a session, as in `termgate run -- make test`, it creates one: your shell in the current
/// directory, with your environment. When the command ends, it removes that session with all its processes;
/// while the command still runs, it keeps the session. Starts the daemon when none is running, unless
/// TERMGATE_AUTOSTART=0.
///
/// There the command reads the standard input of `run`, unless that is a terminal: `termgate run -- wc -l <FILE`. Give it
/// none with </dev/null. It can still read the terminal as /dev/tty.
///
/// A single word is a line for the session's shell; several words are a program and its arguments.
/// Each line of output is printed once it is complete. It is text of the terminal, not bytes: tabs become blanks, and
/// trailing blanks vanish. C-c interrupts the command; so does ending
/// `run` itself. If the daemon exits, as for an upgrade, the command keeps running, and `run` follows
/// it under the next daemon.
///
/// Where the shell does not report the exit code, `run` ends with 123.
#[derive(Debug, Args)]
#[command(
    after_long_help = EXIT_CODES,
    allow_missing_positional = true,
    override_usage = "termgate run [OPTIONS] <SESSION> <COMMAND>...\n       \
                      termgate run [OPTIONS] -- <COMMAND>..."
)]
pub struct RunCommand {
    /// Id, unique prefix of one, or name; to create a session, omit it and write -- before the command
    #[arg(add = ArgValueCompleter::new(offer_sessions), value_terminator = "--")]
    session: Option<String>,
    /// Wait at most this long, up to 10m; then the command keeps running
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    lease: OwnLease,
    /// Only with --json: print at most this many lines, from the start and the end [default: 200]
    #[arg(long, value_name = "LINES", value_parser = number::<u64>)]
    max_lines: Option<u64>,
    /// Only without a session: set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair, conflicts_with = "session")]
    env: Vec<(String, String)>,
    /// Only without a session: the working directory [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with = "session")]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    spawn: Spawn,
    /// The command; options of `run` go before it
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<String>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("session", "SESSION"),
    ("command", "COMMAND"),
    ("timeout_ms", "--timeout"),
    ("max_lines", "--max-lines"),
    ("lease_id", "--lease-file or TERMGATE_LEASE"),
    ("env", "--env"),
    ("cwd", "--cwd"),
];

const EXIT_CODES: &str = "\
Exit codes: that of the command, or
  2    the shell could not parse the command
  122  the command is waiting for input, and keeps running
  123  exit code unknown: the session's shell does not report it
  124  timed out; the command keeps running
  130  C-c interrupted the command, which reported no code (129: SIGHUP, 143: SIGTERM)
  141  standard output was closed; the command was interrupted
Errors before the command starts use the exit codes of `termgate --help`.";

/// How following a command ended.
enum FollowEnd {
    Answered(ToolAnswer),
    /// A signal ends this program, with this exit code.
    Interrupted(CommandExit),
    /// The same, before the call was approved.
    Unapproved(CommandExit),
    /// The same, where the call may have been approved a moment before.
    MayBeApproved(CommandExit),
    /// Standard output was closed.
    Unread,
    /// The time is over while no daemon runs.
    Overdue,
}

impl RunCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        if self.max_lines.is_some() && context.output.form() == OutputForm::People {
            let words = "--max-lines goes with --json; without it all of the output is printed";
            return Err(CliFailure::Usage(words.to_owned()));
        }
        millis_within("--timeout", self.timeout, 1..=600_000).map_err(CliFailure::Usage)?;
        // With standard input it would not be empty for the daemon.
        if line_of(&self.command).trim().is_empty() {
            return Err(CliFailure::Usage("COMMAND: nothing to run".to_owned()));
        }
        let mut daemon = self.spawn.daemon(context).await?;
        let listen = || Interrupts::listen().context("cannot listen for signals");
        let Some(name) = &self.session else {
            let mut interrupts = listen()?;
            let input = PipedInput::of_stdin(&daemon).context("cannot pass on standard input")?;
            let begun = Instant::now();
            let given = (self.cwd.clone(), &*self.env);
            let fresh = match Fresh::create(&daemon, given, self.timeout, &mut interrupts).await? {
                Creating::Created(fresh) => fresh,
                Creating::GivenUp(report) => return Ok(report),
            };
            let left = self.timeout.saturating_sub(begun.elapsed());
            let line = input.as_ref().map(|input| input.line(&self.command));
            let line = line.unwrap_or_else(|| line_of(&self.command));
            let place = (&*fresh.id, &*fresh.name);
            let ways = (context, &mut interrupts);
            let mut ended = self.run_in(place, (&line, left), &mut daemon, ways).await;
            if let (Ok(report), Some(problem)) = (&mut ended, input.and_then(|it| it.problem())) {
                report.notes.push(problem);
            }
            return fresh.leave(&daemon, ended).await;
        };
        // The id stays the same when the session is renamed.
        let id = daemon.session(name).await?.id;
        let line = line_of(&self.command);
        let line = (&*line, self.timeout);
        let ended = self.run_in((&id, name), line, &mut daemon, (context, &mut listen()?)).await;
        ended.map_err(|failure| failure.in_session(name))
    }

    /// Runs the line in the session with this id and name. It waits for an approval at most as long as this says.
    async fn run_in(
        &self,
        (id, name): (&str, &str),
        (line, approval_wait): (&str, Duration),
        daemon: &mut DaemonClient,
        (context, interrupts): (&Context, &mut Interrupts),
    ) -> Result<CommandReport, CliFailure> {
        let session = id.to_owned();
        let mut live = LiveCommand::begin(daemon, &context.output, session, line).await?;
        let resumed = ResumedCommand {
            context,
            name,
            max_lines: self.max_lines,
            until: context.output.clock().now() + self.timeout,
        };
        // A lease from before does not apply to a new session.
        let lease = if self.session.is_some() { self.lease.id()? } else { None };
        let arguments = self.arguments(id, line, lease);
        let posted = live.daemon.post_patiently("run", arguments, approval_wait)?;
        let mut ended = follow(posted, &mut live, interrupts).await;
        ended = finished(ended, &mut live, &resumed).await;
        while let Err(CliFailure::Request(ClientError::Closed)) = ended {
            ended = resumed.follow(&mut live, interrupts).await;
            ended = finished(ended, &mut live, &resumed).await;
        }
        match ended? {
            FollowEnd::Answered(answer) => Ok(report(answer, name)),
            FollowEnd::Unapproved(exit) if is_listed(&mut live).await == Some(false) => {
                Ok(unapproved(Some(id), exit))
            }
            FollowEnd::MayBeApproved(exit) if is_listed(&mut live).await == Some(false) => {
                Ok(unknown((id, name), exit))
            }
            FollowEnd::Interrupted(exit)
            | FollowEnd::Unapproved(exit)
            | FollowEnd::MayBeApproved(exit) => {
                interrupted(&mut live, interrupts, exit, &resumed).await
            }
            FollowEnd::Unread => Ok(unread()),
            FollowEnd::Overdue => Ok(resumed.overdue(&live)),
        }
    }

    fn arguments(&self, session: &str, line: &str, lease: Option<String>) -> Value {
        json!({
            "session": session,
            "command": line,
            "timeout_ms": millis(self.timeout),
            "max_lines": self.max_lines,
            "on_cancel": "interrupt",
            "lease_id": lease,
        })
    }
}

/// Shows a command's output until the call is answered or following it ends.
async fn follow(
    posted: Posted,
    live: &mut LiveCommand<'_>,
    interrupts: &mut Interrupts,
) -> Result<FollowEnd, CliFailure> {
    let asked = posted.asked_about();
    let mut answer = pin!(posted.wait());
    let mut gone = pin!(reader_gone());
    let mut showing = true;
    loop {
        tokio::select! {
            // A daemon that has gone counts before an interrupt that came with it.
            biased;
            answer = &mut answer => return told_by_one_that_stays(answer?),
            exit = interrupts.next() => {
                let Some(id) = asked.approval() else { return Ok(FollowEnd::Interrupted(exit)) };
                // Before the call is cancelled, which takes the approval away.
                return Ok(match is_waiting(live.daemon, &id).await {
                    Some(true) => FollowEnd::Unapproved(exit),
                    Some(false) | None => FollowEnd::MayBeApproved(exit),
                });
            }
            () = &mut gone => return Ok(FollowEnd::Unread),
            shown = live.next(), if showing => match shown {
                Err(failure) if failure.is_unread() => return Ok(FollowEnd::Unread),
                Err(failure @ CliFailure::Output(_)) => return Err(failure),
                // The answer contains the reason, and may already be on its way.
                shown => showing = shown.is_ok(),
            },
        }
    }
}

/// Takes an answer, unless the daemon answered only because it exits: then the next one is asked.
fn told_by_one_that_stays(answer: ToolAnswer) -> Result<FollowEnd, CliFailure> {
    let left = answer.read::<Followed>()?.status == RunStatus::DaemonLeft;
    if left { Err(ClientError::Closed.into()) } else { Ok(FollowEnd::Answered(answer)) }
}

/// Shows the remaining output of a command that ended.
async fn finished(
    ended: Result<FollowEnd, CliFailure>,
    live: &mut LiveCommand<'_>,
    resumed: &ResumedCommand<'_>,
) -> Result<FollowEnd, CliFailure> {
    let Ok(FollowEnd::Answered(answer)) = &ended else { return ended };
    let number = answer.data["command_id"].as_u64().unwrap_or_default();
    let Err(failure) = live.finish(number).await else { return ended };
    if failure.is_unread() {
        return ended;
    }
    // After the session's end, no other daemon has the output.
    let elsewhere = matches!(failure, CliFailure::Request(ClientError::Closed))
        && answer.data["status"] != "exited"
        && resumed.is_held(&live.session);
    if elsewhere || matches!(failure, CliFailure::Output(_)) {
        return Err(failure);
    }
    live.give_up();
    ended
}

/// The report of a command whose output was shown.
fn report(answer: ToolAnswer, session: &str) -> CommandReport {
    let exit = exit(&answer.data);
    let notes = notes(&answer.data, session);
    CommandReport { exit, notes, ..answer.report("") }
}

fn bare(data: Value, exit: CommandExit) -> CommandReport {
    CommandReport { exit, ..CommandReport::new(data, "") }
}

fn exit(run: &Value) -> CommandExit {
    match (run["status"].as_str().unwrap_or_default(), run["exit_code"].as_i64()) {
        (_, Some(code)) => of_code(code),
        ("timeout", None) => CommandExit::GOES_ON,
        ("needs_input", None) => CommandExit::NEEDS_INPUT,
        ("lease_lost" | "lease_suspended", None) => CommandExit::LeaseConflict,
        // The code that shells use.
        ("not_run", None) => CommandExit::Command(2),
        (_, None) => CommandExit::UNKNOWN,
    }
}

/// The code as a valid exit code of a process.
fn of_code(code: i64) -> CommandExit {
    CommandExit::Command(u8::try_from(code).unwrap_or(1))
}

/// The notes for people besides the output.
fn notes(run: &Value, session: &str) -> Vec<String> {
    let word = |pointer: &str| run.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let asks = word("/prompt").trim();
    let asks = if asks.is_empty() { String::new() } else { format!(": {asks}") };
    let ended = match (word("/status"), word("/activity/state")) {
        ("timeout", _) => Some(format!(
            "the command keeps running: wait with `termgate wait {session} --command-done --since {}`, or stop it \
             with `termgate keys {session} C-c`",
            run["watermark"]
        )),
        ("needs_input", "secret_prompt") => Some(format!(
            "the command is waiting for a secret{asks}\ntype it yourself with `termgate attach {session}`"
        )),
        ("needs_input", "full_screen") => {
            Some(format!("a full-screen program has the terminal: `termgate attach {session}`"))
        }
        ("needs_input", _) => Some(format!(
            "the command is waiting for input{asks}\nanswer with `termgate send {session} TEXT --enter`, or stop it with \
             `termgate keys {session} C-c`"
        )),
        ("lease_lost", _) => Some(format!(
            "your lease ended; the command may still run: `termgate commands {session} {}`",
            run["command_id"]
        )),
        ("lease_suspended", _) => Some(format!(
            "a person types, and your lease comes back by itself; the command may still run: \
             `termgate commands {session} {}`",
            run["command_id"]
        )),
        ("not_run", _) => Some("the shell could not read it as a command".to_owned()),
        ("exited", _) => Some("the program of the session ended with it".to_owned()),
        (_, _) => None,
    };
    let unknown = run["exit_code"].is_null() && matches!(word("/status"), "completed" | "exited");
    let unknown = unknown.then(|| {
        let why = match (word("/status"), word("/evidence")) {
            ("exited", _) | (_, "osc133") => "the shell did not report it",
            (_, _) => {
                "the program in front reports no codes; a shell that `termgate new` starts without a \
                 command does, or end the command with `; echo $?`"
            }
        };
        format!("exit code unknown: {why}")
    });
    let warning = run["warning"].as_str().map(|warning| format!("warning: {warning}"));
    [ended, unknown, warning].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
