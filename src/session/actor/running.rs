//! The loop of a session's task: what happens next, and in which order.
//!
//! It does none of it: each thing that happens is one call.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::session::actor::Actor;
use crate::session::actor::parting::killed;
use crate::session::actor::silence::silence_changes;
use crate::session::alarm::Alarm;
use crate::session::command::Command;
use crate::session::people::PersonCommand;
use crate::session::pty::Pty;

/// Where those wait who ask for something.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) people: mpsc::Receiver<PersonCommand>,
}

impl<P: Pty> Actor<P> {
    /// Runs the session until it is removed: some time after its program ended, when it is asked
    /// to, or when nobody has a handle on it any more. A failure of its own does not end it.
    ///
    /// What people ask comes before what agents ask.
    pub async fn run(
        mut self,
        commands: mpsc::Receiver<Command>,
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
        let Mailbox { commands, people } = mailbox;
        let urgent = Arc::clone(&self.urgent);
        let mut alarm = Alarm::new(self.clock.clone());
        self.mend().await;
        self.tell_end();
        self.settle();
        while self.parting.is_none() && self.remove_at.is_none_or(|at| at > self.clock.now()) {
            alarm.set(self.deadline());
            let wants_to_write = self.exit.is_none() && self.input.next_bytes().is_some();
            tokio::select! {
                () = urgent.posted() => {}
                Some(command) = people.recv() => self.on_person(command),
                command = commands.recv() => match command {
                    Some(command) => {
                        self.serve_people(people);
                        self.on_command(command);
                    }
                    None => break,
                },
                output = self.pty.read(self.offset, &mut self.buffer), if self.exit.is_none() => {
                    self.on_output(output).await;
                }
                ready = self.pty.writable(), if wants_to_write => self.on_writable(ready),
                killed = killed(&mut self.killing), if self.killing.is_some() => {
                    self.on_killed(killed);
                }
                back = silence_changes(&*self.pty, &mut self.returning), if self.minds_silence() => {
                    if back {
                        self.on_returned();
                    }
                }
                () = alarm.ring() => {}
            }
            self.serve_people(people);
            self.settle();
        }
    }
}
