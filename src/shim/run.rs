//! The event loop of a shim: one thread, one wait, no allocation.
//! It serves one daemon, the one that connected last.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::tcgetpgrp;

use crate::shim::children::Children;
use crate::shim::input::ends::AnsweredQuestion;
use crate::shim::input::relay::{InputRelay, Relayed};
use crate::shim::kept::Kept;
use crate::shim::orphan_timeout::{OrphanStep, Solitude};
use crate::shim::output::OutputRelay;
use crate::shim::place::SocketPlace;
use crate::shim::readiness::{self, Events, HANGUP, READABLE, WRITABLE};
use crate::shim::sandbox;
use crate::shim::socket::{self, Descriptors};
use crate::shim::terminal;
use crate::shim::wire::from_shim::{Attached, FromShim, ProcessIdentity, StartFailure, StartStage};
use crate::shim::wire::to_shim::{Commit, ToShim, Unread};
use crate::shim::wire::{DESCRIPTORS_MAX, Frame, VERSION};

/// The most frames to read from a closed connection; a socket buffer holds fewer.
const LEFT_MAX: usize = 4096;

#[derive(Debug)]
pub struct RunningShim {
    pub(super) place: SocketPlace,
    pub(super) process: ProcessIdentity,
    pub(super) children: Children,
    /// Tells how a leader in a sandbox ended, until it has.
    pub(super) reports: Option<OwnedFd>,
    pub(super) master: OwnedFd,
    /// The slave end, open until the leader has ended. Without it, a program that closes its streams and
    /// reopens the terminal would look as if it had ended.
    pub(super) slave: Option<OwnedFd>,
    pub(super) terminal: u32,
    pub(super) ring_bytes: u32,
    pub(super) unread: Unread,
    pub(super) output: OutputRelay,
    pub(super) input: InputRelay,
    pub(super) kept: Kept,
    pub(super) solitude: Solitude,
    pub(super) daemon: Option<OwnedFd>,
    /// A connection that has not sent its first frame.
    pub(super) newcomer: Option<OwnedFd>,
    pub(super) generation: u64,
    pub(super) told_end: bool,
    pub(super) reply: Box<Frame>,
}

struct Ready {
    ends: Events,
    reports: Events,
    listener: Events,
    newcomer: Events,
    daemon: Events,
    input: Events,
    master: Events,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    On,
    End,
}

impl RunningShim {
    /// Serves daemons until the session is over. `room` receives each frame.
    ///
    /// Does not allocate.
    pub fn run(&mut self, room: &mut Frame) {
        loop {
            let now = readiness::now();
            self.solitude.set(now, self.daemon.is_none());
            match self.solitude.on_time(now) {
                OrphanStep::Nothing => {}
                OrphanStep::HangUp => self.hang_up(),
                OrphanStep::End => return,
            }
            self.output.on_time(now, self.master.as_fd(), self.when_full());
            self.tell_end();
            if self.mind_place(now) == Course::End {
                return;
            }
            let Ok(ready) = self.wait(now) else { return };
            self.input.wake(ready.input != 0);
            if ready.reports != 0 {
                self.on_report(room);
            }
            if ready.ends != 0 || ready.reports != 0 {
                self.on_child_ended();
            }
            self.relay_input();
            if ready.newcomer != 0 && self.on_newcomer(room) == Course::End {
                return;
            }
            // A new connection may just have replaced the daemon, whose events are then void.
            if ready.newcomer == 0 && ready.daemon != 0 {
                let gone = ready.daemon & HANGUP != 0;
                let course = if gone { self.on_hangup(room) } else { self.on_frame(room) };
                if course == Course::End {
                    return;
                }
            }
            if ready.listener != 0 {
                // In place of an earlier newcomer.
                self.newcomer = self.place.accept(self.process.pid).or(self.newcomer.take());
            }
            self.on_terminal(ready.master);
        }
    }

    /// Keeps the socket reachable. Without its directory, the shim stays only while the program runs.
    fn mind_place(&mut self, now: Duration) -> Course {
        self.place.set(now, self.daemon.is_none());
        self.place.on_time(now);
        // Output for which the ring has no room finds no reader any more.
        let ended =
            self.children.leader_ended().is_some() && !self.output.has_room(self.when_full());
        if self.place.is_nowhere() && ended { Course::End } else { Course::On }
    }

    /// Removes the socket and ends all children. A daemon that waits for the connection to close then finds
    /// nothing left.
    pub fn end(mut self) {
        self.place.clear();
        self.children.end_all();
    }

    fn wait(&self, now: Duration) -> Result<Ready, Errno> {
        let output = self.output.deadline(self.when_full());
        let deadline = [self.solitude.deadline(), output, self.place.deadline()];
        let deadline = deadline.into_iter().flatten().min();
        // From here on, the daemon rings if it puts something in.
        let most = match self.input.may_sleep() {
            true => deadline.map(|deadline| deadline.saturating_sub(now)),
            false => Some(Duration::ZERO),
        };
        let [ends, reports, listener, newcomer, daemon, input, master] = readiness::wait(
            [
                (Some(self.children.ends()), READABLE),
                (self.reports.as_ref().map(AsFd::as_fd), READABLE),
                (Some(self.place.listener()), READABLE),
                (self.newcomer.as_ref().map(AsFd::as_fd), READABLE),
                (self.daemon.as_ref().map(AsFd::as_fd), READABLE | HANGUP),
                (Some(self.input.bell()), READABLE),
                (Some(self.master.as_fd()), self.asked_of_terminal()),
            ],
            most,
        )?;
        Ok(Ready { ends, reports, listener, newcomer, daemon, input, master })
    }

    /// The events to wait for on the terminal. Without room for output or pending input there are none.
    fn asked_of_terminal(&self) -> Events {
        let reads = if self.output.has_room(self.when_full()) { READABLE } else { 0 };
        reads | if self.input.is_blocked() { WRITABLE } else { 0 }
    }

    /// What to do with output that does not fit: a daemon makes room.
    fn when_full(&self) -> Unread {
        if self.daemon.is_some() { Unread::Block } else { self.unread }
    }

    /// Writes what the daemon has put into its memory.
    fn relay_input(&mut self) {
        let relayed = self.input.relay(self.master.as_fd());
        self.on_relayed(relayed);
    }

    fn on_relayed(&self, relayed: Relayed) {
        match relayed {
            Relayed::Nothing => {}
            Relayed::Ring => self.output.ring_bell(),
            Relayed::Damaged => self.hang_up_on_daemon(),
        }
    }

    /// Reads the terminal, and answers the daemon that asks whether all output is in the ring: one turn takes
    /// more than the kernel holds.
    fn on_terminal(&mut self, ready: Events) {
        let question = self.input.question();
        if ready & !WRITABLE == 0 && question.is_none() {
            return;
        }
        self.output.take(readiness::now(), self.master.as_fd(), self.when_full());
        if let Some(question) = question {
            let all_is_there = self.output.is_over() || self.output.has_room(self.when_full());
            self.input.answer(AnsweredQuestion { question, all_is_there });
            self.output.ring_bell();
        }
    }

    fn on_report(&mut self, room: &mut Frame) {
        let reports = self.reports.as_ref().map(AsFd::as_fd);
        if let Some(ended) = reports.and_then(|reports| sandbox::hear_end(reports, room)) {
            self.children.on_leader_ended(ended);
            self.reports = None;
        }
    }

    fn on_child_ended(&mut self) {
        self.children.reap();
        if self.children.leader_ended().is_some() && self.slave.take().is_some() {
            let relayed = self.input.end();
            self.on_relayed(relayed);
            self.output.on_exit(readiness::now());
            self.place.hurry();
        }
    }

    /// Reads the first frame of a connection, which must be an attach. The memory of the daemon before is closed
    /// first, so that whatever it said of input that is in it was said by then, and still counts.
    fn on_newcomer(&mut self, room: &mut Frame) -> Course {
        let Some(connection) = self.newcomer.take() else { return Course::On };
        let received = socket::receive(connection.as_fd(), room, &mut Descriptors::default());
        let Ok(length) = received else { return Course::On };
        // Without memory for its input, a daemon can do nothing here, and the one before stays.
        if let Ok(Some(ToShim::Attach { .. })) = ToShim::decode(&room[..length])
            && let Ok(memory) = self.input.begin()
        {
            if self.hear_the_last(room) == Course::End {
                return Course::End;
            }
            self.attach(connection, &memory);
        }
        Course::On
    }

    /// Serves this daemon in place of any other, and sends it the whole state with the memory for its input.
    pub(super) fn attach(&mut self, daemon: OwnedFd, memory: &OwnedFd) {
        self.generation += 1;
        self.daemon = Some(daemon);
        self.told_end = self.output.is_over();
        let attached = Attached {
            version: VERSION,
            generation: self.generation,
            shim: self.process,
            leader: self.children.leader(),
            terminal: self.terminal,
            window: terminal::size(self.master.as_fd()).unwrap_or_default(),
            ring_bytes: self.ring_bytes,
            notes: self.kept.notes().count() as u16,
            head: self.output.head(),
            committed: self.output.committed(),
            tail: self.output.tail(),
            answered: self.input.log().answered(),
            epoch: self.input.log().epoch(),
            ended: self.children.leader_ended().filter(|_| self.output.is_over()),
            results: self.input.log().results(),
            segments: self.kept.segment_bytes().collect(),
            snapshots: self.kept.snapshot_offsets().collect(),
            typed: Some(self.input.log().typed()),
        };
        let [ring, bell] = self.output.descriptors();
        let mut descriptors = [ring; DESCRIPTORS_MAX];
        let mut count = 0;
        let own = [ring, bell, memory.as_fd(), self.input.bell()];
        for descriptor in own.into_iter().chain(self.kept.files()) {
            descriptors[count] = descriptor;
            count += 1;
        }
        let length = attached.encode(&mut self.reply);
        let daemon = self.daemon.as_ref().map(AsFd::as_fd);
        let mut told = send_to(daemon, &self.reply[..length], &descriptors[..count]);
        for note in self.kept.notes() {
            let length = FromShim::Note(note).encode(&mut self.reply);
            told = told.and_then(|()| send_to(daemon, &self.reply[..length], &[]));
        }
        if let Err(errno) = told {
            // Whoever has it started must not take it for a shim that never was.
            let errno = errno as i32;
            self.tell(&FromShim::Failed(StartFailure { stage: StartStage::Shim, errno }));
            self.hang_up_on_daemon();
        }
    }

    /// Closes the connection to a daemon that does not read. The frames that it has sent are still processed.
    fn hang_up_on_daemon(&self) {
        if let Some(daemon) = &self.daemon {
            let _ = shutdown(daemon.as_raw_fd(), Shutdown::Both);
        }
    }

    /// Leaves a daemon that does not keep to the protocol.
    fn drop_daemon(&mut self) {
        self.input.close();
        self.daemon = None;
    }

    /// Continues without a daemon. If no daemon ever sent a note, the session ends: no client knows it, and
    /// the next daemon may not find it.
    fn on_hangup(&mut self, room: &mut Frame) -> Course {
        self.input.close();
        let course = self.hear_the_last(room);
        if self.kept.is_noted() { course } else { Course::End }
    }

    /// Leaves the daemon, and processes the frames that its connection holds: commits, notes and the end of the
    /// session.
    fn hear_the_last(&mut self, room: &mut Frame) -> Course {
        let Some(daemon) = self.daemon.take() else { return Course::On };
        for _ in 0..LEFT_MAX {
            let mut descriptors = Descriptors::default();
            let length = match socket::receive(daemon.as_fd(), room, &mut descriptors) {
                Ok(length @ 1..) => length,
                // The daemon closed with frames unread. The kernel reports this once, before the daemon's
                // frames.
                Err(Errno::ECONNRESET | Errno::EINTR) => continue,
                Ok(_) | Err(_) => return Course::On,
            };
            match ToShim::decode(&room[..length]) {
                Ok(Some(ToShim::Commit(commit))) => self.commit(&commit, &mut descriptors),
                Ok(Some(ToShim::Note(note))) => self.kept.remember(note),
                Ok(Some(ToShim::End)) => return Course::End,
                Ok(None | Some(ToShim::Start(_) | ToShim::Attach { .. })) => {}
                Err(_) => return Course::On,
            }
        }
        Course::On
    }

    fn on_frame(&mut self, room: &mut Frame) -> Course {
        let Some(daemon) = &self.daemon else { return Course::On };
        let mut descriptors = Descriptors::default();
        let length = match socket::receive(daemon.as_fd(), room, &mut descriptors) {
            Ok(length @ 1..) => length,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNRESET) => return Course::On,
            Ok(_) | Err(_) => {
                self.drop_daemon();
                return Course::On;
            }
        };
        match ToShim::decode(&room[..length]) {
            Ok(Some(ToShim::Commit(commit))) => self.commit(&commit, &mut descriptors),
            Ok(Some(ToShim::Note(note))) => self.kept.remember(note),
            Ok(Some(ToShim::End)) => return Course::End,
            // A later protocol version may have more kinds.
            Ok(None | Some(ToShim::Start(_) | ToShim::Attach { .. })) => {}
            Err(_) => self.drop_daemon(),
        }
        Course::On
    }

    fn commit(&mut self, commit: &Commit, descriptors: &mut Descriptors) {
        self.kept.commit(commit, descriptors);
        self.output.commit(readiness::now(), commit.offset, commit.quiet);
    }

    /// Reports once how the program ended, when all its output is in the ring.
    fn tell_end(&mut self) {
        if let (Some(ended), true, false) =
            (self.children.leader_ended(), self.output.is_over(), self.told_end)
        {
            self.told_end = true;
            self.tell(&FromShim::Exited { ended, head: self.output.head() });
        }
    }

    /// Sends a frame to the daemon, if one is connected.
    fn tell(&mut self, frame: &FromShim<'_>) {
        let length = frame.encode(&mut self.reply);
        let daemon = self.daemon.as_ref().map(AsFd::as_fd);
        if send_to(daemon, &self.reply[..length], &[]).is_err() {
            self.hang_up_on_daemon();
        }
    }

    /// Sends SIGHUP and SIGCONT to the foreground group of the terminal.
    fn hang_up(&self) {
        if let Ok(foreground) = tcgetpgrp(&self.master)
            && foreground.as_raw() > 0
        {
            for signal in [Signal::SIGHUP, Signal::SIGCONT] {
                let _ = killpg(foreground, signal);
            }
        }
    }
}

fn send_to(
    daemon: Option<BorrowedFd<'_>>,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    daemon.map_or(Ok(()), |daemon| socket::send(daemon, frame, descriptors))
}
