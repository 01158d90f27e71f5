//! `attach`: connects a person's terminal to a session.
//!
//! It paints the session from the daemon's deltas and sends typed bytes unchanged. Program output never
//! reaches the person's terminal raw, because the terminal's answers to queries would count as typing.

pub mod asked_call;
pub mod bar;
pub mod chooser;
pub mod client;
pub mod event_notices;
pub mod key_list;
pub mod layout;
pub mod notice;
pub mod pointer;
pub mod prefix_key;
pub mod renderer;
pub mod requests;
pub mod scrollback;
pub mod search;
pub mod status;
pub mod terminal;
pub mod typed_text;
pub mod unanswered;
pub mod view;
pub mod words;

use std::env;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::attach::chooser::choose;
use crate::cli::attach::client::{AttachOptions, Carried, Desk, Leaving, terminal_failed};
use crate::cli::attach::event_notices::EventNotices;
use crate::cli::attach::layout::room_for_session;
use crate::cli::attach::terminal::{Hint, Terminal, TerminalError, TerminalSignals};
use crate::cli::config::sources;
use crate::cli::context::{Context, Spawn};
use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::output::{CommandReport, OutputForm};
use crate::config::NotifyConfig;
use crate::core::keys::control::ControlKey;
use crate::mcp::attach::ATTACH_METHOD;
use crate::transport::client::ClientError;
use crate::wire::session::{SessionList, SessionState, SessionWire};

/// Attach to a session: see it live and type into it
///
/// Typing suspends the agent's lease. The agent gets it back when you hand back, detach, or do not type for
/// ten seconds. The session takes the size of your window when you type. Press C-\ and then d to detach, t to
/// take over, h to hand back, [ for the history, ? for a list of these keys, or C-\ to type C-\; --prefix is
/// another key than C-\. The wheel scrolls the history. Taking over lasts until you hand back, another person
/// takes over, or ten minutes pass without a key. If the daemon exits, `attach` waits for the next one; after
/// three seconds it restores your terminal and retries for five more.
#[derive(Debug, Args)]
pub struct AttachCommand {
    /// Id, unique prefix of one, or name [default: the running session; a list to choose from if several run]
    session: Option<String>,
    /// Watch only
    #[arg(long)]
    view_only: bool,
    /// The key before termgate's own keys, such as C-a [default: `attach.prefix` of the configuration]
    #[arg(long, value_name = "KEY")]
    prefix: Option<ControlKey>,
    #[command(flatten)]
    spawn: Spawn,
}

impl AttachCommand {
    pub async fn run(mut self, context: &Context) -> Result<CommandReport, CliFailure> {
        // Before a daemon is started for it.
        Terminal::check().map_err(refused)?;
        let (options, notify) = self.options()?;
        let mut carried = Carried::new(options);
        let mut daemon = self.spawn.daemon(context).await?;
        // Before the terminal is taken, so that every signal restores it.
        let mut signals = TerminalSignals::new().map_err(terminal_failed)?;
        let mut terminal = Terminal::take().map_err(refused)?;
        if !self.choose(context, &daemon, &mut terminal, &mut signals).await? {
            drop(terminal);
            let data = json!({"session": null, "name": null, "ended": "detached"});
            return Ok(CommandReport::new(data, ""));
        }
        let mut events = match notify.terminal && !notify.events.is_empty() {
            true => EventNotices::of_kinds(daemon.path().to_owned(), notify.events),
            false => EventNotices::off(),
        };
        loop {
            let Sitting { left, terminal: kept, carried: taken_along } =
                self.sit(&daemon, terminal, carried, (&mut signals, &mut events)).await;
            carried = taken_along;
            match left {
                Err(CliFailure::Request(ClientError::Closed)) if !carried.session.is_empty() => {
                    let (name, daemon) = (&*carried.name, &mut daemon);
                    let absence = Absence { name, daemon, context, signals: &mut signals };
                    terminal = absence.until_back(kept).await?;
                }
                left => {
                    // Restores the terminal before anything else prints on it.
                    drop(kept);
                    return Ok(report(&carried.session, &carried.name, &left?));
                }
            }
        }
    }

    fn options(&self) -> Result<(AttachOptions, NotifyConfig), CliFailure> {
        // A directory that is gone has no project file.
        let directory = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let config = sources(None, &directory, &env::vars_os().collect())?.load()?.config;
        let (config, notify) = (config.attach, config.notify);
        let options = AttachOptions {
            view_only: self.view_only,
            prefix: self.prefix.unwrap_or(config.prefix),
            coloured: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            clipboard: config.clipboard,
        };
        Ok((options, notify))
    }

    /// Chooses a session where none is named and several run. Returns whether the person stays.
    async fn choose(
        &mut self,
        context: &Context,
        daemon: &DaemonClient,
        terminal: &mut Terminal,
        signals: &mut TerminalSignals,
    ) -> Result<bool, CliFailure> {
        if self.session.is_some() || context.output.form() == OutputForm::Json {
            return Ok(true);
        }
        let list: SessionList = daemon.call("list_sessions", json!({})).await?.read()?;
        let is_running = |session: &SessionWire| session.state == SessionState::Running;
        let running: Vec<_> = list.sessions.into_iter().filter(is_running).collect();
        if running.len() > 1 {
            self.session = choose(running, terminal, signals).await.map_err(terminal_failed)?;
            return Ok(self.session.is_some());
        }
        Ok(true)
    }

    /// Attaches once.
    async fn sit(
        &self,
        daemon: &DaemonClient,
        mut terminal: Terminal,
        mut carried: Carried,
        (signals, events): (&mut TerminalSignals, &mut EventNotices),
    ) -> Sitting {
        if !carried.session.is_empty()
            && let Some(left) = carried.outlast_silence(daemon, &mut terminal, signals).await
        {
            return Sitting { left, terminal, carried };
        }
        let room = room_for_session(terminal.room());
        let seen = Some(&carried.session).filter(|id| !id.is_empty());
        let params = json!({
            "session": seen.or(self.session.as_ref()),
            "cols": room.cols,
            "rows": room.rows,
            "view_only": carried.options.view_only,
        });
        let attach = match daemon.client().open(ATTACH_METHOD, &params) {
            Ok(attach) => attach,
            Err(error) => return Sitting { left: Err(error.into()), terminal, carried },
        };
        let mut desk = Desk::new(daemon, attach, terminal, carried);
        let left = desk.sit(signals, events).await;
        desk.rise(left).await
    }
}

/// The result of one attachment.
#[derive(Debug)]
pub struct Sitting {
    pub left: Result<Leaving, CliFailure>,
    /// The terminal, still in use.
    pub terminal: Terminal,
    pub carried: Carried,
}

/// The failure for a terminal that cannot be used.
pub fn refused(error: TerminalError) -> CliFailure {
    match error {
        TerminalError::NoTerminal | TerminalError::Dumb => {
            CliFailure::Usage(format!("{error}; `termgate watch` and `termgate read` need none"))
        }
        TerminalError::Failed(error) => {
            CliFailure::Other(anyhow::Error::new(error).context("cannot use this terminal"))
        }
    }
}

fn report(session: &str, name: &str, leaving: &Leaving) -> CommandReport {
    let (ended, note) = match leaving {
        Leaving::Detached => ("detached", format!("[detached from {name}]")),
        Leaving::SentAway => ("detached", format!("[{name}: everybody attached was sent away]")),
        Leaving::Exited(exit) => ("exited", format!("[{name} {exit}]")),
    };
    let data: Value = json!({"session": session, "name": name, "ended": ended});
    CommandReport { notes: vec![note], ..CommandReport::new(data, "") }
}

/// How long to retry after the terminal was restored.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// How long to retry before that, with the terminal unchanged.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// A daemon that exited while a person was attached.
#[derive(Debug)]
pub struct Absence<'a> {
    name: &'a str,
    daemon: &'a mut DaemonClient,
    context: &'a Context,
    signals: &'a mut TerminalSignals,
}

/// Why a pause ended.
enum PauseEnd {
    /// The next daemon answers.
    Back,
    /// It timed out, or the person suspended the process.
    Pause,
    /// The person gave up.
    Patience,
}

impl Absence<'_> {
    /// Waits until a daemon runs again at the same place, and returns the terminal to continue with.
    ///
    /// # Errors
    /// No daemon returned in time, or the person gave up. The terminal is restored.
    pub async fn until_back(mut self, mut terminal: Terminal) -> Result<Terminal, CliFailure> {
        let over = self.pause(&mut terminal).await?;
        if matches!(over, PauseEnd::Back) {
            return Ok(terminal);
        }
        // Input for the session must not reach the shell.
        terminal.discard_typed();
        drop(terminal);
        if matches!(over, PauseEnd::Patience) {
            return Err(ClientError::Closed.into());
        }
        self.look_openly().await?;
        Terminal::take().map_err(refused)
    }

    /// Retries with the last picture on the terminal. Input waits in the terminal meanwhile.
    async fn pause(&mut self, terminal: &mut Terminal) -> Result<PauseEnd, CliFailure> {
        let mut looking = pin!(self.daemon.resume(PAUSE_MAX));
        loop {
            tokio::select! {
                found = &mut looking => {
                    return Ok(found.map_or(PauseEnd::Pause, |()| PauseEnd::Back));
                }
                hint = self.signals.next() => match hint {
                    Hint::Resized => terminal.resize(),
                    Hint::GoesOn => terminal.enter().map_err(terminal_failed)?,
                    Hint::Stop => return Ok(PauseEnd::Pause),
                    Hint::Leave => return Ok(PauseEnd::Patience),
                },
                painted = terminal.turn(&mut [], false) => if painted.is_err() {
                    return Ok(PauseEnd::Pause);
                },
            }
        }
    }

    /// Retries after the terminal was restored.
    async fn look_openly(&mut self) -> Result<(), CliFailure> {
        let name = self.name;
        let gone = format!("[{name}: the daemon is gone; looking for it, C-c to stop]");
        self.context.output.note(&gone);
        let leaving = async { while !matches!(self.signals.next().await, Hint::Leave) {} };
        tokio::select! {
            found = self.daemon.resume(OPEN_MAX) => found,
            () = leaving => Err(ClientError::Closed.into()),
        }
    }
}

#[cfg(test)]
mod tests;
