//! The loop of a session's task: what happens next, and in which order.
//!
//! It does none of it: each thing that happens is one call.

use std::future::ready;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::session::actor::Actor;
use crate::session::actor::silence::silence_changes;
use crate::session::alarm::Alarm;
use crate::session::command::Command;
use crate::session::people::PersonCommand;
use crate::session::pty::Pty;

/// So many of those who ask are served in a row before all else has a turn.
const ASKED_MAX: usize = 16;

/// What was done in a turn.
enum Turn {
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
        self.urgent.close();
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
                Turn::Asked => asked += 1,
                Turn::Other => asked = 0,
                Turn::Abandoned => return,
            }
            self.serve_people(&mut mailbox.people);
            self.settle();
        }
    }

    /// Does the next thing. Whoever asks comes before output, which there may always be more of, unless
    /// `asks` says that it is the turn of all else.
    async fn next_turn(&mut self, mailbox: &mut Mailbox, alarm: &mut Alarm, asks: bool) -> Turn {
        let Mailbox { commands, people } = mailbox;
        let urgent = Arc::clone(&self.urgent);
        let wants_to_write = self.ending.exit.is_none() && self.input.next_bytes().is_some();
        let reads = self.ending.exit.is_none() && self.unfed.is_empty();
        tokio::select! {
            biased;
            () = urgent.posted(), if asks => return Turn::Asked,
            Some(command) = people.recv(), if asks => {
                self.on_person(command);
                return Turn::Asked;
            }
            command = commands.recv(), if asks => match command {
                Some(command) => {
                    self.serve_people(people);
                    self.on_command(*command);
                    return Turn::Asked;
                }
                None => return Turn::Abandoned,
            },
            killed = self.ending.killed(), if self.ending.is_killing() => self.on_killed(killed),
            back = silence_changes(&*self.pty, &mut self.returning), if self.minds_silence() => {
                if back {
                    self.on_returned();
                }
            }
            () = make_way(asks), if !self.unfed.is_empty() => {
                self.feed_slice();
                self.catch_up();
            }
            output = self.pty.read(self.unfed.offset, &mut self.unfed.bytes), if reads => {
                self.on_output(output).await;
            }
            ready = self.pty.writable(), if wants_to_write => self.on_writable(ready),
            () = alarm.ring() => {}
            () = ready(()), if !asks => {}
        }
        Turn::Other
    }
}

/// Lets those who ask, and other tasks, go first: one flooding session must not keep the others from their
/// turn.
async fn make_way(asks: bool) {
    if asks {
        yield_now().await;
    }
}
