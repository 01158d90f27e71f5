//! Looking at what the kernel knows of the terminal, at the times when it can have changed.
//!
//! The kernel tells nobody when it changes. So it is asked a few times after each output and input,
//! now and then while somebody waits for what only it knows, and never otherwise.

use std::sync::Arc;
use std::time::Duration;

use crate::core::moment::Moment;
use crate::core::shell::activity::{Activity, ActivityState, KernelView, ShellPhase, Signs};
use crate::core::shell::commands::record::Position;
use crate::session::actor::Actor;
use crate::session::pty::{Pty, Rest};

/// When it is asked after output or input. The last look decides what only quiet tells.
const OFFSETS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
];

/// With which of them it begins after input; whoever reads it and writes is looked at then.
const AFTER_INPUT: usize = 1;

/// From which look on a terminal has settled.
const SETTLED: usize = 2;

/// How soon it is asked again when output was still on its way here.
const AGAIN: Duration = Duration::from_millis(10);

/// When a shell is done with what was typed ahead and was read: one of which it is not known that it
/// waits for more, when it was silent for so long (fish pauses for 250 ms at most); one that seems to do
/// something for ever, so long after its prompt, or after what was typed there.
const READ_AHEAD: Duration = Duration::from_millis(300);
const WORKED_MAX: Duration = Duration::from_secs(10);

/// How soon it is asked again while somebody waits for what only the kernel knows: at first and at last;
/// between them, after a part of the time that nothing came, so that nobody is told much later than
/// they waited anyhow.
const ATTENDED: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
const ATTENDED_PART: u32 = 20;

/// What was seen, and when is to be looked again.
#[derive(Debug)]
pub(super) struct Looks {
    seen: Option<KernelView>,
    /// When output or input last came.
    stirred_at: Moment,
    /// When something was last typed, and when the shell last marked something.
    typed_at: Moment,
    marked_at: Moment,
    /// Which of the looks after that comes next.
    next: usize,
    looked_at: Option<Moment>,
    /// What was seen belongs to output that has not come, and was not noted.
    postponed: bool,
    /// Something was typed that was no command, and may not have been read yet: the next command to
    /// begin need not be the next that is sent.
    typed_ahead: bool,
    /// Something was typed since the last command that was none: a key may wait for its second.
    typed_between: bool,
    /// What was typed last ended no line.
    half_line: bool,
    /// The prompt of a shell without marks when it was last typed at.
    shell_prompt: Option<Arc<str>>,
    /// A line was typed since somebody was last seen to wait for one.
    answered: bool,
    /// Where the shell was then, by its marks, and where it began to read.
    prompt: (ShellPhase, Option<Position>),
}

impl Looks {
    /// Begins with a terminal that was just made, or was `found`: then nobody knows what was typed there
    /// before and has not been read.
    pub(super) fn begin(now: Moment, found: bool) -> Self {
        Self {
            seen: None,
            stirred_at: now,
            typed_at: now,
            marked_at: now,
            next: 0,
            looked_at: None,
            postponed: false,
            typed_ahead: found,
            typed_between: found,
            half_line: found,
            shell_prompt: None,
            answered: false,
            prompt: (ShellPhase::default(), None),
        }
    }

    /// Notes that these bytes were typed; whoever waited for a line may have one now.
    pub(super) fn on_typed(&mut self, now: Moment, bytes: &[u8]) {
        const ENDS: [u8; 5] = [b'\r', b'\n', 0x03, 0x04, 0x1c];
        self.answered |= bytes.iter().any(|byte| ENDS.contains(byte));
        self.half_line = bytes.last().is_some_and(|byte| !ENDS.contains(byte));
        self.typed_at = now;
        self.stir(now);
        // Nobody can have read it yet.
        self.next = self.next.max(AFTER_INPUT);
    }

    /// Notes that something is about to be typed that is no command.
    pub(super) fn on_type_ahead(&mut self) {
        self.typed_ahead = true;
        self.typed_between = true;
    }

    /// Notes that a command is sent.
    pub(super) fn on_command(&mut self) {
        self.typed_between = false;
    }

    /// Whether anything was typed since the last command.
    pub(super) fn typed_between(&self) -> bool {
        self.typed_between
    }

    /// Whether half a line may stand where a shell without a line editor reads, be it an answer of the
    /// terminal's own.
    pub(super) fn half_line(&self) -> bool {
        self.half_line || self.typed_between
    }

    /// The prompt of a shell without marks that is typed at now, where this stands before the cursor: of
    /// a line that was begun nobody knows where it begins, but from the prompt before.
    pub(super) fn shell_prompt(&mut self, before_cursor: &str) -> Arc<str> {
        if !self.half_line {
            self.shell_prompt = Some(before_cursor.into());
        }
        self.shell_prompt.clone().unwrap_or_else(|| before_cursor.into())
    }

    /// Whether a line ends as that prompt does.
    fn is_prompt(&self, line: &str) -> bool {
        let shown = |prompt: &str| !prompt.trim().is_empty() && line.ends_with(prompt);
        self.shell_prompt.as_deref().is_some_and(shown)
    }

    /// Whether the shell may not have read yet what was typed.
    pub(super) fn typed_ahead(&self) -> bool {
        self.typed_ahead
    }

    /// What the kernel said when it was last looked at.
    pub(super) fn seen(&self) -> Option<&KernelView> {
        self.seen.as_ref()
    }

    /// Notes that output or input came.
    pub(super) fn stir(&mut self, now: Moment) {
        self.stirred_at = now;
        self.next = 0;
        self.postponed = false;
        if let Some(seen) = &mut self.seen {
            // Whoever read has something to do now.
            seen.reading = None;
        }
    }

    /// Whether nothing came for as long as the looks go on.
    pub(super) fn quiet(&self) -> bool {
        self.next == OFFSETS.len()
    }

    /// Whether nothing came for so long.
    pub(super) fn silent_for(&self, time: Duration, now: Moment) -> bool {
        now.since(self.stirred_at) >= time
    }

    /// Whether the next look comes late enough that all is done that a program does at once.
    fn settled(&self) -> bool {
        self.next >= SETTLED
    }

    /// Whether one such look was made since output or input last came.
    pub(super) fn settled_since(&self) -> bool {
        self.next > SETTLED
    }

    fn note(&mut self, seen: Option<KernelView>, now: Moment) {
        self.next = (self.next + 1).min(OFFSETS.len());
        self.postponed = false;
        // From here on it is known whether somebody waits.
        self.answered &= !self.settled_since();
        (self.seen, self.looked_at) = (seen, Some(now));
    }

    fn postpone(&mut self, now: Moment) {
        self.postponed = true;
        self.looked_at = Some(now);
    }

    /// Whether something follows from a look that saw this which did not before.
    fn decides(&self, seen: Option<&KernelView>) -> bool {
        self.settled() && (!self.quiet() || seen != self.seen.as_ref())
    }

    fn due(&self, interval: Duration, attended: bool) -> Option<Moment> {
        if self.postponed {
            return self.looked_at.map(|at| at + AGAIN);
        }
        match OFFSETS.get(self.next) {
            Some(offset) => {
                // However much is written, it is asked no more often than frames are published.
                let earliest = self.looked_at.map_or(Moment::default(), |at| at + interval);
                Some((self.stirred_at + *offset).max(earliest))
            }
            None => self.looked_at.filter(|_| attended).map(|at| {
                let [first, last] = ATTENDED;
                at + (at.since(self.stirred_at) / ATTENDED_PART).clamp(first, last)
            }),
        }
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn look_due(&self) -> Option<Moment> {
        if self.ending.exit.is_some() {
            return None;
        }
        if self.is_at_another_prompt() {
            return Some(self.looks.stirred_at);
        }
        self.looks.due(self.rules.frame_interval, self.outlets.live.attended())
    }

    fn prompt(&self) -> (ShellPhase, Option<Position>) {
        let commands = self.screen.commands();
        (commands.phase(), commands.reading_at())
    }

    /// Looks at a shell that has come to its prompt before anybody is told: it may be in front again, which
    /// everybody waits for, and may have been told to read in another way.
    pub(super) fn look_at_prompt(&mut self) {
        if self.is_at_another_prompt() {
            self.look_if_due();
        }
    }

    fn is_at_another_prompt(&self) -> bool {
        let prompt = self.prompt();
        let prompts = matches!(prompt.0, ShellPhase::Prompting | ShellPhase::Reading);
        prompts && self.looks.prompt != prompt
    }

    /// Asks the kernel when it is time.
    pub(super) fn look_if_due(&mut self) {
        let now = self.clock.now();
        if self.look_due().is_none_or(|due| due > now) {
            return;
        }
        let settled = self.looks.settled();
        let known = self.looks.seen().filter(|_| !settled && self.is_at_another_prompt());
        let seen = match known {
            Some(known) => self.pty.look_at_prompt(known),
            None => self.pty.look(settled),
        }
        .ok();
        if self.looks.decides(seen.as_ref()) && self.output_is_on_its_way() {
            self.looks.postpone(now);
        } else {
            self.looks.note(seen, now);
        }
        let prompt = self.prompt();
        if std::mem::replace(&mut self.looks.prompt, prompt) != prompt {
            self.looks.marked_at = now;
        }
        self.mind_type_ahead(now);
        self.finish_if_ready();
    }

    /// Forgets that something was typed ahead once the shell has read it and done what it says: it
    /// rests at its prompt, has left nothing unread, and all that it wrote is here.
    fn mind_type_ahead(&mut self, now: Moment) {
        let at_prompt = self.screen.commands().phase() == ShellPhase::Reading;
        if !self.looks.typed_ahead || !at_prompt || self.input.next_bytes().is_some() {
            return;
        }
        let age = now.since(self.looks.typed_at.max(self.looks.marked_at));
        let done = match self.pty.leader_rest() {
            Ok(Rest::Waits) => !self.output_is_on_its_way(),
            Ok(Rest::Unread) => false,
            Ok(Rest::Works) => age >= WORKED_MAX,
            Ok(Rest::Pauses | Rest::Unknown) | Err(_) => {
                let silent = self.looks.silent_for(READ_AHEAD, now);
                age >= WORKED_MAX || silent && !self.output_is_on_its_way()
            }
        };
        if done {
            self.looks.typed_ahead = false;
            self.screen.set_typed_ahead(false);
            self.pace.dirty = true;
        }
    }

    /// Whether the session's shell is in front, has read all that was typed, and waits for more.
    pub(super) fn shell_rests(&self) -> bool {
        self.looks.seen().is_some_and(|seen| seen.shell_in_front)
            && matches!(self.pty.leader_rest(), Ok(Rest::Waits | Rest::Pauses))
    }

    /// Whether the kernel is ahead of what was read. A terminal that fails says so elsewhere.
    pub(super) fn output_is_on_its_way(&self) -> bool {
        self.pty.all_read(self.unfed.offset).is_ok_and(|all| !all)
    }

    /// What the terminal is doing as far as is known.
    pub(super) fn activity(&mut self) -> Arc<Activity> {
        let quiet = self.looks.quiet();
        let settled = self.looks.settled_since();
        let before_cursor = if settled { self.screen.before_cursor() } else { String::new() };
        let unfinished = settled && self.reads_on(&before_cursor);
        let told = Arc::clone(&self.frames.borrow().activity.value);
        let judged = Activity::judge(&Signs {
            kernel: self.looks.seen.as_ref(),
            shell: self.screen.commands().phase(),
            alternate: self.screen.alternate(),
            exited: self.ending.exit.is_some(),
            quiet,
            settled,
            asked_secret: told.state == ActivityState::SecretPrompt && !self.looks.answered,
            before_cursor: &before_cursor,
            prompt_shown: self.looks.is_prompt(&before_cursor),
            unfinished,
        });
        if *told == judged { told } else { Arc::new(judged) }
    }
}
