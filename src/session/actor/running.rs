//! The loop of a session's task: what happens next, and in which order.
//!
//! It does none of it: each thing that happens is one call. What was posted past the line of commands counts before the
//! next command and the next byte.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::session::actor::Actor;
use crate::session::clock::Alarm;
use crate::session::command::{Command, PersonCommand};
use crate::session::pty::Pty;

/// So many of those who ask are served in a row before all else has a turn.
const ASKED_MAX: usize = 16;

/// Waits until the terminal answers again, or is gone.
pub(super) type Returning = Pin<Box<dyn Future<Output = ()> + Send>>;

enum TurnDone {
    /// Somebody asked for it.
    Asked,
    Other,
    /// Nobody can ask for anything any more.
    Abandoned,
}

/// Where those wait who ask for something.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) commands: mpsc::Receiver<Box<Command>>,
    pub(super) people: mpsc::Receiver<PersonCommand>,
}

impl<P: Pty> Actor<P> {
    /// Runs the session until it is removed: some time after its program ended, when it is asked
    /// to, or when nobody has a handle on it any more. A failure of its own does not end it.
    ///
    /// What people ask comes before what agents ask.
    pub async fn run(
        mut self,
        commands: mpsc::Receiver<Box<Command>>,
        people: mpsc::Receiver<PersonCommand>,
    ) {
        let mut mailbox = Mailbox { commands, people };
        self.serve_over_failures(&mut mailbox).await;
        mailbox.commands.close();
        mailbox.people.close();
        self.outlets.urgent.close();
        self.part().await;
    }

    pub(super) async fn serve(&mut self, mailbox: &mut Mailbox) {
        self.mend().await;
        self.tell_end();
        self.settle();
        let mut alarm = Alarm::new(self.clock.clone());
        let mut asked = 0;
        while !self.ending.is_over(self.clock.now()) {
            alarm.set(self.deadline());
            match self.next_turn(mailbox, &mut alarm, asked < ASKED_MAX).await {
                TurnDone::Asked => asked += 1,
                TurnDone::Other => asked = 0,
                TurnDone::Abandoned => return,
            }
            self.serve_people(&mut mailbox.people);
            self.looks.make_way = false;
            self.settle();
        }
    }

    /// Does the next thing. Whoever asks comes before output, which there may always be more of, unless
    /// `asks` says that it is the turn of all else.
    async fn next_turn(
        &mut self,
        mailbox: &mut Mailbox,
        alarm: &mut Alarm,
        asks: bool,
    ) -> TurnDone {
        let Mailbox { commands, people } = mailbox;
        let urgent = Arc::clone(&self.outlets.urgent);
        let wants_to_write = self.ending.exit.is_none() && self.input.next_bytes().is_some();
        let held = self.unfed.is_held();
        let reads = self.ending.exit.is_none() && self.unfed.is_empty() && !held;
        let followers = Arc::clone(&self.outlets.live.row_followers);
        tokio::select! {
            biased;
            () = urgent.posted(), if asks => return TurnDone::Asked,
            Some(command) = people.recv(), if asks => {
                self.on_person(command);
                return TurnDone::Asked;
            }
            command = commands.recv(), if asks => match command {
                Some(command) => {
                    self.serve_people(people);
                    self.on_command(*command);
                    return TurnDone::Asked;
                }
                None => return TurnDone::Abandoned,
            },
            killed = self.ending.killed(), if self.ending.is_killing() => self.on_killed(killed),
            back = silence_changes(&*self.pty, &mut self.returning), if self.minds_silence() => {
                if back {
                    self.on_returned();
                }
            }
            () = followers.progress(), if held => {}
            () = make_way(asks), if !self.unfed.is_empty() && !held => {
                self.feed_slice();
                self.catch_up();
            }
            output = self.pty.read(self.unfed.offset, &mut self.unfed.bytes), if reads => {
                self.on_output(output).await;
            }
            end = self.looks.output_end(&*self.pty), if self.looks.is_asked() => self.on_output_end(end),
            ready = self.pty.writable(), if wants_to_write => self.on_writable(ready),
            () = yield_now(), if self.looks.make_way => {}
            () = alarm.ring() => {}
            () = ready(()), if !asks => {}
        }
        TurnDone::Other
    }
}

/// Lets those who ask, and other tasks, go first: one flooding session must not keep the others from their
/// turn.
async fn make_way(asks: bool) {
    if asks {
        yield_now().await;
    }
}

impl<P: Pty> Actor<P> {
    /// Takes in all that was posted since this was last asked, one thing after the other: what is not done
    /// yet when one of them fails is done after it.
    pub(super) fn drain_urgent(&mut self) {
        self.collect_posted();
        let now = self.clock.now();
        while let Some((by, reply)) = self.reserve.inbox.preempts.pop_front() {
            let held = self.input.preempt(now, by);
            self.callers.preempted.push((reply, held));
        }
        while let Some(principal) = self.reserve.inbox.ended_rights.pop_first() {
            self.input.end_right_of(now, principal);
        }
        while let Some(reply) = self.reserve.inbox.finders.pop_front() {
            // Judged now, it is no lease that is over.
            self.input.on_time(now);
            let _ = reply.send(self.input.lease().command_lines());
        }
        while let Some(reply) = self.reserve.inbox.secrecy.pop_front() {
            let _ = reply.send(self.reads_secret());
        }
        while let Some((name, reply)) = self.reserve.inbox.renames.pop_front() {
            let _ = reply.send(self.rename(name));
        }
        while let Some((order, reply)) = self.reserve.inbox.recordings.pop_front() {
            let _ = reply.send(self.on_recording_order(order));
        }
        self.take_markers();
        if let Some(window) = self.reserve.inbox.window.take() {
            self.reserve.window = window;
            self.input.set_window(now, window);
        }
        if std::mem::take(&mut self.reserve.inbox.reclaim) {
            self.input.begin_reclaim(now);
        }
        while let Some(waiter) = self.reserve.inbox.cancelled.pop_first() {
            self.give_up_waiting(waiter);
        }
        while let Some(write) = self.reserve.inbox.let_go.pop_first() {
            if let Some(token) = self.callers.holds.remove(&write) {
                self.input.let_go(now, token);
            }
        }
        if std::mem::take(&mut self.reserve.inbox.spare_commands) {
            self.running.spare();
        }
        while let Some(given_up) = self.reserve.inbox.interrupts.pop_front() {
            self.running.on_given_up(now, given_up);
        }
        while let Some(connection) = self.reserve.inbox.closed.pop_first() {
            self.on_connection_closed(connection);
        }
        self.typists.left.append(&mut self.reserve.inbox.detached);
    }

    /// Takes in what was posted, and does nothing of it but to note that the daemon ends.
    pub(super) fn collect_posted(&mut self) {
        if let Some(posted) = self.outlets.urgent.take() {
            self.reserve.inbox.add(posted);
        }
        self.ending.parting = self.ending.parting.max(self.reserve.inbox.parting.take());
    }
}

/// Waits until a terminal falls silent, or until one that is silent answers again or is gone; says whether
/// it was the latter.
pub(super) async fn silence_changes(pty: &impl Pty, returning: &mut Option<Returning>) -> bool {
    match returning {
        Some(returning) => returning.as_mut().await,
        None => pty.fell_silent().await,
    }
    returning.is_some()
}
