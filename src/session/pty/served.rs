//! Programs that serve the daemon beside its sessions. They carry a mark as those of sessions do, so that whatever comes of
//! them is found and ended, also by the next daemon if this one is killed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;

use uuid::Uuid;

use crate::core::ids::SessionId;
use crate::session::pty::kill::{Tree, end_tree};
use crate::session::pty::reaper::Child;
use crate::shim::mark::{mark_command, session_of};

/// How many marks of an earlier daemon are read.
const LEFT_MAX: usize = 1_024;

/// The marks of programs that may run, each the name of an empty file. One that is left when a daemon starts is that of
/// a daemon that was killed.
#[derive(Clone, Debug)]
pub struct ServingMarks(PathBuf);

impl ServingMarks {
    /// The marks in this directory, which is made with the first one. Only one daemon may have it at a time.
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The marks that an earlier daemon has left, before any program is started.
    pub fn left(&self) -> Vec<SessionId> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let mark = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        entries.filter_map(mark).take(LEFT_MAX).collect()
    }

    /// Ends all processes that have this mark of an earlier daemon, in bounded time.
    pub async fn end_left(self, mark: SessionId) {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        if session_of(own) == Some(mark.number()) {
            // The program has started this daemon, whose shims have its mark.
            return;
        }
        // Who carries it is known; who has merely lost a parent is not, and stays.
        let tree = Tree { shim: None, ..Tree::of_mark(mark) };
        match end_tree(tree).await {
            Ok(()) => self.forget(mark),
            Err(error) => {
                tracing::warn!(%error, "what a killed daemon has left does not end");
            }
        }
    }

    fn keep(&self, mark: SessionId) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        fs::write(self.0.join(mark.to_string()), "")
    }

    fn forget(&self, mark: SessionId) {
        // Without a process, it is a mark of nobody.
        let _ = fs::remove_file(self.0.join(mark.to_string()));
    }
}

/// A program that was started. It is not reaped before this is dropped.
#[derive(Debug)]
pub struct ServingProgram {
    child: Child,
    /// The number in its mark, which no session has.
    mark: SessionId,
    marks: Option<ServingMarks>,
}

impl ServingProgram {
    /// Starts a command, at the head of a kernel session and a process group of its own. Its mark is kept before.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(
        command: &mut Command,
        marks: Option<ServingMarks>,
    ) -> io::Result<(std::process::Child, Self)> {
        let mark = SessionId::from_random(Uuid::new_v4());
        if let Some(marks) = &marks {
            marks.keep(mark)?;
        }
        mark_command(command, mark.number());
        let mut started = None;
        let child = Child::start(|| Ok(started.insert(command.spawn()?).id()));
        let child = child.inspect_err(|_| {
            if let Some(marks) = &marks {
                marks.forget(mark);
            }
        })?;
        let started = started.ok_or(io::ErrorKind::NotFound)?;
        Ok((started, Self { child, mark, marks }))
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
        match end_tree(tree).await {
            Ok(()) => {
                if let Some(marks) = &self.marks {
                    marks.forget(self.mark);
                }
            }
            Err(error) => tracing::error!(%error, "a program of a mounted server does not end"),
        }
    }
}
