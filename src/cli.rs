//! The command line: one file per command, one list, one way in and out.
//!
//! It knows everything below and decides nothing about sessions: each command is a few calls to
//! the daemon. What it prints and how it ends is settled here for all of them.

pub mod allow_write;
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
pub mod exit;
pub mod failure;
pub mod hint;
pub mod history;
pub mod install;
pub mod keys;
pub mod kill;
pub mod lease;
pub mod logging;
pub mod ls;
pub mod man;
pub mod mcp;
pub mod new;
pub mod output;
pub mod own_lease;
pub mod pair;
pub mod printed;
pub mod prometheus;
pub mod raw_terminal;
pub mod read;
pub mod reader;
pub mod rows;
pub mod run;
pub mod send;
pub mod serve;
pub mod silence;
pub mod spawn;
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
pub mod written;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ColorChoice, Parser, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::{Form, Output, Report};
use crate::session::clock::Clock;

/// One terminal, one writer, many watchers
#[derive(Debug, Parser)]
#[command(name = "termgate", version, color = ColorChoice::Never, after_help = EXIT_CODES)]
pub struct CommandLine {
    /// Print JSON: one object, or one per line for streams. Errors too
    #[arg(long, global = true)]
    json: bool,
    /// The daemon's operator socket, instead of TERMGATE_SOCKET or the default; for `serve`, its
    /// gateway socket; for `mcp`, the socket to connect to
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 lease conflict, \
    5 denied or read-only, 6 timed out, 7 daemon unreachable. `run` ends with the exit code of the \
    command; 122 waiting for input, 123 exit code unknown, 124 timed out and still running";

/// Every command.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Mcp(mcp::Mcp),
    New(new::New),
    Ls(ls::Ls),
    Attach(attach::Attach),
    Run(run::Run),
    Commands(commands::Commands),
    Send(send::Send),
    Keys(keys::Keys),
    Read(read::Read),
    History(history::History),
    Wait(wait::Wait),
    Watch(watch::Watch),
    Lease(lease::Lease),
    AllowWrite(allow_write::AllowWrite),
    Token(token::Token),
    Kill(kill::Kill),
    Call(call::Call),
    Config(config::ConfigCommand),
    Why(why::Why),
    Top(top::Top),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
    Install(install::Install),
    Upgrade(upgrade::Upgrade),
    Stop(stop::Stop),
}

/// How a command that did not fail ends.
#[derive(Debug)]
enum End {
    Told(Report),
    /// It printed as it went.
    Streamed(Exit),
}

impl From<Report> for End {
    fn from(report: Report) -> Self {
        Self::Told(report)
    }
}

impl From<Exit> for End {
    fn from(exit: Exit) -> Self {
        Self::Streamed(exit)
    }
}

/// Runs the command that the words mean, the program's name first, and prints its answer.
///
/// Must be called inside a runtime with its timers and input and output enabled.
///
/// # Errors
/// When the system refuses a clock.
pub async fn run(words: Vec<OsString>) -> anyhow::Result<Exit> {
    let clock = Clock::boot().context("there is no clock")?;
    let form = |json| if json { Form::Json } else { Form::People };
    let json = wants_json(&words);
    let parsed = match CommandLine::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(refuse(&Output::new(form(json), clock), &error)),
    };
    let context = Context::new(Output::new(form(parsed.json), clock), parsed.socket);
    let ended = parsed.command.run(&context).await;
    Ok(tell(&context.output, ended))
}

impl Command {
    async fn run(self, context: &Context) -> Result<End, Failure> {
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
            Self::Lease(lease) => lease.run(context).await?.into(),
            Self::AllowWrite(allow_write) => allow_write.run(context).await?.into(),
            Self::Token(token) => token.run(context)?.into(),
            Self::Kill(kill) => kill.run(context).await?.into(),
            Self::Call(call) => call.run(context).await?.into(),
            Self::Config(config) => config.run()?.into(),
            Self::Why(why) => why.run()?.into(),
            Self::Top(top) => top.run(context).await?.into(),
            Self::Doctor(doctor) => doctor.run(context).await?.into(),
            Self::Completions(completions) => completions.run()?.into(),
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

/// Answers words that mean no command, or ask for help.
fn refuse(output: &Output, error: &clap::Error) -> Exit {
    if error.use_stderr() && output.form() == Form::Json {
        let text = error.to_string();
        let message = text.trim().trim_start_matches("error: ").to_owned();
        return tell(output, Err(Failure::Usage(message)));
    }
    // Nobody is left to hear that the terminal is closed.
    let _ = error.print();
    exit_of(error)
}

/// How words end that mean no command: asking for help is no mistake.
fn exit_of(error: &clap::Error) -> Exit {
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

/// Prints how a command ended.
fn tell(output: &Output, ended: Result<End, Failure>) -> Exit {
    let failure = match ended {
        Ok(End::Streamed(exit)) => return exit,
        Ok(End::Told(report)) => match output.report(&report) {
            Ok(()) => return report.exit,
            // What it was for is done or is not, whoever reads of it.
            Err(failure) if failure.is_unread() => return report.exit,
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    // Without standard output the exit code has to do.
    if failure.exit() != Exit::Done {
        let _ = output.failure(&failure);
    }
    failure.exit()
}

#[cfg(test)]
mod tests;
