//! The daemon's side of a terminal that a shim keeps, so that the terminal outlives the daemon.
//! Output comes from shared memory that the shim writes, and input goes into shared memory that it reads.
//! Checkpoints go into memory files that the shim stores.

pub mod contact;
pub mod ended;
mod input_line;
mod joining;
mod link;
pub mod recovered;
pub mod shims;
pub mod starter;
mod store;
mod waits;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nix::libc;
use nix::sys::termios::tcgetattr;
use tokio::io::unix::AsyncFd;

use crate::core::frame::{Exit, Size};
use crate::core::ids::SessionId;
use crate::core::shell::activity::Idleness;
use crate::session::pty::condemned::Shim;
use crate::session::pty::held::ended::EndedFiles;
use crate::session::pty::held::input_line::NotTaken;
use crate::session::pty::held::link::{ShimLink, ShimPresence};
use crate::session::pty::held::shims::Shims;
use crate::session::pty::held::store::{Hurry, Store};
use crate::session::pty::kill::{self, KillError, Tree};
use crate::session::pty::leader_files::LeaderFiles;
use crate::session::pty::lone_process::LastFront;
use crate::session::pty::processes;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::signal::Signal;
use crate::session::pty::{
    Note, OutputEnd, ProcessId, Pty, READ_MAX, ReadOutput, Stamp, TerminalCheckpoint,
    TerminalEvidence,
};
use crate::shim::input::ends::InputClosed;
use crate::shim::readiness::{self, READABLE};
use crate::shim::ring::{RingError, RingReader};
use crate::shim::terminal;
use crate::shim::wire::NoteFrame;
use crate::shim::wire::to_shim::ToShim;

/// A checkpoint is due once more than 1/`OWED_PART` of the ring is uncommitted.
const OWED_PART: u64 = 4;

/// The daemon's side of a terminal in a shim.
///
/// Dropping it ends nothing: the program continues, and another daemon may attach.
#[derive(Debug)]
pub struct HeldPty {
    session: SessionId,
    socket: PathBuf,
    shims: Shims,
    remains: Remains,
    /// Replaced when a silent shim answers again.
    link: Mutex<Arc<ShimLink>>,
    ring: RingReader,
    bell: AsyncFd<OwnedFd>,
    committed: AtomicU64,
    store: Mutex<Store>,
    leader: ProcessId,
    /// None if the leader had ended before, or they could not be opened.
    leader_files: Option<LeaderFiles>,
    /// What was in front when it was last seen to wait, until the session is quiet.
    front: LastFront,
    /// The leader's start time, in clock ticks since boot.
    started: u64,
    shim: Shim,
    /// Readable once the shim has ended.
    shim_ended: AsyncFd<OwnedFd>,
    terminal: PathBuf,
    /// Set once files have taken the place of the shim.
    retired: OnceLock<Box<EndedFiles>>,
}

impl HeldPty {
    pub fn shim(&self) -> ProcessId {
        self.shim.pid
    }

    pub fn leader(&self) -> ProcessId {
        self.leader
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Removes a file that was to take the place of the shim.
    pub fn remove_stale_files(&self) {
        if self.shims.are_ours() {
            self.remains.remove_ended();
        }
    }

    fn link(&self) -> Arc<ShimLink> {
        Arc::clone(&self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn foreground(&self) -> Option<ProcessId> {
        self.leader_files.as_ref()?.foreground()
    }

    /// Opens the slave end, to ask the kernel instead of the shim. Its path stays valid while the shim runs.
    /// The caller must close it soon: an open slave end would hide the end of the terminal.
    fn open(&self) -> io::Result<File> {
        if self.link().presence() == ShimPresence::Gone {
            return Err(io::ErrorKind::NotFound.into());
        }
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open(&self.terminal)
    }
}

impl Pty for HeldPty {
    async fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<ReadOutput> {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            // Reads the frames first, then the ring: once the exit is known, the ring no longer grows.
            self.mind_successor(&link);
            let known = *standing.borrow_and_update();
            match self.ring.copy(offset, READ_MAX, into) {
                Ok(0) if known.exit.is_some() || known.presence == ShimPresence::Gone => {
                    return Ok(ReadOutput::End);
                }
                Ok(0) => {}
                Ok(count) => return Ok(ReadOutput::Bytes(count)),
                Err(error @ RingError::NotThere) => {
                    return Err(io::Error::new(ErrorKind::InvalidInput, error));
                }
                Err(error @ RingError::Damaged) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
            tokio::select! {
                // The eventfd signals again after each new write, so it is enough to clear the readiness
                // before the next look.
                rang = self.bell.readable() => rang?.clear_ready(),
                heard = link.hear(&mut standing) => heard?,
                ended = self.shim_ended.readable() => {
                    ended?.retain_ready();
                    self.on_shim_ended(&link);
                }
            }
        }
    }

    fn oldest(&self) -> u64 {
        self.ring.tail()
    }

    fn owes(&self, offset: u64) -> bool {
        let uncommitted = offset.saturating_sub(self.committed.load(Ordering::Relaxed));
        uncommitted > self.ring.bytes() as u64 / OWED_PART
    }

    fn is_loose(&self) -> bool {
        self.retired.get().is_none()
            && self.store.lock().unwrap_or_else(PoisonError::into_inner).is_loose()
    }

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        if let Some(files) = self.retired.get() {
            return files.commit(checkpoint);
        }
        // Stored even if the shim is gone, because later daemons need it exactly then.
        let ours = || self.shims.are_ours();
        let kept = self.remains.keep_screen(&checkpoint.snapshot, checkpoint.quiet, &ours);
        if let Err(error) = kept {
            tracing::debug!(session = %self.session, %error, "its screen was not stored outside its shim");
        }
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = !checkpoint.quiet && !checkpoint.whole && self.owes(checkpoint.offset);
        let hurry = if waits { Hurry::Hurried } else { Hurry::Unhurried };
        let handover = store.hand_over(checkpoint, hurry)?;
        let files = [&handover.snapshot, &handover.segment].into_iter().flatten();
        let descriptors: Vec<_> = files.map(AsFd::as_fd).collect();
        self.link().say(&ToShim::Commit(handover.commit), &descriptors)?;
        self.committed.fetch_max(checkpoint.offset, Ordering::Relaxed);
        if checkpoint.quiet {
            self.front.forget();
        }
        Ok(())
    }

    fn remember(&self, note: Note, bytes: &[u8]) {
        let slot = recovered::slot_of(note);
        let bytes = &bytes[..bytes.len().min(Note::BYTES_MAX)];
        let told = match self.retired.get() {
            Some(files) => files.remember(note, bytes),
            None => self.link().say(&ToShim::Note(NoteFrame { slot, bytes }), &[]),
        };
        if let Err(error) = told {
            tracing::warn!(session = %self.session, ?note, %error, "a note was not stored");
        }
    }

    fn entrust(&self, identity: &[u8]) {
        // Another daemon may own the session by now and have renamed it.
        let ours = || self.shims.are_ours();
        if let Err(error) = self.remains.keep_identity(identity, &ours) {
            tracing::warn!(session = %self.session, %error, "its name was not stored outside its shim");
        }
    }

    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize> {
        let link = self.link();
        if link.standing().borrow().exit.is_some() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if link.presence() == ShimPresence::There {
            match link.input.append(readiness::now(), bytes, stamp) {
                Ok(count) => return Ok(count),
                Err(NotTaken::Outdated) => return Err(ErrorKind::PermissionDenied.into()),
                Err(NotTaken::Closed(InputClosed::Ended)) => {
                    return Err(ErrorKind::BrokenPipe.into());
                }
                Err(NotTaken::Closed(InputClosed::Closed)) => link.on_hang_up(),
            }
        }
        Err(if self.has_successor(&link) { ErrorKind::BrokenPipe } else { link.absence() }.into())
    }

    fn typed(&self) -> Option<u64> {
        self.link().input.typed()
    }

    async fn writable(&self) -> io::Result<()> {
        self.wait_for_room().await
    }

    /// The kernel lets either end of a terminal set its size.
    fn resize(&self, size: Size) -> io::Result<()> {
        let link = self.link();
        // Whoever serves the terminal now has set its own.
        if link.is_lost() || link.input.is_closed() {
            return Err(link.absence().into());
        }
        let terminal = self.open()?;
        // Otherwise the path may be that of another terminal by now.
        if !self.shim_lives() {
            return Err(ErrorKind::NotFound.into());
        }
        terminal::set_size(terminal.as_fd(), size.into())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Another daemon may own the session by now.
        if self.is_superseded() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let foreground = self.foreground().ok_or(io::ErrorKind::NotFound)?;
        processes::signal_group(self.leader, foreground, signal.number())
    }

    fn evidence(&self) -> io::Result<TerminalEvidence> {
        let modes = tcgetattr(self.open()?)?;
        Ok(TerminalEvidence::of(self.leader, self.foreground(), &modes))
    }

    fn leader_files(&self) -> Option<&LeaderFiles> {
        self.leader_files.as_ref()
    }

    fn hides_typing(&self) -> io::Result<bool> {
        // Who is in front costs more to ask than all the rest.
        let modes = tcgetattr(self.open()?)?;
        Ok(TerminalEvidence::of(self.leader, None, &modes).hides_typing())
    }

    fn unread(&self) -> io::Result<bool> {
        let in_memory = self.is_input_on_its_way() || self.link().input.is_blocked();
        Ok(in_memory || readiness::look(self.open()?.as_fd(), READABLE)? != 0)
    }

    fn idleness(&self) -> io::Result<Idleness> {
        let Some(group) = self.foreground() else { return Ok(Idleness::Works) };
        Ok(if self.unread()? { Idleness::Works } else { self.front.idleness(group) })
    }

    fn is_input_on_its_way(&self) -> bool {
        let link = self.link();
        link.presence() == ShimPresence::There && link.input.is_on_its_way()
    }

    fn ask_output_end(&self) -> io::Result<OutputEnd> {
        let link = self.link();
        match link.presence() {
            ShimPresence::There => Ok(OutputEnd::Asked(link.input.ask(readiness::now()))),
            ShimPresence::Silent | ShimPresence::Gone => Err(link.absence().into()),
        }
    }

    fn known_output_end(&self, question: u64) -> Option<io::Result<Option<u64>>> {
        let link = self.link();
        let known = *link.standing().borrow();
        self.answer_to(question, &link, known)
    }

    async fn output_end(&self, question: u64) -> io::Result<Option<u64>> {
        self.wait_for_answer(question).await
    }

    async fn exited(&self) -> Exit {
        self.wait_for_exit().await
    }

    async fn kill(&self) -> Result<(), KillError> {
        if self.is_superseded() {
            return Err(KillError::NotOurs);
        }
        // A stopped shim must run to report how the program ended.
        let _ = self.signal_shim(Signal::Continue);
        kill::end_tree(Tree {
            session: self.session,
            leader: self.leader,
            started: self.started,
            foreground: self.foreground(),
            shim: Some(self.shim),
        })
        .await
    }

    fn is_silent(&self) -> bool {
        self.link().presence() == ShimPresence::Silent
    }

    async fn fell_silent(&self) {
        self.wait_for_silence().await;
    }

    /// A lost lock means that another daemon may exist. A closed connection means that the shim may serve it.
    fn is_superseded(&self) -> bool {
        !self.shims.are_ours() && self.shim_lives() && self.link().is_lost()
    }

    async fn returned(&self) {
        self.ask_until_answered().await;
    }

    fn retire(&self) -> io::Result<bool> {
        self.replace_shim()
    }

    async fn vanished(&self) {
        let ended = self.shim_ends().await;
        // If another daemon owns the session, its shim must stay.
        if ended.is_err() && !self.is_superseded() {
            let (session, shim) = (self.session, self.shim.pid);
            tracing::error!(%session, %shim, "its shim does not end; it keeps running");
        }
    }

    fn forget(&self) {
        if self.is_superseded() {
            return;
        }
        let told = self.link().say(&ToShim::End, &[]);
        if !self.shims.are_ours() {
            return;
        }
        if told.is_err() {
            self.end_silent_shim();
        }
        self.remains.clear();
    }
}
