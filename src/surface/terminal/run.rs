//! `run`: one command, its own output, and how it ended.
//!
//! It sends the command like any other write, under the caller's lease, and follows what the
//! session says of it. It never invents an exit code: where nobody told one, there is none.

pub mod script;
pub mod sending;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::policy::PermittedAct;
use crate::core::shell::commands::EndsBy;
use crate::session::command::Accepted;
use crate::surface::argument::{millis, within};
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::following::Following;
use crate::surface::terminal::run::sending::{Sending, Sent};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::command::Followed;
use crate::wire::error::RefusalCause;

/// How many bytes of a command are typed; a longer one the shell reads from a file.
const TYPED_MAX: usize = 3_000;

/// How many lines of output one answer holds at most, and when nobody says.
const LINES_MAX: u64 = 2_000;
const LINES_DEFAULT: u64 = 200;

/// The tool.
#[derive(Debug)]
pub struct Run;

/// What becomes of the command when the call is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    #[default]
    Leave,
    Interrupt,
}

/// The parameters of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    /// One command, of any length, also several lines
    pub command: String,
    /// Up to 600000 (default 60000); then the command goes on
    timeout_ms: Option<u64>,
    /// Lines of output told, head and tail (default 200)
    max_lines: Option<u64>,
    /// What a cancel does to the command
    #[serde(default)]
    pub on_cancel: OnCancel,
    /// Your lease (default: the one you hold)
    pub lease_id: Option<String>,
    /// Refuse if the screen changed since
    pub expect_watermark: Option<u64>,
    /// Repeating a call with it has no second effect
    pub idempotency_key: Option<String>,
}

impl Tool for Run {
    const NAME: &'static str = "run";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs one command at the prompt under your lease; answers its \
        own output and exit code (null when unknown). status: completed, not_run, timeout (it \
        goes on), needs_input (it asks) or exited. busy: another one runs.";
    const ACCESS: Access = Access::WriteSession(PermittedAct::Type);

    type Parameters = Parameters;
    type Result = Followed;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<Followed>, SurfaceError> {
        let started = call.daemon.now();
        let timeout = millis("timeout_ms", parameters.timeout_ms.unwrap_or(60_000), 1..=600_000)?;
        let max_lines = lines_told(parameters.max_lines)?;
        let text = parameters.command.trim_end_matches(['\n', '\r']);
        check(text)?;
        let target = call.take_target()?;
        call.touched(&target.session);
        let clock = call.daemon.sessions.clock().clone();
        let until = started + timeout;
        let accepted = std::mem::replace(&mut call.accepted, Accepted::nothing());
        let (waiting, share) = (call.daemon.departure.waiting(), call.share());
        let sending = Sending {
            call: &call,
            parameters: &parameters,
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
        let mut followed = following.end(&clock, &waiting, max_lines, &share).await;
        if let Some(interrupt) = interrupt {
            interrupt.disarm();
        }
        followed.warning = warning;
        // The lease was kept alive up to here.
        drop(kept);
        Ok(Answer { text: followed.summary(), result: followed })
    }
}

/// How many lines of output are told where somebody asks for so many.
///
/// # Errors
/// [`SurfaceError::Argument`] when it is not within the bounds.
pub fn lines_told(max_lines: Option<u64>) -> Result<usize, SurfaceError> {
    let lines = within("max_lines", max_lines.unwrap_or(LINES_DEFAULT), 1..=LINES_MAX)?;
    Ok(lines as usize)
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
