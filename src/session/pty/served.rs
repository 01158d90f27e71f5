//! Programs that serve the daemon beside its sessions. They carry a mark as those of sessions do, so that whatever comes of
//! them is found and ended.

use std::io;
use std::process::Command;

use uuid::Uuid;

use crate::core::ids::SessionId;
use crate::session::pty::kill::{Tree, end_tree};
use crate::session::pty::reaper::Child;
use crate::shim::mark::mark_command;

/// A program that was started. It is not reaped before this is dropped.
#[derive(Debug)]
pub struct ServingProgram {
    child: Child,
    /// The number in its mark, which no session has.
    mark: SessionId,
}

impl ServingProgram {
    /// Starts a command, at the head of a kernel session and a process group of its own.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(command: &mut Command) -> io::Result<(std::process::Child, Self)> {
        let mark = SessionId::from_random(Uuid::new_v4());
        mark_command(command, mark.number());
        let mut started = None;
        let child = Child::start(|| Ok(started.insert(command.spawn()?).id()))?;
        let started = started.ok_or(io::ErrorKind::NotFound)?;
        Ok((started, Self { child, mark }))
    }

    /// Waits until it has ended, whatever came of it.
    pub async fn ended(&self) {
        self.child.has_ended().await;
    }

    /// Ends all that came of it, in bounded time.
    pub async fn end_all(&self) {
        let (session, leader, started) = (self.mark, self.child.pid(), self.child.started());
        // No shim takes in its orphans, but this daemon.
        let tree = Tree { session, leader, started, foreground: None, shim: None };
        if let Err(error) = end_tree(tree).await {
            tracing::error!(%error, "a program of a mounted server does not end");
        }
    }
}
