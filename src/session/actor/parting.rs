//! The last act of a session's task: its terminal ends, or is left to the next daemon.
//!
//! It must not know why the daemon ends, nor who holds the terminal.

use crate::session::actor::restart::{contained, contained_now};
use crate::session::actor::{Actor, Killing};
use crate::session::control::Parting;
use crate::session::pty::Pty;
use crate::session::pty::kill::KillError;

impl<P: Pty> Actor<P> {
    /// Lets the terminal go.
    pub(super) async fn part(mut self) {
        if self.parting == Some(Parting::Leave) && self.pty.outlives_daemon() && !self.removing {
            if self.killing.is_some() {
                // Nobody would go on with an end that was begun.
                let _ = killed(&mut self.killing).await;
            }
            // Should it fail, what was kept before still counts.
            let _ = contained_now(|| {
                self.checkpoint_now(true);
                self.remember_stillness();
            });
            return;
        }
        if self.parting.is_some() || self.exit.is_none() {
            // Nobody is left to read what these programs would still write.
            match contained(self.pty.kill()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.outlets.live.set_unended(error.to_string()),
                Err(_) => self.outlets.live.set_unended("ending it failed".to_owned()),
            }
        }
        self.pty.forget();
        // A daemon that starts at once must not find what is about to end.
        self.pty.vanished().await;
    }
}

/// Waits until what began to end has ended.
pub(super) async fn killed(killing: &mut Option<Killing>) -> Result<(), KillError> {
    match killing {
        Some(killing) => killing.as_mut().await,
        None => std::future::pending().await,
    }
}
