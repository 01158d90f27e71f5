//! Whether a terminal is ready for a command, and how the end of one will be known.
//!
//! It sends nothing. A shell that has not written its prompt yet is waited for, so that no command
//! reaches a shell that does not read.

use std::sync::Arc;
use std::time::Duration;

use crate::core::activity::{ShellPhase, State, prompts};
use crate::core::commands::Way;
use crate::core::commands::output::{before_cursor, prompt};
use crate::core::frame::Frame;
use crate::core::moment::Moment;
use crate::session::clock::Clock;
use crate::session::error::SessionError;
use crate::session::handle::Session;

/// How long a shell that was asked for marks may be silent before it is taken for one without.
const MARKS_PATIENCE: Duration = Duration::from_secs(2);

/// How long a program may be about to show a prompt before it counts as working, and how long one
/// that has only just been started.
const PATIENCE: Duration = Duration::from_millis(300);
const START_PATIENCE: Duration = Duration::from_secs(2);

/// What a command would be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub way: Way,
    /// What stands before the cursor and is no output.
    pub prompt: String,
}

/// What a frame says about it.
enum Verdict {
    Ready(Way),
    /// It can become ready by itself before long.
    Soon,
    Busy,
}

/// Waits until the terminal is ready for a command.
///
/// # Errors
/// [`SessionError::CommandRunning`] when a command runs or a program does not look like one that
/// takes commands, and [`SessionError::Exited`].
pub async fn ready(session: &Session, clock: &Clock, until: Moment) -> Result<Ready, SessionError> {
    let mut frames = session.frames();
    let started = clock.now();
    let _attending = session.attend();
    loop {
        let frame = Arc::clone(&frames.borrow_and_update());
        if let Some(exit) = frame.exit.value {
            return Err(SessionError::Exited(exit));
        }
        let now = clock.now();
        match judge(&frame, session.about().marks, now) {
            Verdict::Ready(way) => return Ok(Ready { way, prompt: prompt(&frame) }),
            Verdict::Busy => return Err(SessionError::CommandRunning),
            Verdict::Soon => {}
        }
        let about = session.about();
        let deadline = if about.marks && frame.commands.value.phase() == ShellPhase::Unmarked {
            // The files a shell reads at its start take as long as they take.
            until
        } else {
            until.min((started + PATIENCE).max(about.created_at + START_PATIENCE))
        };
        if now >= deadline {
            return Err(SessionError::CommandRunning);
        }
        let recheck = deadline.min(frame.screen_changed_at.max(started) + MARKS_PATIENCE);
        let wake = if recheck > now { recheck } else { deadline };
        tokio::select! {
            changed = frames.changed() => changed.map_err(|_| SessionError::Closed)?,
            () = clock.sleep_until(wake) => {}
        }
    }
}

fn judge(frame: &Frame, marks: bool, now: Moment) -> Verdict {
    let commands = &frame.commands.value;
    let activity = &frame.activity.value;
    let silent = now.since(frame.screen_changed_at) >= MARKS_PATIENCE;
    match (activity.state, commands.phase()) {
        // A command that is not all there was interrupted, or is about to be, and what was typed before
        // is read first.
        (State::Prompt, ShellPhase::Reading) if !commands.ready_for(Way::Marks) => Verdict::Soon,
        (State::Prompt, ShellPhase::Reading) => Verdict::Ready(Way::Marks),
        (State::Prompt, ShellPhase::Unmarked) if marks && !silent => Verdict::Soon,
        (State::Prompt, ShellPhase::Unmarked) if commands.sent().is_some() => Verdict::Soon,
        (State::Prompt, ShellPhase::Unmarked) => Verdict::Ready(Way::Kernel),
        (State::Prompt, ShellPhase::Prompting | ShellPhase::Running) => Verdict::Soon,
        (State::NeedsInput, _) if prompts(&before_cursor(frame)) => {
            let ready = commands.ready_for(Way::Prompt);
            if ready { Verdict::Ready(Way::Prompt) } else { Verdict::Busy }
        }
        (State::NeedsInput | State::SecretPrompt | State::FullScreen, _) => Verdict::Busy,
        // What was interrupted just now takes its time to end.
        (State::Running | State::Exited, _) => Verdict::Soon,
    }
}
