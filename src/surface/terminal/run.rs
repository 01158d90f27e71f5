//! `run`: one command, its own output, and how it ended.
//!
//! It sends the command like any other write, under the caller's lease, and follows what the
//! session says of it. It never invents an exit code: where nobody told one, there is none.

pub mod sending;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::core::keys::paste::CANONICAL_LINE_MAX;
use crate::core::policy::PermittedAct;
use crate::core::shell::commands::EndsBy;
use crate::session::command::Accepted;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::session::registry::confining::ScratchPlace;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::following::{Following, ResultLines};
use crate::surface::terminal::run::sending::{Sending, Sent};
use crate::surface::tool::{Answer, Tool, ToolAccess, ToolRuns};
use crate::wire::command::Followed;
use crate::wire::error::RefusalCause;

/// How many bytes of a command are typed; a longer one the shell reads from a file.
const TYPED_MAX: usize = 3_000;

/// What becomes of the command when the call is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    #[default]
    Leave,
    Interrupt,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RunTool {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    /// One command, of any length, also several lines
    pub command: String,
    /// Up to 600000 (default 60000); then the command keeps running
    timeout_ms: Option<u64>,
    /// Lines of output told (default 40, within 3 KB)
    max_lines: Option<u64>,
    /// What a cancel does to the command
    #[serde(default)]
    pub on_cancel: OnCancel,
    /// Default: the lease you hold
    pub lease_id: Option<String>,
    /// Refuse if the screen changed since
    pub expect_watermark: Option<u64>,
    /// A repeated call has no second effect
    pub idempotency_key: Option<String>,
}

impl Tool for RunTool {
    const NAME: &'static str = "run";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs one command at the prompt under your lease; answers its \
        own output and exit code (null when unknown). status: completed, not_run, timeout (it \
        keeps running), needs_input or exited. busy: another one runs.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Type);
    const RUNS: ToolRuns = ToolRuns::Line("command");
    const DESTRUCTIVE: bool = true;
    const OPEN_WORLD: bool = true;

    type Result = Followed;

    async fn call(self, mut call: Call) -> Result<Answer<Followed>, SurfaceError> {
        let started = call.daemon.now();
        let timeout = millis("timeout_ms", self.timeout_ms.unwrap_or(60_000), 1..=600_000)?;
        let lines = ResultLines::wanted(self.max_lines)?;
        let text = self.command.trim_end_matches(['\n', '\r']);
        check(text)?;
        let target = call.take_target()?;
        call.touched(&target.session);
        let clock = call.daemon.sessions.clock().clone();
        let until = started + timeout;
        let accepted = std::mem::replace(&mut call.accepted, Accepted::nothing());
        let (waiting, share) = (call.daemon.departure.waiting(), call.share());
        let sending = Sending {
            call: &call,
            parameters: &self,
            target: &target,
            text,
            until,
            waiting: &waiting,
        };
        let Sent { command, epoch, interrupt, warning, kept } =
            sending.send(&clock, accepted).await?;
        let following = Following {
            session: target.session.clone(),
            command: command.id,
            epoch,
            until,
            started,
        };
        let mut followed = following.end(&clock, &waiting, lines, &share).await;
        if let Some(interrupt) = interrupt {
            interrupt.disarm();
        }
        followed.warning = warning;
        // The lease was kept alive up to here.
        drop(kept);
        Ok(Answer { text: followed.summary(), result: followed })
    }
}

/// Refuses what is no command.
fn check(text: &str) -> Result<(), SurfaceError> {
    if text.trim().is_empty() {
        return Err(SurfaceError::argument("command", "nothing to run"));
    }
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.contains(control) {
        let (problem, cause) = ("has control characters", RefusalCause::ControlCharacters);
        return Err(SurfaceError::refused("command", problem, cause));
    }
    Ok(())
}

/// Whether the history expansion of bash and zsh would change a command that is typed.
pub fn names_history(text: &str) -> bool {
    let marks = text.match_indices('!');
    let mut follows = marks.map(|(at, _)| text[at + 1..].chars().next());
    text.starts_with('^')
        || follows.any(|next| {
            next.is_some_and(|next| !matches!(next, ' ' | '\t' | '\n' | '\r' | '=' | '('))
        })
}

/// The line that has bash or zsh run a command as it is, in which nothing is expanded before. The blank before it
/// keeps it out of the history of shells that are set to leave out such lines.
pub fn unexpanded(text: &str) -> String {
    let mut line = String::from(" eval $'");
    for character in text.chars().filter(|character| *character != '\r') {
        match character {
            '\n' => line.push_str(r"\n"),
            '\t' => line.push_str(r"\t"),
            '!' => line.push_str(r"\041"),
            '\\' | '\'' => line.extend(['\\', character]),
            _ => line.push(character),
        }
    }
    line.push('\'');
    line
}

/// Whether a shell has to read the command from a file: it is too long to be typed, has a tab, or several
/// lines and the shell has no way to take them as one.
pub fn needs_file(text: &str, ends_by: EndsBy) -> bool {
    match ends_by {
        // A line editor completes at a tab, and fish leaves those out that are pasted.
        EndsBy::Marks => text.len() > TYPED_MAX || text.contains('\t'),
        EndsBy::Kernel => text.len() > TYPED_MAX || text.contains('\n'),
        // What is no shell of this machine reads no file of it.
        EndsBy::Prompt => false,
    }
}

/// How the names of such files end.
pub const COMMAND_EXTENSION: &str = "command";

/// A file with one command.
#[derive(Debug)]
pub struct Script {
    path: PathBuf,
}

impl Script {
    /// Writes the command into a file, if the shell cannot take the line that is to be typed for it.
    ///
    /// # Errors
    /// [`SessionError::LineTooLong`] where there is no place for such files, and what the kernel
    /// said.
    pub fn needed(
        (sessions, session): (&Registry, &Session),
        text: &str,
        line: &str,
        ends_by: EndsBy,
    ) -> Result<Option<Self>, SurfaceError> {
        if !needs_file(line, ends_by) {
            return Ok(None);
        }
        let Some(ScratchPlace { directory, owner }) = sessions.scratch(session) else {
            let (bytes, max) = (text.len(), CANONICAL_LINE_MAX);
            return Err(SessionError::LineTooLong { bytes, max }.into());
        };
        let path = directory.join(format!("{}.{COMMAND_EXTENSION}", Uuid::new_v4().simple()));
        let script = Self { path };
        let mut options = OpenOptions::new();
        let written = options.write(true).create_new(true).mode(0o600).open(&script.path);
        let written = written.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            owner.map_or(Ok(()), |owner| chown(&script.path, Some(owner), None))
        });
        written.map_err(SessionError::Terminal)?;
        Ok(Some(script))
    }

    /// The line that has the shell read it. The blank before it keeps it out of the history of
    /// shells that are set to leave out such lines.
    pub fn line(&self) -> String {
        // The path is the daemon's own, and a quote in it is a quote for every shell.
        format!(" . '{}'", self.path.display().to_string().replace('\'', r"'\''"))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Whatever is left goes when the daemon starts the next time.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::{names_history, unexpanded};

    #[test]
    fn what_bash_and_zsh_would_replace_by_history_is_written_without_it() {
        for text in ["echo \"a!b\"", "echo !$", "^old^new", "git commit -m \"x!!\""] {
            assert!(names_history(text), "{text}");
            assert!(!names_history(&unexpanded(text)), "{text}");
        }
        for text in ["echo \"Hi!\"", "[ a != b ]", "! true", "!(x)", "a\n! b", "a!\r\n"] {
            assert_eq!(names_history(text), text.contains("!\""), "{text}");
        }
        assert_eq!(unexpanded("echo 'it!' \\ \t\r\nls"), r" eval $'echo \'it\041\' \\ \t\nls'");
    }
}
