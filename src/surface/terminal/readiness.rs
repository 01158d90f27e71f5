//! Whether a terminal is ready for a command, and how the end of one will be known.
//!
//! It sends nothing. A shell that has not written its prompt yet is waited for, so that no command
//! reaches a shell that does not read.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::ids::Watermark;
use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, ShellPhase, is_question, prompts};
use crate::core::shell::commands::EndsBy;
use crate::core::shell::commands::output::{before_cursor, prompt};
use crate::core::shell::commands::record::CommandId;
use crate::session::clock::Clock;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::stats::Attending;

/// How long a shell that was asked for marks may be silent before it is taken for one without.
const MARKS_PATIENCE: Duration = Duration::from_secs(2);

/// How long a program may be about to show a prompt before it counts as working, and how long one
/// that has only just been started. What it was doing can be known late, so this holds for all.
const PATIENCE: Duration = Duration::from_millis(300);
const START_PATIENCE: Duration = Duration::from_secs(2);

/// How long a shell that is in front may do something of its own before it counts as working: most
/// often it is about to show its prompt.
const SHELL_PATIENCE: Duration = Duration::from_secs(2);

/// How long a program that was interrupted may take to end before it counts as working.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(2);

/// For how long it counts that a program changes what it does.
const UNREST_MAX: Duration = Duration::from_secs(2);

/// What a command would be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub ends_by: EndsBy,
    /// What stands before the cursor and is no output.
    pub prompt: String,
    /// It has a line editor; else the kernel collects its lines.
    pub edits: bool,
}

/// What a frame says about it.
enum Verdict {
    Ready(EndsBy),
    /// Its shell is about to show a prompt, which takes as long as it takes.
    Starting,
    /// It may become ready by itself before long, or works.
    Busy,
}

/// What a terminal is doing, as far as another of these means that it got on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doing {
    state: ActivityState,
    phase: ShellPhase,
    last: CommandId,
    sent: Option<CommandId>,
}

impl Doing {
    fn of(frame: &Frame) -> Self {
        let commands = &frame.commands.value;
        Self {
            state: frame.activity.value.state,
            phase: commands.phase(),
            last: commands.last(),
            sent: commands.sent().map(|sent| sent.id),
        }
    }
}

/// A terminal that is watched until it is ready for a command.
#[derive(Debug)]
pub struct Readiness<'a> {
    session: &'a Session,
    clock: &'a Clock,
    frames: watch::Receiver<Arc<Frame>>,
    started: Moment,
    until: Moment,
    doing: Doing,
    /// When it began to do so, or to be watched.
    doing_since: Moment,
    /// When its shell was last on its way to a prompt, or it began to be watched.
    restless_since: Moment,
    /// The frame that was judged last.
    judged: Watermark,
    /// The frame by which it was ready, and was not any more.
    outdated: Option<Watermark>,
    _attending: Attending,
}

impl<'a> Readiness<'a> {
    /// Begins to watch a terminal, until this moment at most.
    pub fn begin(session: &'a Session, clock: &'a Clock, until: Moment) -> Self {
        let attending = session.attend();
        let frames = session.frames();
        let doing = Doing::of(&frames.borrow());
        let started = clock.now();
        Self {
            session,
            clock,
            frames,
            started,
            until,
            doing,
            doing_since: started,
            restless_since: started,
            judged: Watermark(0),
            outdated: None,
            _attending: attending,
        }
    }

    /// Whether it is ready at this moment.
    pub fn now(&mut self) -> Option<Ready> {
        let frame = self.look();
        match self.judge(&frame) {
            Verdict::Ready(ends_by) if frame.exit.value.is_none() => {
                let edits = !frame.activity.value.canonical;
                Some(Ready { ends_by, prompt: prompt(&frame), edits })
            }
            Verdict::Starting => {
                self.restless_since = self.clock.now();
                None
            }
            Verdict::Ready(_) | Verdict::Busy => None,
        }
    }

    /// Notes that it was not ready any more when a command came to it.
    pub fn was_outdated(&mut self) {
        self.outdated = Some(self.judged);
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`SessionError::CommandRunning`] when a command runs or a program does not look like one that
    /// takes commands, [`SessionError::Asks`] when something asks, [`SessionError::NoPromptYet`] and
    /// [`SessionError::Exited`].
    pub async fn reached(&mut self) -> Result<Ready, SessionError> {
        loop {
            if let Some(ready) = self.now() {
                return Ok(ready);
            }
            let frame = Arc::clone(&self.frames.borrow());
            if let Some(exit) = frame.exit.value {
                return Err(SessionError::Exited(exit));
            }
            let (now, deadline) = (self.clock.now(), self.deadline(&frame));
            if now >= deadline {
                return Err(match self.judge(&frame) {
                    Verdict::Starting => SessionError::NoPromptYet,
                    Verdict::Ready(_) | Verdict::Busy => busy_with(&frame),
                });
            }
            let recheck = frame.screen_changed_at.max(self.started) + MARKS_PATIENCE;
            let wake = if recheck > now { recheck.min(deadline) } else { deadline };
            tokio::select! {
                changed = self.frames.changed() => changed.map_err(|_| SessionError::Closed)?,
                () = self.clock.sleep_until(wake) => {}
            }
        }
    }

    fn look(&mut self) -> Arc<Frame> {
        let frame = Arc::clone(&self.frames.borrow_and_update());
        self.judged = frame.watermark;
        let doing = Doing::of(&frame);
        if self.doing != doing {
            (self.doing, self.doing_since) = (doing, self.clock.now());
        }
        frame
    }

    /// Until when it is waited for.
    fn deadline(&self, frame: &Frame) -> Moment {
        let activity = &frame.activity.value;
        let itself = activity.shell_in_front
            && matches!(activity.state, ActivityState::Running | ActivityState::Prompt);
        let patience = match self.judge(frame) {
            Verdict::Starting => return self.until,
            Verdict::Ready(_) | Verdict::Busy if itself => SHELL_PATIENCE,
            Verdict::Ready(_) | Verdict::Busy => PATIENCE,
        };
        let calm = self.doing_since.min(self.restless_since + UNREST_MAX) + patience;
        let started = match self.doing.last {
            CommandId(0) => self.session.about().created_at + START_PATIENCE,
            CommandId(_) => calm,
        };
        let interrupted = self.session.live().interrupted_at();
        let interrupted = interrupted.map(|at| at + INTERRUPT_PATIENCE).unwrap_or_default();
        calm.max(started).max(interrupted).min(self.until)
    }

    fn judge(&self, frame: &Frame) -> Verdict {
        let commands = &frame.commands.value;
        let marks = self.session.about().marks;
        let silent = self.clock.now().since(frame.screen_changed_at) >= MARKS_PATIENCE;
        let activity = &frame.activity.value;
        match (activity.state, commands.phase()) {
            _ if self.outdated == Some(frame.watermark) => Verdict::Busy,
            // A command that is not all there was interrupted, or is about to be.
            (ActivityState::Prompt, ShellPhase::Reading | ShellPhase::Unmarked)
                if commands.sent().is_some() =>
            {
                Verdict::Busy
            }
            // What was typed before is read first.
            (ActivityState::Prompt, ShellPhase::Reading) if commands.typed_ahead() => {
                Verdict::Starting
            }
            (ActivityState::Prompt, ShellPhase::Reading) => Verdict::Ready(EndsBy::Marks),
            // A file of the user's has a question of its own.
            (ActivityState::Prompt, ShellPhase::Unmarked)
                if marks && is_question(&before_cursor(frame)) =>
            {
                Verdict::Busy
            }
            (ActivityState::Prompt, ShellPhase::Unmarked) if marks && !silent => Verdict::Starting,
            (ActivityState::Prompt, ShellPhase::Unmarked) => Verdict::Ready(EndsBy::Kernel),
            // Also while a program runs that makes the prompt.
            (ActivityState::Prompt | ActivityState::Running, ShellPhase::Prompting) => {
                Verdict::Starting
            }
            (ActivityState::Running, ShellPhase::Unmarked) if marks || is_blank(frame) => {
                Verdict::Starting
            }
            // What a key of the shell's own line editor has started is in front of its prompt.
            (ActivityState::NeedsInput, ShellPhase::Prompting | ShellPhase::Reading) => {
                Verdict::Busy
            }
            // A shell that waits for the rest of a command takes no other.
            (ActivityState::NeedsInput, ShellPhase::Unmarked) if activity.shell_in_front => {
                Verdict::Busy
            }
            (ActivityState::NeedsInput, _) if prompts(&before_cursor(frame)) => {
                let ready = commands.ready_for(EndsBy::Prompt);
                if ready { Verdict::Ready(EndsBy::Prompt) } else { Verdict::Busy }
            }
            (ActivityState::Prompt | ActivityState::Running, _) => Verdict::Busy,
            (
                ActivityState::NeedsInput
                | ActivityState::SecretPrompt
                | ActivityState::FullScreen
                | ActivityState::Exited,
                _,
            ) => Verdict::Busy,
        }
    }
}

/// What keeps a command from being sent: something that asks, as the user's own files for the shell do,
/// or that works.
fn busy_with(frame: &Frame) -> SessionError {
    let before = before_cursor(frame);
    let asks = match frame.activity.value.state {
        ActivityState::NeedsInput | ActivityState::SecretPrompt => !before.trim().is_empty(),
        ActivityState::Prompt => frame.commands.value.sent().is_none() && is_question(&before),
        ActivityState::Running | ActivityState::FullScreen | ActivityState::Exited => false,
    };
    if asks { SessionError::Asks(before) } else { SessionError::CommandRunning }
}

/// Whether a shell is in front that has not shown anything yet.
fn is_blank(frame: &Frame) -> bool {
    frame.activity.value.shell_in_front
        && frame.commands.value.last() == CommandId::default()
        && frame.base_row.0 == 0
        && frame.lines.iter().all(|line| line.value.text.is_empty())
}
