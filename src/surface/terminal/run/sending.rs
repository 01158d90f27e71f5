//! Sending a command: in its turn, once the terminal is ready for it, and never twice.
//!
//! It follows nothing. A call that has to wait for the terminal gives up its turn among the calls of
//! its connection, and keeps its place among the commands for the same terminal.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::ids::{Epoch, LeaseId, Watermark};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::CommandSent;
use crate::core::keys::paste::PasteRule;
use crate::core::moment::Moment;
use crate::core::shell::activity::Foreground;
use crate::core::shell::commands::EndsBy;
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::readiness::{Readiness, ReadyPrompt};
use crate::session::clock::Clock;
use crate::session::command::{
    Accepted, CommandOrder, Content, Expectation, Provision, Repeated, WriteOrder, Written,
};
use crate::session::control::{GivenUp, Interrupt, KeepAlive};
use crate::session::drain::WaitingCall;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::pty::ProcessId;
use crate::session::pty::surroundings::is_interactive_shell;
use crate::session::stats::Participation;
use crate::surface::call::{Call, Target};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::run::Script;
use crate::surface::terminal::run::{OnCancel, RunTool, names_history, unexpanded};
use crate::surface::terminal::writing::{fingerprint, idempotency_key, presented};
use crate::wire::error::RefusalCause;

/// A command to be sent.
#[derive(Debug)]
pub struct Sending<'a> {
    pub call: &'a Call,
    pub parameters: &'a RunTool,
    pub target: &'a Target,
    /// Without the ends of lines behind it.
    pub text: &'a str,
    /// Until when the terminal is waited for.
    pub until: Moment,
    /// Told when the daemon leaves while the terminal is waited for.
    pub waiting: &'a WaitingCall,
}

/// A command that was sent, by this call or by one that it repeats.
#[derive(Debug)]
pub struct Sent {
    pub command: CommandSent,
    /// The holding it was sent under, or that its caller has now.
    pub epoch: Option<Epoch>,
    /// Interrupts it when this call is given up, where that was asked for.
    pub interrupt: Option<Interrupt>,
    pub warning: Option<String>,
    /// Keeps the lease alive.
    pub kept: Option<KeepAlive>,
}

impl Sending<'_> {
    /// Sends it, unless the same call did so before.
    ///
    /// # Errors
    /// [`SessionError::CommandRunning`] when the terminal is not ready for it and does not look like
    /// it will be, [`SurfaceError::Argument`] when the same call was made before and its command is
    /// forgotten, [`SurfaceError::DaemonLeaves`] while it is waited for, and why nothing may be written.
    pub async fn send(&self, clock: &Clock, accepted: Accepted) -> Result<Sent, SurfaceError> {
        let session = &self.target.session;
        let key = self.parameters.idempotency_key.as_deref();
        let key = idempotency_key(key, fingerprint(&("run", self.text)))?;
        if let Some(sent) = self.repeated(key.as_ref()).await? {
            return Ok(sent);
        }
        let mut accepted = Some(accepted);
        let mut readiness = ReadyWatch::begin(session, clock, self.until);
        let mut place = pin!(session.place_in_line());
        let _place = tokio::select! {
            biased;
            place = &mut place => place,
            () = ready(()) => {
                drop(accepted.take());
                tokio::select! {
                    place = place => place,
                    () = clock.sleep_until(self.until) => {
                        return Err(SessionError::CommandRunning.into());
                    }
                    () = self.waiting.told() => return Err(SurfaceError::DaemonLeaves),
                }
            }
        };
        loop {
            let ready = match readiness.now() {
                Ok(Some(ready)) => Ok(ready),
                Ok(None) | Err(_) => {
                    // Others of the connection may be what it takes.
                    drop(accepted.take());
                    let reached = self.waiting.unless_told(readiness.reached()).await;
                    reached.ok_or(SurfaceError::DaemonLeaves)?
                }
            };
            let accepted = accepted.take().unwrap_or_else(Accepted::nothing);
            let written = match ready {
                Ok(ready) => {
                    let order = self.order(ready, key.clone())?;
                    session.write(&self.target.permit, order, accepted).await
                }
                Err(error) => match self.repeated(key.as_ref()).await? {
                    Some(sent) => return Ok(sent),
                    None => return Err(error.into()),
                },
            };
            match written {
                Ok(written) => return self.written(written),
                // It was ready by what was known of it, which comes a little later.
                Err(SessionError::CommandRunning) => readiness.was_outdated(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn presented(&self) -> Result<Option<LeaseId>, SurfaceError> {
        presented(self.call, &self.target.session, self.parameters.lease_id.as_deref())
    }

    /// What the same call sent before, if it was made before.
    async fn repeated(&self, key: Option<&IdempotencyKey>) -> Result<Option<Sent>, SurfaceError> {
        let Some(key) = key else { return Ok(None) };
        let Target { session, permit } = self.target;
        let presented = self.presented()?;
        let caller = self.call.standing.caller.clone();
        let made = session.recall(permit, caller, presented, key.clone()).await?;
        let Some(Repeated { command, epoch }) = made else { return Ok(None) };
        let command = command.ok_or_else(forgotten)?;
        let interrupt = self.interrupt_of(command.id, epoch);
        Ok(Some(Sent { command, epoch, interrupt, warning: None, kept: None }))
    }

    fn written(&self, written: Written) -> Result<Sent, SurfaceError> {
        let session = &self.target.session;
        if let Some(grant) = &written.lease {
            self.call.daemon.sessions.remember_lease(grant.lease, session.id());
        }
        let command = written.command.ok_or_else(forgotten)?;
        let Written { epoch, warning, kept, .. } = written;
        let interrupt = written.interrupt.or_else(|| self.interrupt_of(command.id, epoch));
        Ok(Sent { command, epoch, interrupt, warning, kept })
    }

    /// The command as it is, for what is no shell of this machine. Several commands at once, where nothing
    /// takes a paste, would end each by itself, and nobody could tell their output and ends apart.
    fn lines_for_prompt(&self) -> Result<String, SurfaceError> {
        let command = &self.parameters.command;
        let frame = self.target.session.frame();
        if frame.input_modes.value.bracketed_paste || !command.trim_end().contains('\n') {
            return Ok(command.clone());
        }
        let row = before_cursor(&frame);
        if is_block(command) && !is_debuggers(row) {
            let block = if row == ">>>" { without_inner_blanks(command) } else { None };
            return Ok(block.unwrap_or_else(|| command.clone()));
        }
        let problem = "has several lines, and the program in front takes no paste";
        Err(SurfaceError::refused("command", problem, RefusalCause::SeveralLines))
    }

    /// Whether the shell in front is one that replaces parts of what is typed by earlier commands.
    fn expands_history(&self) -> bool {
        let frame = self.target.session.frame();
        let foreground = frame.activity.value.foreground.as_ref();
        let is_one = |it: &&Foreground| matches!(it.program.as_deref(), Some("bash" | "zsh"));
        // What a script runs may have the name of its shell, and the rest of a command is no command.
        let shell = foreground.filter(is_one).map(|it| ProcessId(it.group));
        shell.is_some_and(is_interactive_shell) && before_cursor(&frame) != ">"
    }

    /// The interrupt of a command that the same call sent before, where one was asked for.
    fn interrupt_of(&self, command: CommandId, sent_in: Option<Epoch>) -> Option<Interrupt> {
        let Target { session, permit } = self.target;
        let by = self.call.standing.caller.clone();
        let given_up = GivenUp { command, by, sent_in, kept: None };
        self.interrupts().then(|| session.interrupt(permit, given_up).ok()).flatten()
    }

    fn interrupts(&self) -> bool {
        self.parameters.on_cancel == OnCancel::Interrupt
    }

    fn order(
        &self,
        ready: ReadyPrompt,
        key: Option<IdempotencyKey>,
    ) -> Result<WriteOrder, SurfaceError> {
        let ReadyPrompt { ends_by, edits } = ready;
        let expanded = names_history(self.text) && self.expands_history();
        // Of several lines each is run before the next is read, as an alias needs it, only in a file.
        let filed = expanded && self.text.contains('\n');
        // Without a line editor a shell that marks takes lines as one that does not.
        let kernel = ends_by == EndsBy::Marks && (!edits || filed);
        let takes = if kernel { EndsBy::Kernel } else { ends_by };
        let line = if expanded && !(filed && takes == EndsBy::Kernel) {
            unexpanded(self.text)
        } else if ends_by == EndsBy::Prompt {
            // Where a blank line ends a block, it is a part of the command.
            self.lines_for_prompt()?
        } else {
            self.text.to_owned()
        };
        let place = (&self.call.daemon.sessions, &self.target.session);
        let script = Script::needed(place, self.text, &line, takes)?;
        let typed = script.as_ref().map_or(line, Script::line);
        let paste = paste_rule(&typed, takes);
        Ok(WriteOrder {
            caller: self.call.standing.caller.clone(),
            door: self.call.standing.door,
            content: Content::Text { text: typed.clone(), paste, enter: true },
            presented: self.presented()?,
            take: self.call.take_rule(),
            expect: Expectation {
                watermark: self.parameters.expect_watermark.map(Watermark),
                text: None,
            },
            key,
            dry_run: false,
            keep_alive: true,
            command: Some(CommandOrder {
                text: self.text.to_owned(),
                typed,
                ends_by,
                provision: script.map(Provision::of),
                interrupts: self.interrupts(),
            }),
            decision: None,
            bound: None,
        })
    }
}

/// Whether lines look like one command of an interpreter: each that follows is indented, empty, closes a
/// bracket, or goes on with the block before it.
fn is_block(text: &str) -> bool {
    const GOES_ON: [&str; 4] = ["else", "elif ", "except", "finally"];
    text.lines().skip(1).all(|line| {
        line.is_empty()
            || line.starts_with(char::is_whitespace)
            || line.starts_with([')', ']', '}'])
            || GOES_ON.iter().any(|word| line.starts_with(word))
    })
}

/// What stands on the row of the cursor.
fn before_cursor(frame: &Frame) -> &str {
    let at = frame.cursor.value.row.0.saturating_sub(frame.base_row.0);
    frame.lines.get(at as usize).map_or("", |line| line.value.text.trim())
}

/// Whether this is the prompt of a debugger: a name in parentheses. They take each line by itself.
fn is_debuggers(row: &str) -> bool {
    row.starts_with('(') && row.ends_with(')')
}

/// The block without the empty lines inside of it, which would end it in Python. None where one may be a part of a string.
fn without_inner_blanks(block: &str) -> Option<String> {
    let has_long_string = ["\"\"\"", "'''", "`"].iter().any(|quote| block.contains(quote));
    let text = block.trim_end();
    let has_blank = text.lines().any(|line| line.trim().is_empty());
    if has_blank && has_long_string {
        return None;
    }
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Some(lines.join("\n") + &block[text.len()..])
}

/// A line is typed; several are pasted, so that they are taken as one. The shells that tell marks
/// know a paste also before they ask for brackets, which comes after the prompt.
fn paste_rule(typed: &str, ends_by: EndsBy) -> PasteRule {
    let single = !typed.contains(['\n', '\t']);
    match ends_by {
        _ if single => PasteRule::Never,
        EndsBy::Marks => PasteRule::Always,
        EndsBy::Kernel | EndsBy::Prompt => PasteRule::Auto,
    }
}

fn forgotten() -> SurfaceError {
    let problem = "was used for a command that is not known any more; nothing was sent again";
    SurfaceError::argument("idempotency_key", problem)
}

/// A terminal that is watched until it is ready for a command.
#[derive(Debug)]
pub struct ReadyWatch<'a> {
    clock: &'a Clock,
    frames: watch::Receiver<Arc<Frame>>,
    until: Moment,
    /// The frame that was read last.
    read: Option<Arc<Frame>>,
    /// The frame by which it was ready, and was not any more. Readiness can change without the watermark.
    outdated: Option<Arc<Frame>>,
    _attending: Participation,
}

impl<'a> ReadyWatch<'a> {
    /// Begins to watch a terminal, until this moment at most.
    pub fn begin(session: &Session, clock: &'a Clock, until: Moment) -> Self {
        let _attending = session.attend();
        let frames = session.frames();
        Self { clock, frames, until, read: None, outdated: None, _attending }
    }

    /// Whether it is ready at this moment.
    pub fn now(&mut self) -> Result<Option<ReadyPrompt>, SessionError> {
        let frame = Arc::clone(&self.frames.borrow_and_update());
        self.read = Some(Arc::clone(&frame));
        if let Some(exit) = frame.exit.value {
            return Err(SessionError::Exited(exit));
        }
        let in_time = self.clock.now() < self.until;
        let outdated = self.outdated.as_ref().is_some_and(|it| Arc::ptr_eq(it, &frame));
        match &frame.shell.readiness {
            Readiness::Ready(_) if outdated && in_time => Ok(None),
            Readiness::Ready(_) if outdated => Err(SessionError::CommandRunning),
            Readiness::Ready(ready) => Ok(Some(*ready)),
            Readiness::Starting | Readiness::Soon if in_time => Ok(None),
            Readiness::Starting => Err(SessionError::NoPromptYet),
            Readiness::Soon | Readiness::Busy => Err(SessionError::CommandRunning),
            Readiness::Asks(prompt) => Err(SessionError::Asks(prompt.to_string())),
        }
    }

    /// Notes that it was not ready any more when a command came to it.
    pub fn was_outdated(&mut self) {
        self.outdated = self.read.take();
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`SessionError::CommandRunning`] when a command runs, [`SessionError::Asks`] when something asks,
    /// [`SessionError::NoPromptYet`] and [`SessionError::Exited`].
    pub async fn reached(&mut self) -> Result<ReadyPrompt, SessionError> {
        loop {
            if let Some(ready) = self.now()? {
                return Ok(ready);
            }
            tokio::select! {
                changed = self.frames.changed() => changed.map_err(|_| SessionError::Closed)?,
                () = self.clock.sleep_until(self.until) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_inner_blanks;

    #[test]
    fn empty_lines_inside_of_a_block_go_and_those_behind_it_stay() {
        let check = |block: &str, sent: Option<&str>| {
            assert_eq!(without_inner_blanks(block).as_deref(), sent, "{block:?}");
        };
        check("def f():\n    return 1\n\n", Some("def f():\n    return 1\n\n"));
        check("class A:\n\n  x = 1\n   \n  y = 2\n", Some("class A:\n  x = 1\n  y = 2\n"));
        // The empty line may be a part of a string.
        check("f(\"\"\"\n\n  \"\"\")", None);
        check("f(\"\"\"\n  \"\"\")", Some("f(\"\"\"\n  \"\"\")"));
    }
}
