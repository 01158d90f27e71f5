//! A session without a shim. Either files took its place once the program had ended, or the shim was killed while no
//! daemon ran, and only programs that survived it are left: it finds them by their mark, and removes the session's files
//! with them.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::core::frame::{Exit, Size};
use crate::core::ids::SessionId;
use crate::core::moment::Moment;
use crate::session::pty::held::ended::EndedFiles;
use crate::session::pty::kill::{self, KillError, Tree};
use crate::session::pty::processes::ticks;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::signal::Signal;
use crate::session::pty::{
    Note, OutputEnd, Pty, ReadOutput, Stamp, TerminalCheckpoint, TerminalEvidence,
};

/// The remains of a session that has no shim.
#[derive(Debug)]
pub struct GonePty {
    session: SessionId,
    /// How its program ended, and the files that say so; none if the shim was killed.
    ended: Option<(Exit, EndedFiles)>,
    /// When the session was created. Older processes belong to another session, whatever their mark.
    created_at: Moment,
    /// The path of the shim's socket. It is removed only after the last program, so that until then each
    /// daemon finds the session.
    socket: PathBuf,
}

impl GonePty {
    /// The remains of a session that was created at this moment and whose shim listened at `socket`.
    pub fn left_at(socket: PathBuf, session: SessionId, created_at: Moment) -> Self {
        Self { session, ended: None, created_at, socket }
    }

    /// A session whose program ended in this way, which these files tell.
    pub fn retired(
        socket: PathBuf,
        session: SessionId,
        created_at: Moment,
        ended: (Exit, EndedFiles),
    ) -> Self {
        Self { session, ended: Some(ended), created_at, socket }
    }
}

/// The error of every operation on a terminal that is gone.
fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Pty for GonePty {
    async fn read(&self, _offset: u64, _into: &mut Vec<u8>) -> io::Result<ReadOutput> {
        Ok(ReadOutput::End)
    }

    fn oldest(&self) -> u64 {
        0
    }

    fn owes(&self, _offset: u64) -> bool {
        false
    }

    fn outlives_daemon(&self) -> bool {
        self.ended.is_some()
    }

    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        self.ended.as_ref().map_or_else(|| Err(gone()), |(_, files)| files.commit(checkpoint))
    }

    fn remember(&self, note: Note, bytes: &[u8]) {
        if let Some((_, files)) = &self.ended
            && let Err(error) = files.remember(note, bytes)
        {
            tracing::warn!(session = %self.session, ?note, %error, "a note was not stored");
        }
    }

    fn entrust(&self, identity: &[u8]) {
        if let Some((_, files)) = &self.ended
            && let Err(error) = files.keep_identity(identity)
        {
            tracing::warn!(session = %self.session, %error, "its name was not stored");
        }
    }

    fn try_write(&self, _bytes: &[u8], _stamp: Stamp) -> io::Result<usize> {
        Err(gone())
    }

    async fn writable(&self) -> io::Result<()> {
        Ok(())
    }

    fn resize(&self, _size: Size) -> io::Result<()> {
        Err(gone())
    }

    fn signal(&self, _signal: Signal) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn evidence(&self) -> io::Result<TerminalEvidence> {
        Err(gone())
    }

    fn unread(&self) -> io::Result<bool> {
        Err(gone())
    }

    fn ask_output_end(&self) -> io::Result<OutputEnd> {
        Err(gone())
    }

    async fn exited(&self) -> Exit {
        self.ended.as_ref().map_or(Exit::Lost, |(exit, _)| *exit)
    }

    async fn kill(&self) -> Result<(), KillError> {
        let started = ticks(self.created_at);
        kill::end_tree(Tree { started, ..Tree::of_mark(self.session) }).await?;
        if self.ended.is_none() {
            let _ = fs::remove_file(&self.socket);
            Remains::beside(&self.socket).clear();
        }
        Ok(())
    }

    fn forget(&self) {
        if let Some((_, files)) = &self.ended {
            files.clear();
            // A shim that was killed before has left it.
            let _ = fs::remove_file(&self.socket);
        }
    }

    async fn vanished(&self) {}
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;
    use crate::session::clock::boot;
    use crate::shim::mark;

    /// A process that carries the mark of a session, or was given it.
    #[allow(unsafe_code)]
    fn marked(session: SessionId) -> Child {
        let mut command = Command::new("sleep");
        // SAFETY: it makes system calls only.
        unsafe {
            command.arg("1000").pre_exec(move || mark::set(session.number()));
        }
        command.spawn().unwrap()
    }

    #[tokio::test]
    async fn what_is_older_than_a_session_does_not_end_with_it_whatever_mark_it_carries() {
        let ground = tempfile::tempdir().unwrap();
        let session = SessionId::from_random(uuid::Uuid::from_u128(0x0123_4567_89ab << 80));
        let before = boot::now();
        let mut child = marked(session);
        let gone = |created_at| GonePty::left_at(ground.path().join("x.sock"), session, created_at);
        gone(before + std::time::Duration::from_secs(60)).kill().await.unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "it is of before");
        // Who has ended and was not waited for is none of those who are left.
        gone(before).kill().await.unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
