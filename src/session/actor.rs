//! The task that owns one session: its terminal, its screen and its lease.
//!
//! It is the only writer of all three. It decides nothing itself: what happened goes into the core's
//! values, and what they say must be done next is done here.

mod callers;
mod checkpoint;
mod ending;
mod events;
mod idle;
mod journal;
mod looks;
mod manage;
mod output;
mod people;
mod publish;
mod recordings;
mod records;
mod restart;
mod running;
mod shell;
mod write;

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::event::Event;
use crate::core::event::LeaseOf;
use crate::core::event::source::ToldEvents;
use crate::core::frame::{Frame, Size};
use crate::core::ids::SessionId;
use crate::core::input::Input;
use crate::core::input::request::{InputEvent, NextBytes};
use crate::core::lease::view::{LeaseChange, LeaseEvent};
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Screen, ScreenLimits};
use crate::core::shell::Shell;
use crate::session::actor::callers::Callers;
use crate::session::actor::checkpoint::KeptScreen;
use crate::session::actor::ending::Ending;
use crate::session::actor::events::SessionEvents;
use crate::session::actor::journal::RecordedActs;
use crate::session::actor::looks::Looks;
use crate::session::actor::output::Unfed;
use crate::session::actor::people::Typists;
use crate::session::actor::publish::FramePace;
use crate::session::actor::records::Records;
use crate::session::actor::restart::{Fallback, Part, contained_now};
use crate::session::actor::running::Returning;
use crate::session::actor::shell::RunningCommands;
use crate::session::clock::Clock;
use crate::session::command::{Asked, Command};
use crate::session::control::Urgent;
use crate::session::error::SessionError;
use crate::session::facts::Board;
use crate::session::pty::{Pty, Stamp};
use crate::session::recorder::ActRecorder;
use crate::session::recording::{Recording, RecordingPlan};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::restore::OpeningState;
use crate::session::stats::{Counters, Live};

/// How many commands may wait for the task; more are answered `busy`.
pub const COMMANDS_MAX: usize = 256;

#[derive(Clone, Debug)]
pub struct Rules {
    pub screen: ScreenLimits,
    /// The shortest time between two frames.
    pub frame_interval: Duration,
    /// How long a session stays readable after its program ended.
    pub keep_ended: Duration,
}

#[derive(Debug)]
pub struct Setup<P> {
    /// What the next daemon is to know of it.
    pub record: SessionRecord,
    pub commands: CommandsRecord,
    pub opening: OpeningState,
    /// The events that a daemon before told of it.
    pub told: Option<ToldEvents>,
    /// The recording to begin, or to continue.
    pub recording: Option<RecordingPlan>,
    pub input: Input,
    pub pty: P,
}

/// What the task shares with the rest of the daemon, besides its frames.
#[derive(Debug)]
pub struct Outlets {
    pub facts: Board,
    /// Counts up when what lists show has changed.
    pub changes: watch::Sender<u64>,
    pub live: Arc<Live>,
    /// Of all sessions together.
    pub counters: Arc<Counters>,
    pub urgent: Arc<Urgent>,
    pub recorder: ActRecorder,
}

pub struct Actor<P> {
    id: SessionId,
    rules: Rules,
    clock: Clock,
    pty: Arc<P>,
    screen: Part<Screen>,
    input: Part<Input>,
    frames: watch::Sender<Arc<Frame>>,
    outlets: Outlets,
    /// What the next daemon would know of the screen.
    kept: Part<KeptScreen>,
    shell: Part<Shell>,
    looks: Looks,
    unfed: Unfed,
    ending: Ending,
    pace: FramePace,
    callers: Callers,
    recording: RecordedActs,
    events: SessionEvents,
    /// What records the output, if anything does.
    asciicast: Option<Box<Recording>>,
    typists: Typists,
    /// What goes with commands that have not ended.
    running: RunningCommands,
    /// What the next daemon would know.
    records: Part<Records>,
    /// What it goes on with should one of those fail.
    reserve: Fallback,
    /// The size that the terminal has.
    size: Size,
    /// The terminal is silent, and waited for.
    returning: Option<Returning>,
}

impl<P> fmt::Debug for Actor<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actor").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<P: Pty> Actor<P> {
    /// A session on this terminal, with the first frame of its screen, which nobody sees before it is kept.
    pub fn new(
        setup: Setup<P>,
        rules: Rules,
        clock: Clock,
        outlets: Outlets,
    ) -> (Self, watch::Receiver<Arc<Frame>>) {
        let Setup { record, mut commands, opening, told, recording, input, pty } = setup;
        let OpeningState {
            mut screen, offset, answered, kept_rows, gaps, found, still_since, ..
        } = opening;
        let now = clock.now();
        let facts = Facts { lease: Arc::new(input.lease().view()), ..Facts::default() };
        let (size, marks) = (screen.size(), record.nonces.own.is_some());
        commands.last = commands.last.max(screen.commands().last());
        let (paste, uncovered) = (commands.paste, commands.uncovered.clone());
        outlets.live.set_found_still(now, still_since);
        outlets.live.begin_state(now, found);
        let first = screen.first_frame(now, &facts);
        let events = SessionEvents::begin(record.tenant.clone(), &first, told);
        let (frames, receiver) = watch::channel(first);
        let mut actor = Self {
            id: record.id,
            rules,
            clock,
            pty: Arc::new(pty),
            screen: screen.into(),
            frames,
            outlets,
            kept: KeptScreen::begin(kept_rows, now).into(),
            shell: Shell::begin(now, marks, found).into(),
            looks: Looks::default(),
            unfed: Unfed::new(now, offset, answered, uncovered),
            ending: Ending::default(),
            pace: FramePace::default(),
            callers: Callers::default(),
            recording: RecordedActs::default(),
            events,
            asciicast: None,
            typists: Typists::default(),
            running: RunningCommands::default(),
            records: Records::begin(record, commands, input.lease(), gaps).into(),
            reserve: Fallback::begin(&input, offset, paste),
            input: input.into(),
            size,
            returning: None,
        };
        recording.into_iter().for_each(|plan| actor.resume_recording(plan));
        if contained_now(|| actor.keep_first()).is_err() {
            actor.reserve.on_failure(now);
        }
        (actor, receiver)
    }

    /// Keeps all that is known before anybody is told of the session.
    fn keep_first(&mut self) {
        self.records.keep_again(&*self.pty);
        self.adopt_screen();
        self.checkpoint_now(false);
        // A command may have been sent that the screen did not know of.
        self.publish_output();
    }

    fn deadline(&self) -> Option<Moment> {
        let (input, frame) = (self.input.deadline(), self.frame_due());
        let (checkpoint, look, ending) =
            (self.checkpoint_due(), self.look_due(), self.ending.deadline());
        let (running, held) = (self.running.deadline(), self.unfed.held_until());
        let (idle, events) = (self.idle_due(), self.events_due());
        let recording = self.recording_due();
        let all = [input, frame, checkpoint, look, ending, running, held, idle, events, recording];
        all.into_iter().flatten().min()
    }

    fn on_writable(&mut self, ready: std::io::Result<()>) {
        if let Err(error) = ready {
            tracing::warn!(session = %self.id, %error, "cannot write to the terminal");
            self.input.close(self.clock.now());
        }
    }

    fn on_command(&mut self, command: Command) {
        self.drain_urgent();
        // The connection's next call goes on once this one has taken effect.
        let Command { connection, accepted: _accepted, asked } = command;
        if asked.is_abandoned() || self.callers.has_left(connection) {
            return;
        }
        if let (Some(exit), true) = (self.ending.exit, asked.needs_program()) {
            return asked.refuse(SessionError::Exited(exit));
        }
        if self.returning.is_some() && asked.needs_program() {
            return asked.refuse(SessionError::Silent);
        }
        match asked {
            Asked::Write(order, reply) => self.on_write(&order, reply),
            Asked::Recall(caller, shown, key, reply) => self.on_recall(&caller, shown, &key, reply),
            Asked::Acquire(caller, request, key, seat, reply) => {
                self.on_acquire(&caller, (request, key), seat, reply);
            }
            Asked::Renew(caller, request, key, reply) => {
                let renewed = self.input.renew(self.clock.now(), &caller, request, key);
                self.settle();
                let _ = reply.send(renewed.map_err(SessionError::from));
            }
            Asked::Release(caller, request, key, reply) => {
                let released = self.input.release(self.clock.now(), &caller, request, key);
                self.settle();
                let _ = reply.send(released.map_err(SessionError::from));
            }
            Asked::Resize(order, reply) => self.on_resize(order, reply),
            Asked::Manage(order, reply) => self.on_manage(order, reply),
        }
    }

    /// Does what the core's values say must be done next.
    ///
    /// Frames go out before answers, so that whoever was answered finds its lease in the frame, and
    /// after them again, since an answer that nobody takes passes a lease on.
    fn settle(&mut self) {
        self.drain_urgent();
        // The answers to queries first, since a checkpoint says that they were read.
        self.flush();
        self.checkpoint_if_due();
        self.mind_silence();
        self.look_for_idle_if_due();
        self.publish_if_due();
        self.hold_for_followers();
        self.answer_writes();
        self.answer_waiters();
        self.look_if_due();
        self.mind_running_commands();
        self.remember_lease();
        self.tell_events();
        self.publish_if_due();
        self.tell_due_events();
        self.answer_patient_killers();
        self.answer_preempts();
        self.flush_recording();
    }

    /// Writes what may be written now and the terminal takes.
    fn flush(&mut self) {
        // A lease or a switch that has ended meanwhile takes its bytes along.
        self.input.on_time(self.clock.now());
        while self.ending.exit.is_none() {
            self.remember_lease();
            let Some(NextBytes { bytes, epoch, stamp, own }) = self.input.next_bytes() else {
                return;
            };
            // All output so far was fed, and the answers to it wait before anything newer.
            let answered = if epoch.is_none() { self.unfed.offset } else { 0 };
            let stamp = Stamp { epoch, answered, write: stamp };
            let all = bytes.len();
            match self.pty.try_write(bytes, stamp) {
                Ok(0) => return,
                Ok(taken) => {
                    let paste = self.reserve.on_taken(stamp, own, &bytes[..taken]);
                    if taken == all {
                        self.unfed.answered = self.unfed.answered.max(stamp.answered);
                    }
                    self.outlets.counters.input_bytes.add(taken as u64);
                    self.shell.on_typed(self.clock.now(), &bytes[..taken]);
                    self.input.on_taken(self.clock.now(), taken);
                    self.remember_paste(paste);
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => return self.on_silence(),
                Err(error) => {
                    tracing::debug!(session = %self.id, %error, "a write failed");
                    self.input.close(self.clock.now());
                    return;
                }
            }
        }
    }

    /// Tells what was noted to have happened.
    fn tell_events(&mut self) {
        while let Some(event) = self.reserve.untold.pop_front() {
            match event {
                InputEvent::Lease(event) => {
                    self.end_burst_of_former();
                    let LeaseEvent { holder, epoch, change } = event.clone();
                    self.tell_event(Event::Lease { mount: None, holder, epoch, change });
                    let granted = event.change == LeaseChange::Granted;
                    self.outlets.counters.leases_granted.add(u64::from(granted));
                    self.count_change();
                    self.outlets.facts.tell_lease(LeaseOf::Session(self.id), event);
                }
                InputEvent::Discarded(discarded) => {
                    self.shell.on_discarded();
                    self.record_discarded(&discarded);
                    let (session, bytes) = (self.id, discarded.bytes);
                    tracing::info!(%session, bytes, "queued input was discarded");
                }
            }
        }
    }

    /// Says that lists show something else.
    fn count_change(&self) {
        self.outlets.changes.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests;
