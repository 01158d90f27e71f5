//! The shell: the judge is told what is there, commands are noted, ended and interrupted.
//!
//! It must not know what a command needs, nor why its caller gave it up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::core::caller::Caller;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::keys::Piece;
use crate::core::keys::encode::encode_keys;
use crate::core::moment::Moment;
use crate::core::shell::activity::{Activity, ActivityState, Foreground};
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::commands::{EndsBy, ShellPhase, Submission};
use crate::core::shell::prompt_text::is_asked;
use crate::core::shell::unmarked_ends::CommandEnding;
use crate::core::shell::{ScreenFacts, Shell, ShellView};
use crate::session::actor::Actor;
use crate::session::actor::looks::AwaitedEnd;
use crate::session::command::{CommandOrder, Provision};
use crate::session::control::GivenUp;
use crate::session::error::SessionError;
use crate::session::pty::Pty;
use crate::session::pty::signal::Signal;
use crate::session::pty::surroundings::ReaderSearch;
use crate::session::stats::Participation;

const INTERRUPTS_MAX: u8 = 4;

/// How many rows above the cursor are searched for a question: those of a menu.
const ASKED_ROWS: usize = 10;

const KEPT_MAX: Duration = Duration::from_secs(10);

impl<P: Pty> Actor<P> {
    /// What the terminal is doing, and whether it takes a command.
    pub(super) fn judge(&mut self) -> (Arc<Activity>, Arc<ShellView>) {
        let (activity, view) = self.with_facts(|shell, now, facts| shell.judge(now, facts));
        let frame = self.frames.borrow();
        let told = (&frame.activity.value, &frame.shell);
        let activity = if **told.0 == activity { Arc::clone(told.0) } else { Arc::new(activity) };
        let view = if **told.1 == view { Arc::clone(told.1) } else { Arc::new(view) };
        (activity, view)
    }

    pub(super) fn with_facts<T>(
        &mut self,
        ask: impl FnOnce(&mut Shell, Moment, &ScreenFacts<'_>) -> T,
    ) -> T {
        let settled = self.shell.settled();
        let before_cursor = if settled { self.screen.before_cursor() } else { String::new() };
        let asks_above = settled && self.shell.reads_keys();
        let asked_above = asks_above && is_asked(&self.screen.above_cursor(ASKED_ROWS));
        let commands = Arc::clone(self.screen.commands());
        let facts = ScreenFacts {
            commands: &commands,
            cursor: self.screen.cursor(),
            alternate: self.screen.alternate(),
            cursor_visible: self.screen.cursor_visible(),
            keypad: self.screen.modes().application_keypad,
            painted: self.screen.painted(),
            asked_above,
            exited: self.ending.exit.is_some(),
            before_cursor: &before_cursor,
        };
        ask(&mut self.shell, self.clock.now(), &facts)
    }
}

impl<P: Pty> Actor<P> {
    /// Refuses a command when what it is for is not ready for it any more; the next frame says so.
    pub(super) fn check_ready(&self, order: &CommandOrder) -> Result<(), SessionError> {
        let ready = self.shell.accepts(order.ends_by, self.screen.commands());
        if ready { Ok(()) } else { Err(SessionError::CommandRunning) }
    }

    /// What clears the line that a command is typed on.
    pub(super) fn clearing(&self, order: &CommandOrder) -> Vec<Piece> {
        match order.ends_by {
            EndsBy::Marks => {
                let keys = self.shell.emptying(self.screen.commands(), self.screen.cursor());
                encode_keys(&keys, &self.screen.modes())
            }
            EndsBy::Kernel => self.taking_back(),
            EndsBy::Prompt => Vec::new(),
        }
    }

    /// What takes back the line that the kernel collects for a shell without a line editor; twice, since
    /// a key may wait that takes the next character as it is.
    fn taking_back(&self) -> Vec<Piece> {
        let kill = || self.pty.evidence().ok()?.line_kill;
        let kill = self.shell.half_line().then(kill).flatten();
        kill.map_or_else(Vec::new, |kill| vec![Piece::Key(vec![kill]); 2])
    }

    /// Notes that something is about to be typed that is no command. Needs the newest frame.
    pub(super) fn begin_typing(&mut self) {
        let frame = Arc::clone(&self.frames.borrow());
        let at_prompt = frame.activity.value.state == ActivityState::Prompt
            && frame.commands.value.phase() == ShellPhase::Unmarked;
        let prompt = at_prompt.then(|| self.screen.before_cursor());
        self.shell.on_type_ahead(prompt.as_deref());
    }

    /// Notes that a command goes out now, by a call with this stamp if it may be asked for again, and has
    /// it kept before it does.
    pub(super) fn begin_command(
        &mut self,
        order: &CommandOrder,
        by: &Caller,
        call: Option<WriteStamp>,
    ) -> CommandId {
        let CommandOrder { text, typed, ends_by, provision, .. } = order;
        let (now, ends_by) = (self.clock.now(), *ends_by);
        let before_cursor = self.screen.before_cursor();
        let prompt = self.shell.on_command(now, ends_by, &before_cursor);
        let by = Some(Arc::from(by.name().to_string()));
        // A line editor shows what is typed by itself.
        let echoed = ends_by != EndsBy::Kernel || !self.pty.hides_typing().unwrap_or(false);
        let submission = Submission { text, typed, by, ends_by, prompt: &prompt, echoed };
        let id = self.screen.submit(now, submission);
        if let Some(provision) = provision {
            self.running.keep(id, provision.clone());
        }
        if let Some(call) = call {
            self.note_call(call, id);
        }
        self.keep_sent(id);
        id
    }

    /// Ends what has ended, and then the command of which it was a part. Called after each look at the
    /// kernel.
    pub(super) fn end_commands(&mut self) {
        while let Some(ending) = self.with_facts(|shell, now, facts| shell.next_ending(now, facts))
        {
            let now = self.clock.now();
            self.kept.on_judged();
            match ending {
                CommandEnding::Prompted => self.screen.on_prompted(now),
                CommandEnding::Reading => self.screen.on_reading(now),
                CommandEnding::Finished(evidence) => self.screen.finish_sent(now, evidence),
            }
        }
    }
}

/// What goes with the commands that have not ended; bounded by how many of those are known.
#[derive(Debug, Default)]
pub(super) struct RunningCommands {
    provisions: BTreeMap<CommandId, Provision>,
    /// Those to be interrupted, and how far that is.
    given_up: BTreeMap<CommandId, Interrupted>,
    /// The kernel is asked meanwhile who is in front.
    attending: Option<Participation>,
    /// Whoever goes now is sent away, and gives nothing up.
    sparing: bool,
}

#[derive(Debug)]
struct Interrupted {
    by: GivenUp,
    times: u8,
    /// Until when its lease waits for the first time.
    kept_until: Moment,
    /// Who was in front the last time.
    front: Option<Foreground>,
    /// Who may be next, once all output from before it was seen is here.
    next: Option<(Option<Foreground>, AwaitedEnd)>,
    /// The writes before the first time: what is in front after another one is no part of the command.
    writes: u64,
}

impl RunningCommands {
    /// Keeps what a command needs until it has ended.
    pub(super) fn keep(&mut self, id: CommandId, provision: Provision) {
        self.provisions.insert(id, provision);
    }

    /// Notes that whoever goes from now on is sent away.
    pub(super) fn spare(&mut self) {
        self.sparing = true;
    }

    /// Notes that a command was given up, unless that was no act of its caller.
    pub(super) fn on_given_up(&mut self, now: Moment, by: GivenUp) {
        if !self.sparing {
            let (command, kept_until) = (by.command, now + KEPT_MAX);
            let so_far =
                Interrupted { by, times: 0, kept_until, front: None, next: None, writes: 0 };
            self.given_up.insert(command, so_far);
        }
    }

    /// Has all that waits for an answer of the terminal ask again.
    pub(super) fn forget_questions(&mut self) {
        self.given_up.values_mut().for_each(|so_far| so_far.next = None);
    }

    /// When a lease has waited long enough for an interrupt.
    pub(super) fn deadline(&self) -> Option<Moment> {
        let waiting = self.given_up.values().filter(|so_far| so_far.by.kept.is_some());
        waiting.map(|so_far| so_far.kept_until).min()
    }
}

impl<P: Pty> Actor<P> {
    /// Whether a command may still be interrupted that was given up. It is asked before each strike,
    /// since others may have the terminal by then.
    fn may_interrupt(&mut self, given_up: &GivenUp) -> bool {
        let GivenUp { command, by, sent_in, .. } = given_up;
        match self.input.may_interrupt(self.clock.now(), by, *sent_in) {
            Ok(()) => true,
            Err(error) => {
                let session = self.id;
                tracing::info!(%session, command = command.0, %error, "not interrupted");
                false
            }
        }
    }

    /// Interrupts the commands that were given up, and drops what those needed that ended.
    pub(super) fn mind_running_commands(&mut self) {
        for (id, so_far) in std::mem::take(&mut self.running.given_up) {
            if self.screen.commands().is_open(id)
                && self.may_interrupt(&so_far.by)
                && let Some(so_far) = self.interrupt(id, so_far)
            {
                self.running.given_up.insert(id, so_far);
            }
        }
        let attend = || self.outlets.live.attend();
        let attending = self.running.attending.take();
        self.running.attending =
            (!self.running.given_up.is_empty()).then(|| attending.unwrap_or_else(attend));
        let commands = self.screen.commands();
        self.running.provisions.retain(|id, _| commands.is_open(*id));
    }

    /// Interrupts a command that runs, and tells how far that is unless it is done.
    ///
    /// A command that was only typed waits: its shell would drop the beginning of the line that it
    /// has read, and run the rest. A shell that is about to start a program, and one that has not
    /// become it yet, may lose an interrupt; so whoever is in front next gets one, too.
    fn interrupt(&mut self, id: CommandId, mut so_far: Interrupted) -> Option<Interrupted> {
        if self.is_only_typed(id) {
            if so_far.kept_until <= self.clock.now() {
                so_far.by.kept = None;
            }
            return Some(so_far);
        }
        let view = self.pty.look(ReaderSearch::Nowhere).ok();
        // A shell that has come to the front again is at its prompt, and reads the next command.
        let program = view.as_ref().is_some_and(|view| !view.shell_in_front);
        let front = view.and_then(|view| view.foreground);
        let is_first = so_far.times == 0;
        if !is_first && so_far.writes != self.callers.writes {
            return None;
        }
        if is_first || program && so_far.front != front && self.is_next(&front, &mut so_far) {
            (so_far.times, so_far.front) = (so_far.times + 1, front);
            so_far.writes = self.callers.writes;
            so_far.by.kept = None;
            let by = so_far.by.by.clone();
            let interrupted = self.recorded_anyway(&by, None, "interrupt", |actor| {
                Ok(actor.pty.signal(Signal::Interrupt)?)
            });
            if let Err(error) = interrupted {
                tracing::debug!(session = %self.id, %error, "no foreground process to interrupt");
            }
        }
        (so_far.times < INTERRUPTS_MAX).then_some(so_far)
    }

    /// Whether this one in front belongs to a command. The command may have just ended and not been heard of: its
    /// shell needs what it does next. So all output from before it was seen must be here.
    fn is_next(&mut self, front: &Option<Foreground>, so_far: &mut Interrupted) -> bool {
        let seen_before = so_far.next.take().filter(|(seen, _)| seen == front);
        let asked = seen_before.map_or_else(|| self.ask_output_end(), |(_, asked)| asked);
        let is_all = self.was_all_read(asked);
        // Where more is to come, it is asked again once that has.
        if is_all != Some(true) && asked.is_late_at(self.unfed.offset) {
            so_far.next = Some((front.clone(), asked));
        }
        is_all == Some(true)
    }

    /// Whether a shell has yet to read all of a command, or to begin it.
    fn is_only_typed(&self, id: CommandId) -> bool {
        let commands = self.screen.commands();
        let sent = commands.sent();
        let sent = sent.is_some_and(|sent| sent.id == id && sent.ends_by == EndsBy::Marks);
        let reads_on = self.frames.borrow().activity.value.state == ActivityState::NeedsInput;
        sent && commands.phase() == ShellPhase::Reading && !reads_on
    }
}
