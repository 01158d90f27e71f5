//! `follow_command`: a command that was sent before, followed until it ends or asks; for operators.
//!
//! It answers as `run` does, so that a client that lost the answer with a daemon gets it from the next one. It
//! sends nothing but the interrupt that its caller asks for and may send.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::policy::PermittedAct;
use crate::core::policy::denial::Denial;
use crate::core::shell::commands::record::CommandId;
use crate::session::command::Accepted;
use crate::session::control::{GivenUp, Interrupt};
use crate::session::handle::Session;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::following::{Following, ResultLines};
use crate::surface::terminal::read_commands::find;
use crate::surface::terminal::run::OnCancel;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::command::Followed;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct FollowCommand {
    /// Id, prefix or name
    session: String,
    /// Its command_id
    id: u64,
    /// Up to 600000 (default 60000)
    timeout_ms: Option<u64>,
    /// Lines of output told (default 40, within 3 KB)
    max_lines: Option<u64>,
    /// What a cancel does to the command
    #[serde(default)]
    on_cancel: OnCancel,
}

impl Tool for FollowCommand {
    const NAME: &'static str = "follow_command";
    const TITLE: &'static str = "Follow a command";
    const DESCRIPTION: &'static str = "Waits for a command that run sent, and answers as run does.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const ONLY_READS: bool = true;

    type Result = Followed;

    async fn call(self, mut call: Call) -> Result<Answer<Followed>, SurfaceError> {
        let timeout = millis("timeout_ms", self.timeout_ms.unwrap_or(60_000), 0..=600_000)?;
        let lines = ResultLines::wanted(self.max_lines)?;
        let session = call.session(Some(&self.session))?;
        let command = CommandId(self.id);
        let started = find(&session.frame(), command)?.started;
        let wanted = self.on_cancel == OnCancel::Interrupt;
        let armed = wanted.then(|| interrupt(&call, &session, command)).transpose();
        let clock = call.daemon.sessions.clock().clone();
        let following = Following {
            session: session.clone(),
            command,
            epoch: None,
            until: clock.now() + timeout,
            started,
        };
        // What the same client sends next is not to wait for the end.
        drop(std::mem::replace(&mut call.accepted, Accepted::nothing()));
        let (waiting, share) = (call.daemon.departure.waiting(), call.share());
        let mut followed = following.end(&clock, &waiting, lines, &share).await;
        followed.warning = match armed {
            Ok(None) => None,
            Ok(Some(armed)) => {
                armed.disarm();
                prevented(&call, &session)
            }
            Err(denial) => Some(denial.to_string()),
        }
        .map(|why| format!("ending this call interrupts nothing: {why}"));
        Ok(Answer { text: followed.summary(), result: followed })
    }
}

/// The interrupt of a command, for a caller who may write to its session.
fn interrupt(call: &Call, session: &Session, command: CommandId) -> Result<Interrupt, Denial> {
    let now = call.daemon.now();
    let (board, act) = (&call.daemon.switchboard, PermittedAct::Type);
    let permit = board.decide(&call.standing, act, Some(session), now)?;
    let by = call.standing.caller.clone();
    session.interrupt(&permit, GivenUp { command, by, sent_in: None, kept: None })
}

/// What would have kept the interrupt from the command at last.
fn prevented(call: &Call, session: &Session) -> Option<String> {
    let now = call.daemon.now();
    let (board, act) = (&call.daemon.switchboard, PermittedAct::Type);
    if let Err(denial) = board.decide(&call.standing, act, Some(session), now) {
        return Some(denial.to_string());
    }
    let frame = session.frame();
    let holding = frame.lease.value.holding.as_ref().filter(|holding| !holding.reclaimable)?;
    Some(format!("the lease is held by {}", holding.by))
}
