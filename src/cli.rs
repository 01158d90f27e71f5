//! The command line: one file per command, one list, one way in and out.
//!
//! It knows everything below and decides nothing about sessions: each command is a few calls to
//! the daemon. What it prints and how it ends is settled here for all of them.

pub mod allow_write;
pub mod approve;
pub mod asking;
pub mod attach;
pub mod call;
pub mod candidates;
pub mod commands;
pub mod completions;
pub mod config;
pub mod context;
pub mod daemon;
pub mod doctor;
pub mod duration;
pub mod events;
pub mod exit;
pub mod expected;
pub mod failure;
pub mod hint;
pub mod history;
pub mod install;
pub mod integrate;
pub mod journal;
pub mod keys;
pub mod kill;
pub mod lease;
pub mod logging;
pub mod ls;
pub mod man;
pub mod mcp;
pub mod mounts;
pub mod new;
pub mod number;
pub mod output;
pub mod own_lease;
pub mod policy;
pub mod raw_terminal;
pub mod read;
pub mod record;
pub mod replay;
pub mod run;
pub mod search;
pub mod send;
pub mod serve;
pub mod start;
pub mod status;
pub mod stop;
pub mod table;
pub mod token;
pub mod top;
pub mod upgrade;
pub mod wait;
pub mod watch;
pub mod why;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory as _, Parser, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit::CommandExit;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::{CommandOutput, CommandReport, OutputForm};
use crate::session::clock::Clock;

/// One terminal, one writer, many watchers
#[derive(Debug, Parser)]
#[command(name = "termgate", version, color = ColorChoice::Never, after_help = EXIT_CODES)]
pub struct CommandLine {
    /// Print JSON: one object, or one per line for streams. Errors too
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// The daemon's operator socket [default: TERMGATE_SOCKET, else operator.sock in the runtime directory]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    command: AnyCommand,
}

/// The heading of the options that every command takes.
const GLOBAL: &str = "Global options";

const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 lease conflict, \
    5 denied or read-only, 6 timed out, 7 daemon unreachable. `run` ends with the exit code of the \
    command; 122 waiting for input, 123 exit code unknown, 124 timed out and still running";

/// Every command.
#[derive(Debug, Subcommand)]
enum AnyCommand {
    Serve(serve::ServeCommand),
    Mcp(mcp::McpCommand),
    New(new::NewCommand),
    Ls(ls::LsCommand),
    Attach(attach::AttachCommand),
    Run(run::RunCommand),
    Commands(commands::CommandsCommand),
    Send(send::SendCommand),
    Keys(keys::KeysCommand),
    Read(read::ReadCommand),
    History(history::HistoryCommand),
    Wait(wait::WaitCommand),
    Watch(watch::WatchCommand),
    Events(events::EventsCommand),
    Search(search::SearchCommand),
    Record(record::RecordCommand),
    Replay(replay::ReplayCommand),
    Lease(lease::LeaseCommand),
    AllowWrite(allow_write::AllowWriteCommand),
    Approve(approve::ApproveCommand),
    Token(token::TokenCommand),
    Mounts(mounts::MountsCommand),
    Policy(policy::PolicyCommand),
    Journal(journal::JournalCommand),
    Kill(kill::KillCommand),
    Call(call::CallCommand),
    Config(config::ConfigCommand),
    Why(why::WhyCommand),
    Top(top::TopCommand),
    Doctor(doctor::DoctorCommand),
    Completions(completions::CompletionsCommand),
    Integrate(integrate::IntegrateCommand),
    Man(man::ManCommand),
    Install(install::InstallCommand),
    Upgrade(upgrade::UpgradeCommand),
    Stop(stop::StopCommand),
}

/// How a command that did not fail ends.
#[derive(Debug)]
enum CommandFinish {
    Told(CommandReport),
    /// It printed as it went.
    Streamed(CommandExit),
}

impl From<CommandReport> for CommandFinish {
    fn from(report: CommandReport) -> Self {
        Self::Told(report)
    }
}

impl From<CommandExit> for CommandFinish {
    fn from(exit: CommandExit) -> Self {
        Self::Streamed(exit)
    }
}

/// Runs the command that the words mean, the program's name first, and prints its answer.
///
/// Must be called inside a runtime with its timers and input and output enabled.
pub async fn run(words: Vec<OsString>) -> anyhow::Result<CommandExit> {
    let clock = Clock::boot().context("there is no clock")?;
    let form = |json| if json { OutputForm::Json } else { OutputForm::People };
    let json = wants_json(&words);
    let parsed = match CommandLine::try_parse_from(&words) {
        Ok(parsed) => parsed,
        Err(mut error) => {
            advise(&mut error, &words);
            return Ok(refuse(&CommandOutput::new(form(json), clock), &error));
        }
    };
    let context = Context::new(CommandOutput::new(form(parsed.json), clock), parsed.socket);
    let typed = parsed.command.typed();
    let ended = parsed.command.run(&context).await.map_err(|failure| failure.as_typed(typed));
    Ok(tell(&context.output, ended))
}

impl AnyCommand {
    /// What a person types for the parameters of the calls that it makes.
    fn typed(&self) -> TypedNames {
        match self {
            Self::New(_) => new::TYPED,
            Self::Run(_) => run::TYPED,
            Self::Commands(_) => commands::TYPED,
            Self::Send(_) => send::TYPED,
            Self::Keys(_) => keys::TYPED,
            Self::Read(_) => read::TYPED,
            Self::History(_) => history::TYPED,
            Self::Wait(_) => wait::TYPED,
            Self::Watch(_) => watch::TYPED,
            Self::Events(_) => events::TYPED,
            Self::Search(_) => search::TYPED,
            Self::Lease(_) => lease::TYPED,
            Self::AllowWrite(_) => allow_write::TYPED,
            Self::Approve(_) => approve::TYPED,
            Self::Policy(_) => policy::TYPED,
            Self::Mounts(_) => mounts::TYPED,
            Self::Serve(_)
            | Self::Mcp(_)
            | Self::Ls(_)
            | Self::Attach(_)
            | Self::Token(_)
            | Self::Journal(_)
            | Self::Record(_)
            | Self::Replay(_)
            | Self::Kill(_)
            // Its arguments are typed by the names of the parameters.
            | Self::Call(_)
            | Self::Config(_)
            | Self::Why(_)
            | Self::Top(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Integrate(_)
            | Self::Man(_)
            | Self::Install(_)
            | Self::Upgrade(_)
            | Self::Stop(_) => &[],
        }
    }

    async fn run(self, context: &Context) -> Result<CommandFinish, CliFailure> {
        Ok(match self {
            Self::Serve(serve) => serve.run(context).await?.into(),
            Self::Mcp(mcp) => mcp.run(context).await?.into(),
            Self::New(new) => new.run(context).await?.into(),
            Self::Ls(ls) => ls.run(context).await?.into(),
            Self::Attach(attach) => attach.run(context).await?.into(),
            Self::Run(run) => run.run(context).await?.into(),
            Self::Commands(commands) => commands.run(context).await?.into(),
            Self::Send(send) => send.run(context).await?.into(),
            Self::Keys(keys) => keys.run(context).await?.into(),
            Self::Read(read) => read.run(context).await?.into(),
            Self::History(history) => history.run(context).await?.into(),
            Self::Wait(wait) => wait.run(context).await?.into(),
            Self::Watch(watch) => watch.run(context).await?.into(),
            Self::Events(events) => events.run(context).await?.into(),
            Self::Search(search) => search.run(context).await?.into(),
            Self::Record(record) => record.run(context).await?.into(),
            Self::Replay(replay) => replay.run(context).await?.into(),
            Self::Lease(lease) => lease.run(context).await?.into(),
            Self::AllowWrite(allow_write) => allow_write.run(context).await?.into(),
            Self::Approve(approve) => approve.run(context).await?.into(),
            Self::Token(token) => token.run(context)?.into(),
            Self::Mounts(mounts) => mounts.run(context).await?.into(),
            Self::Policy(policy) => policy.run(context).await?.into(),
            Self::Journal(journal) => journal.run(context).await?,
            Self::Kill(kill) => kill.run(context).await?.into(),
            Self::Call(call) => call.run(context).await?.into(),
            Self::Config(config) => config.run(context).await?.into(),
            Self::Why(why) => why.run()?.into(),
            Self::Top(top) => top.run(context).await?.into(),
            Self::Doctor(doctor) => doctor.run(context).await?.into(),
            Self::Completions(completions) => completions.run()?.into(),
            Self::Integrate(integrate) => integrate.run()?.into(),
            Self::Man(man) => man.run()?.into(),
            Self::Install(install) => install.run(context).await?.into(),
            Self::Upgrade(upgrade) => upgrade.run(context).await?.into(),
            Self::Stop(stop) => stop.run(context).await?.into(),
        })
    }
}

/// Whether answers are wanted as JSON, as far as words tell that are not understood: a mistake in them
/// is answered in the same form.
fn wants_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Replaces the tip to write `--` before a negative number where that is the value of an option: no option takes one.
fn without_separator_tip(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return };
    let is_negative =
        found.starts_with('-') && found[1..].starts_with(|it: char| it.is_ascii_digit());
    if error.kind() != ErrorKind::UnknownArgument || !is_negative {
        return;
    }
    let found_in = |word: &OsString| word.to_string_lossy().starts_with(found.as_str());
    let Some(at) = words.iter().position(found_in) else { return };
    let before = words[..at].last().map(|word| word.to_string_lossy().into_owned());
    if let Some(flag) = before.filter(|flag| takes_value(&CommandLine::command(), flag)) {
        let tip = format!("`{flag}` takes no negative value");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Whether a command, or one inside of it, has this option with a value.
fn takes_value(command: &clap::Command, flag: &str) -> bool {
    let is_it = |it: &clap::Arg| {
        let long = it.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
        long && it.get_action().takes_values()
    };
    command.get_arguments().any(is_it) || command.get_subcommands().any(|it| takes_value(it, flag))
}

/// Adds to the error about a single word after `run` how to run it in a new session.
fn advise(error: &mut clap::Error, words: &[OsString]) {
    without_separator_tip(error, words);
    let about_run = |usage: &ContextValue| usage.to_string().contains("termgate run");
    let missing = error.kind() == ErrorKind::MissingRequiredArgument;
    let [.., before, word] = words else { return };
    let is_alone = before == "run" && !word.as_encoded_bytes().starts_with(b"-");
    if missing && is_alone && error.get(ContextKind::Usage).is_some_and(about_run) {
        let word = word.to_string_lossy();
        let tip = format!("to run it in a new session, write: termgate run -- {word}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Answers words that mean no command, or ask for help.
fn refuse(output: &CommandOutput, error: &clap::Error) -> CommandExit {
    if error.use_stderr() && output.form() == OutputForm::Json {
        let text = error.to_string();
        let message = text.trim().trim_start_matches("error: ").to_owned();
        return tell(output, Err(CliFailure::Usage(message)));
    }
    // Nobody is left to hear that the terminal is closed.
    let _ = error.print();
    exit_of(error)
}

/// How words end that mean no command: asking for help is no mistake.
fn exit_of(error: &clap::Error) -> CommandExit {
    if error.use_stderr() { CommandExit::Usage } else { CommandExit::Done }
}

/// Prints how a command ended.
fn tell(output: &CommandOutput, ended: Result<CommandFinish, CliFailure>) -> CommandExit {
    let failure = match ended {
        Ok(CommandFinish::Streamed(exit)) => return exit,
        Ok(CommandFinish::Told(report)) => match output.report(&report) {
            Ok(()) => return report.exit,
            // What it was for is done or is not, whoever reads of it.
            Err(failure) if failure.is_unread() => return report.exit,
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    // Without standard output the exit code has to do.
    if failure.exit() != CommandExit::Done {
        let _ = output.failure(&failure);
    }
    failure.exit()
}

#[cfg(test)]
mod tests;
