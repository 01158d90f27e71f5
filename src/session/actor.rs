//! The task that owns one session: its terminal, its screen and its lease.
//!
//! It is the only writer of all three. It decides nothing itself: what happened goes into the core's
//! values, and what they say must be done next is done here.

mod checkpoint;
mod commands;
mod looking;
mod manage;
mod output;
mod part;
mod parting;
mod people;
mod posted;
mod publish;
mod records;
mod restart;
mod running;
mod running_commands;
mod silence;
mod unfed;
mod write;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::core::frame::{Exit, Frame, Size};
use crate::core::ids::{ConnectionId, PrincipalId};
use crate::core::input::Input;
use crate::core::input::request::{InputEvent, WriteId};
use crate::core::keys::typed::TypedBytes;
use crate::core::lease::event::LeaseChange;
use crate::core::lease::request::{Grant, HoldToken, WaiterId};
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Screen, ScreenLimits};
use crate::core::shell::commands::record::CommandId;
use crate::session::actor::checkpoint::Kept;
use crate::session::actor::looking::Looks;
use crate::session::actor::part::Part;
use crate::session::actor::records::Records;
use crate::session::actor::restart::{Reserve, contained_now};
use crate::session::actor::running_commands::Luggage;
use crate::session::actor::silence::Returning;
use crate::session::actor::unfed::Unfed;
use crate::session::actor::write::Pending;
use crate::session::clock::Clock;
use crate::session::command::{Command, Reply};
use crate::session::control::{Parting, Urgent};
use crate::session::counters::Counters;
use crate::session::error::SessionError;
use crate::session::facts::Board;
use crate::session::handle::Identity;
use crate::session::pty::kill::KillError;
use crate::session::pty::{Pty, Stamp};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::restore::Opening;
use crate::session::stats::Live;

/// How many commands may wait for the task; more are answered `busy`.
pub const COMMANDS_MAX: usize = 256;

/// How a session is run.
#[derive(Clone, Debug)]
pub struct Rules {
    pub screen: ScreenLimits,
    /// The shortest time between two frames.
    pub frame_interval: Duration,
    /// How long a session stays readable after its program ended.
    pub keep_ended: Duration,
}

/// What a session is made of.
#[derive(Debug)]
pub struct Setup<P> {
    pub identity: Arc<Identity>,
    /// What the next daemon is to know of it, and of its commands.
    pub records: (SessionRecord, CommandsRecord),
    pub rules: Rules,
    pub clock: Clock,
    pub pty: P,
    pub opening: Opening,
    pub input: Input,
    pub outlets: Outlets,
    pub urgent: Arc<Urgent>,
}

/// Where the task tells what happens, besides its frames.
#[derive(Debug)]
pub struct Outlets {
    pub facts: Board,
    /// Counts up when what lists show has changed.
    pub changes: watch::Sender<u64>,
    pub live: Arc<Live>,
    /// Of all sessions together.
    pub counters: Arc<Counters>,
}

type Killing = Pin<Box<dyn Future<Output = Result<(), KillError>> + Send>>;

/// The state of one session.
pub struct Actor<P> {
    identity: Arc<Identity>,
    rules: Rules,
    clock: Clock,
    pty: Arc<P>,
    screen: Part<Screen>,
    input: Part<Input>,
    frames: watch::Sender<Arc<Frame>>,
    outlets: Outlets,
    urgent: Arc<Urgent>,
    /// How much output was read, in bytes.
    offset: u64,
    /// The queries in the output before this offset were answered by a daemon before.
    answered: u64,
    /// What the next daemon would know of the screen.
    kept: Part<Kept>,
    looks: Part<Looks>,
    unfed: Unfed,
    exit: Option<Exit>,
    /// Its end was not told yet.
    end_due: bool,
    /// When the session is forgotten.
    remove_at: Option<Moment>,
    /// Output came that no frame shows yet.
    dirty: bool,
    published_at: Option<Moment>,
    writes: u64,
    pending: HashMap<WriteId, Vec<Pending>>,
    waiting: HashMap<WaiterId, Vec<Reply<Grant>>>,
    holds: HashMap<WriteId, HoldToken>,
    /// What goes with commands that have not ended.
    luggage: Luggage,
    /// What the next daemon would know.
    records: Part<Records>,
    /// What it goes on with should one of those fail.
    reserve: Reserve,
    /// The size that the terminal has.
    size: Size,
    killing: Option<Killing>,
    killers: Vec<Reply<()>>,
    /// Until when those wait for the end to be told, once all processes are gone.
    killers_until: Option<Moment>,
    /// The terminal is silent, and waited for.
    returning: Option<Returning>,
    /// Operators to be told whether the lease that they ended was held.
    preempted: Vec<(oneshot::Sender<bool>, bool)>,
    /// The connections that ended last: their commands may still come, and have no effect.
    closed: VecDeque<ConnectionId>,
    /// People who are in the middle of a paste or a sequence.
    typed: HashMap<PrincipalId, (ConnectionId, TypedBytes)>,
    /// People who have left, and are let go after all that they typed.
    detached: BTreeSet<PrincipalId>,
    /// The daemon ends; what becomes of this session then.
    parting: Option<Parting>,
    /// It ended before and is forgotten as soon as all its processes are gone.
    removing: bool,
}

impl<P> fmt::Debug for Actor<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actor").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<P: Pty> Actor<P> {
    /// A session on this terminal, with the first frame of its screen, which nobody sees before it is kept.
    pub fn new(setup: Setup<P>) -> (Self, watch::Receiver<Arc<Frame>>) {
        let Setup { identity, records, rules, clock, pty, opening, input, outlets, urgent } = setup;
        let Opening { mut screen, offset, answered, kept_rows, gaps, found, still_since, .. } =
            opening;
        let now = clock.now();
        let facts = Facts { lease: Arc::new(input.lease().view()), ..Facts::default() };
        let size = screen.size();
        let last = screen.commands().last();
        let paste = records.1.paste;
        outlets.live.set_found_still(now, still_since);
        let (frames, receiver) = watch::channel(screen.first_frame(now, &facts));
        let mut actor = Self {
            identity,
            rules,
            clock,
            pty: Arc::new(pty),
            screen: screen.into(),
            frames,
            outlets,
            urgent,
            offset,
            answered,
            kept: Kept::begin(kept_rows, now).into(),
            looks: Looks::begin(now, found).into(),
            unfed: Unfed::new(now),
            exit: None,
            end_due: false,
            remove_at: None,
            dirty: false,
            published_at: None,
            writes: 0,
            pending: HashMap::new(),
            waiting: HashMap::new(),
            holds: HashMap::new(),
            luggage: Luggage::default(),
            records: Records::begin(records, input.lease(), last, gaps).into(),
            reserve: Reserve::begin(&input, offset, paste),
            input: input.into(),
            size,
            killing: None,
            killers: Vec::new(),
            killers_until: None,
            returning: None,
            preempted: Vec::new(),
            closed: VecDeque::new(),
            typed: HashMap::new(),
            detached: BTreeSet::new(),
            parting: None,
            removing: false,
        };
        if contained_now(|| actor.keep_first(last)).is_err() {
            actor.reserve.on_failure(now);
        }
        (actor, receiver)
    }

    /// Keeps all that is known before anybody is told of the session.
    fn keep_first(&mut self, last: CommandId) {
        self.records.keep_again(&*self.pty);
        self.adopt_screen(last);
        self.checkpoint_now(false);
    }

    fn deadline(&self) -> Option<Moment> {
        let told =
            [self.input.deadline(), self.frame_due(), self.checkpoint_due(), self.look_due()];
        told.into_iter().chain([self.remove_at, self.killers_until]).flatten().min()
    }

    fn on_exit(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.remove_at = Some(self.clock.now() + self.rules.keep_ended);
        self.end_due = true;
        self.tell_end();
    }

    /// Tells that the program ended, unless that was done or it did not.
    fn tell_end(&mut self) {
        let Some(exit) = self.exit.filter(|_| self.end_due) else { return };
        let now = self.clock.now();
        let code = if let Exit::Code(code) = exit { Some(code) } else { None };
        self.screen.end_commands(now, code);
        self.input.close(now);
        self.dirty = true;
        self.checkpoint_now(true);
        // Whoever is told finds the end in the frame.
        self.settle();
        self.remember_stillness();
        self.end_due = false;
        self.count_change();
        if matches!(exit, Exit::Unknown | Exit::Lost) {
            // The terminal went away with whoever held it, and may have left its programs behind.
            self.end_processes();
        }
        if self.killing.is_none() {
            self.answer_killers(None);
        }
        tracing::info!(session = %self.identity.id, ?exit, "the program ended");
    }

    fn on_writable(&mut self, ready: std::io::Result<()>) {
        if let Err(error) = ready {
            tracing::warn!(session = %self.identity.id, %error, "the terminal takes no input");
            self.input.close(self.clock.now());
        }
    }

    fn on_command(&mut self, command: Command) {
        self.drain_urgent();
        if command.is_abandoned() || self.closed.contains(&command.connection()) {
            return;
        }
        if let (Some(exit), true) = (self.exit, command.needs_program()) {
            command.refuse(SessionError::Exited(exit));
            return;
        }
        if self.returning.is_some() && command.needs_program() {
            command.refuse(SessionError::Silent);
            return;
        }
        match command {
            Command::Write { order, accepted, reply } => self.on_write(*order, accepted, reply),
            Command::Recall(ask) => self.on_recall(*ask),
            Command::Acquire(ask) => self.on_acquire(*ask),
            Command::Renew(ask) => self.on_renew(*ask),
            Command::Release(ask) => self.on_release(*ask),
            Command::Resize(ask) => self.on_resize(*ask),
            Command::Manage(ask) => self.on_manage(*ask),
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
        self.publish_if_due();
        self.answer_writes();
        self.answer_waiters();
        self.look_if_due();
        self.mind_luggage();
        self.remember_lease();
        self.tell_events();
        self.publish_if_due();
        self.answer_patient_killers();
        self.answer_preempts();
    }

    /// Writes what may be written now and the terminal takes.
    fn flush(&mut self) {
        // A lease or a switch that has ended meanwhile takes its bytes along.
        self.input.on_time(self.clock.now());
        while self.exit.is_none() {
            self.remember_lease();
            let Some(bytes) = self.input.next_bytes() else { return };
            let epoch = self.input.next_epoch();
            // All output so far was fed, and the answers to it wait before anything newer.
            let answered = if epoch.is_none() { self.offset } else { 0 };
            let stamp = Stamp { epoch, answered, write: self.input.next_stamp() };
            let own = self.input.next_own_stamp();
            let all = bytes.len();
            match self.pty.try_write(bytes, stamp) {
                Ok(0) => return,
                Ok(taken) => {
                    let paste = self.reserve.on_taken(stamp, own, &bytes[..taken]);
                    if taken == all {
                        self.answered = self.answered.max(stamp.answered);
                    }
                    self.outlets.counters.input_bytes.add(taken as u64);
                    self.looks.on_typed(self.clock.now(), &bytes[..taken]);
                    self.outlets.live.on_typed(self.clock.now(), &bytes[..taken]);
                    self.input.on_taken(self.clock.now(), taken);
                    self.remember_paste(paste);
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => return self.on_silence(),
                Err(error) => {
                    tracing::debug!(session = %self.identity.id, %error, "a write failed");
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
                    let granted = event.change == LeaseChange::Granted;
                    self.outlets.counters.leases_granted.add(u64::from(granted));
                    self.count_change();
                    self.outlets.facts.tell_lease(self.identity.id, event);
                }
                InputEvent::Discarded(discarded) => tracing::info!(
                    session = %self.identity.id,
                    bytes = discarded.bytes,
                    "queued input was discarded"
                ),
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
