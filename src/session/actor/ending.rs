//! How a session ends: its program exits, its processes are killed, or the daemon parts from it.
//!
//! It must not know why the daemon ends, nor who holds the terminal.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::core::event::Event;
use crate::core::frame::Exit;
use crate::core::moment::Moment;
use crate::session::actor::Actor;
use crate::session::actor::restart::{contained, contained_now};
use crate::session::command::Reply;
use crate::session::control::Parting;
use crate::session::error::SessionError;
use crate::session::off_worker::while_others_go_on;
use crate::session::pty::Pty;
use crate::session::pty::kill::KillError;

/// How long the end of a program is waited for once all its processes are gone.
pub(super) const END_TOLD_MAX: Duration = Duration::from_secs(2);

/// How long an ended session whose processes survive a kill is listed at least.
const SURVIVORS_SHOWN_MIN: Duration = Duration::from_secs(60);

type Killing = Pin<Box<dyn Future<Output = Result<(), KillError>> + Send>>;

#[derive(Default)]
pub(super) struct Ending {
    pub(super) exit: Option<Exit>,
    untold: bool,
    pub(super) remove_at: Option<Moment>,
    killing: Option<Killing>,
    killers: Vec<Reply<()>>,
    /// Until when those wait for the exit to be told, once all processes are gone.
    killers_until: Option<Moment>,
    /// The daemon ends; what becomes of this session then.
    pub(super) parting: Option<Parting>,
    /// It ended before and is forgotten as soon as all its processes are gone.
    removing: bool,
}

impl Ending {
    /// Whether the session is over at this moment, or the daemon's part in it is.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.parting.is_some() || self.removal().is_some_and(|at| at <= now)
    }

    /// When the session is removed: not while its processes are being ended.
    fn removal(&self) -> Option<Moment> {
        self.remove_at.filter(|_| self.killing.is_none())
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        self.removal().into_iter().chain(self.killers_until).min()
    }

    pub(super) fn is_killing(&self) -> bool {
        self.killing.is_some()
    }

    /// Waits until its processes have ended, once that has begun.
    pub(super) async fn killed(&mut self) -> Result<(), KillError> {
        match &mut self.killing {
            Some(killing) => killing.as_mut().await,
            None => std::future::pending().await,
        }
    }

    fn answer_killers(&mut self, problem: Option<&str>) {
        self.killers_until = None;
        for reply in self.killers.drain(..) {
            let answer = match problem {
                None => Ok(()),
                Some(problem) => {
                    Err(SessionError::Terminal(std::io::Error::other(problem.to_owned())))
                }
            };
            let _ = reply.send(answer);
        }
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn on_exit(&mut self, exit: Exit) {
        self.ending.exit = Some(exit);
        self.ending.remove_at = Some(self.clock.now() + self.rules.keep_ended);
        self.ending.untold = true;
        self.tell_end();
    }

    /// Tells that the program ended, unless that was done or it did not.
    pub(super) fn tell_end(&mut self) {
        let Some(exit) = self.ending.exit.filter(|_| self.ending.untold) else { return };
        let now = self.clock.now();
        let code = if let Exit::Code(code) = exit { Some(code) } else { None };
        self.screen.end_commands(now, code);
        self.input.close(now);
        self.pace.dirty = true;
        self.checkpoint_now(true);
        // Whoever is told finds the end in the frame.
        self.settle();
        self.record_exit(exit);
        self.remember_stillness();
        self.ending.untold = false;
        self.count_change();
        if matches!(exit, Exit::Unknown | Exit::Lost) {
            // The terminal went away with whoever held it, and may have left its programs behind.
            self.end_processes();
        }
        if self.ending.killing.is_none() {
            self.ending.answer_killers(None);
        }
        tracing::info!(session = %self.id, ?exit, "the program ended");
        self.retire();
    }

    /// Needs no process any more for a session that is over and stays readable.
    fn retire(&mut self) {
        let Ending { exit, untold, remove_at, parting, removing, .. } = &self.ending;
        let stays = remove_at.is_some_and(|at| at > self.clock.now()) && !removing;
        let is_over = exit.is_some() && !untold && !self.ending.is_killing();
        if !stays || !is_over || parting.is_some() || !self.pty.outlives_daemon() {
            return;
        }
        if let Err(error) = while_others_go_on(|| self.pty.retire()) {
            tracing::debug!(session = %self.id, %error, "it keeps its shim");
            if self.pty.is_silent() {
                let pty = Arc::clone(&self.pty);
                self.returning = Some(Box::pin(async move { pty.returned().await }));
            }
        }
    }

    /// Ends everything in the terminal for a caller, who is answered then.
    pub(super) fn kill_for(&mut self, reply: Reply<()>) {
        // What was left behind by a program that has ended goes with its session.
        self.ending.removing |= self.ending.exit.is_some();
        self.end_processes();
        self.ending.killers.push(reply);
    }

    /// Begins to end everything in the terminal, unless that was begun.
    pub(super) fn end_processes(&mut self) {
        let pty = Arc::clone(&self.pty);
        if self.ending.killing.is_none() {
            self.ending.killing = Some(Box::pin(async move { pty.kill().await }));
        }
    }

    /// Begins again to end everything, if that was begun.
    pub(super) fn kill_again(&mut self) {
        if self.ending.killing.take().is_some() {
            self.end_processes();
        }
    }

    pub(super) fn on_killed(&mut self, killed: Result<(), KillError>) {
        self.ending.killing = None;
        let problem = killed.err().map(|error| error.to_string());
        if problem.is_some() {
            // A session with processes stays, so that it can be seen and killed again.
            self.ending.removing = false;
            let kept = self.rules.keep_ended.max(SURVIVORS_SHOWN_MIN);
            let until = self.clock.now() + kept;
            self.ending.remove_at = self.ending.remove_at.map(|at| at.max(until));
        }
        if self.ending.removing {
            self.ending.remove_at = Some(self.clock.now());
        }
        // Whoever killed the session finds it ended, so a success is answered after its end is told,
        // unless nobody tells it.
        if problem.is_some() || self.ending.exit.is_some() {
            self.ending.answer_killers(problem.as_deref());
        } else {
            self.ending.killers_until = Some(self.clock.now() + END_TOLD_MAX);
        }
        self.retire();
    }

    /// Answers those who killed a session whose end nobody tells.
    pub(super) fn answer_patient_killers(&mut self) {
        if self.ending.killers_until.is_some_and(|until| until <= self.clock.now()) {
            self.ending.answer_killers(None);
        }
    }

    pub(super) async fn part(mut self) {
        self.record_failure();
        if self.ending.parting == Some(Parting::Leave)
            && self.pty.outlives_daemon()
            && !self.ending.removing
        {
            if self.ending.killing.is_some() {
                // Nobody would go on with an end that was begun.
                let _ = self.ending.killed().await;
            }
            // Should it fail, what was kept before still counts.
            let _ = contained_now(|| {
                self.checkpoint_now(true);
                self.remember_stillness();
            });
            return;
        }
        if self.ending.parting.is_some() || self.ending.exit.is_none() {
            // Nobody is left to read what these programs would still write.
            match contained(self.pty.kill()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.outlets.live.set_unended(error.to_string()),
                Err(_) => self.outlets.live.set_unended("ending it failed".to_owned()),
            }
        }
        self.tell_event(Event::SessionRemoved);
        self.pty.forget();
        // A daemon that starts at once must not find what is about to end.
        self.pty.vanished().await;
    }
}
