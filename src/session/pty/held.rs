//! A terminal that another process holds, so that it outlives the daemon: the daemon's end of it.
//!
//! It knows how to speak with a shim and nothing of what a screen or a lease is. Output is read
//! out of memory that the shim writes; whatever the shim keeps for daemons to come is written
//! into memory that it is handed.

pub mod contact;
mod joining;
mod link;
pub mod living;
pub mod options;
pub mod recovered;
mod silence;
mod store;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::libc;
use nix::sys::termios::tcgetattr;
use tokio::io::unix::AsyncFd;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::core::frame::{Exit, Size};
use crate::core::ids::SessionId;
use crate::session::pty::held::link::{Link, Presence, Room};
use crate::session::pty::held::options::Shims;
use crate::session::pty::held::store::Store;
use crate::session::pty::kill::{self, KillError, Shim, Tree};
use crate::session::pty::processes::{self, Process};
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::signal::Signal;
use crate::session::pty::{Checkpoint, Evidence, Note, Output, ProcessId, Pty, READ_MAX, Stamp};
use crate::shim::readiness::{self, READABLE};
use crate::shim::ring::{Reader, Unread};
use crate::shim::terminal;
use crate::shim::wire::from_shim::Outcome;
use crate::shim::wire::to_shim::{Input, ToShim};
use crate::shim::wire::{INPUT_MAX, Note as WireNote};

/// Which part of the ring may be uncommitted before a checkpoint is due.
const OWED_PART: u64 = 4;

/// How long a shim whose connection was closed may take to end, if it ends.
const SHIM_END_MAX: Duration = Duration::from_millis(500);

/// The daemon's end of a terminal that another process holds.
///
/// Dropping it ends nothing: the program goes on, and another daemon may come.
#[derive(Debug)]
pub struct HeldPty {
    session: SessionId,
    socket: PathBuf,
    shims: Shims,
    remains: Remains,
    /// Another one after the shim fell silent and was come to again.
    link: Mutex<Arc<Link>>,
    ring: Reader,
    bell: AsyncFd<OwnedFd>,
    /// Up to where checkpoints were handed over.
    committed: AtomicU64,
    store: Mutex<Store>,
    leader: ProcessId,
    /// When the leader started, in clock ticks since boot.
    started: u64,
    shim: Shim,
    /// Readable once the shim has ended.
    shim_ended: AsyncFd<OwnedFd>,
    /// The other end of the terminal.
    terminal: PathBuf,
}

impl HeldPty {
    /// The process that holds the terminal.
    pub fn shim(&self) -> ProcessId {
        self.shim.pid
    }

    /// The process the session was started with.
    pub fn leader(&self) -> ProcessId {
        self.leader
    }

    /// Where the shim listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the end of a shim that was told to end.
    async fn shim_ends(&self) -> Result<(), Elapsed> {
        timeout(SHIM_END_MAX, self.shim_ended.readable()).await.map(drop)
    }

    fn shim_lives(&self) -> bool {
        readiness::look(self.shim_ended.get_ref().as_fd(), READABLE) == Ok(0)
    }

    /// Notes that a shim which has hung up listens to the daemon that has the place of this one.
    fn mind_successor(&self, link: &Link) {
        if link.presence() == Presence::Silent && self.has_successor(link) {
            link.lose(Presence::Gone);
        }
    }

    /// Whether the shim has hung up on this daemon, which has lost its lock, and lives.
    fn has_successor(&self, link: &Link) -> bool {
        link.has_hung_up() && self.is_superseded()
    }

    /// Hears what the shim said last, once it has ended.
    fn on_shim_ended(&self, link: &Link) {
        link.hear_all();
        link.lose(Presence::Gone);
    }

    fn foreground(&self) -> Option<ProcessId> {
        let leader = Process::find(self.leader)?;
        leader.foreground.filter(|_| leader.started == self.started)
    }

    /// Opens the terminal itself, to ask the kernel and not the shim. It keeps its number for as long
    /// as it is held; whoever kept it open would hide its end.
    fn open(&self) -> io::Result<File> {
        if self.link().presence() == Presence::Gone {
            return Err(io::ErrorKind::NotFound.into());
        }
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open(&self.terminal)
    }
}

impl Pty for HeldPty {
    async fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<Output> {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            // First what was said, then the ring: what ended writes no more.
            self.mind_successor(&link);
            let known = *standing.borrow_and_update();
            match self.ring.copy(offset, READ_MAX, into) {
                Ok(0) if known.exit.is_some() || known.presence == Presence::Gone => {
                    return Ok(Output::End);
                }
                Ok(0) => {}
                Ok(count) => return Ok(Output::Bytes(count)),
                Err(error @ Unread::NotThere) => {
                    return Err(io::Error::new(ErrorKind::InvalidInput, error));
                }
                Err(error @ Unread::Damaged) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
            tokio::select! {
                // It rings anew after each time that more was written, so it is enough to forget
                // that it rang before looking again.
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

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn commit(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        // Also when the shim is gone: this is for those who come when it is.
        let ours = || self.shims.are_ours();
        let kept = self.remains.keep_screen(&checkpoint.snapshot, checkpoint.quiet, &ours);
        if let Err(error) = kept {
            tracing::debug!(session = %self.session, %error, "its screen ends with its shim");
        }
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let handover = store.hand_over(checkpoint)?;
        let files = [&handover.snapshot, &handover.segment].into_iter().flatten();
        let descriptors: Vec<_> = files.map(AsFd::as_fd).collect();
        self.link().say(&ToShim::Commit(handover.commit), &descriptors)?;
        self.committed.fetch_max(checkpoint.offset, Ordering::Relaxed);
        Ok(())
    }

    fn remember(&self, note: Note, bytes: &[u8]) {
        let slot = recovered::slot_of(note);
        let bytes = &bytes[..bytes.len().min(Note::BYTES_MAX)];
        if let Err(error) = self.link().say(&ToShim::Note(WireNote { slot, bytes }), &[]) {
            tracing::warn!(session = %self.session, ?note, %error, "a note was not kept");
        }
    }

    fn entrust(&self, identity: &[u8]) {
        // Another daemon may have the session by now, and have renamed it.
        let ours = || self.shims.are_ours();
        if let Err(error) = self.remains.keep_identity(identity, &ours) {
            tracing::warn!(session = %self.session, %error, "its name ends with its shim");
        }
    }

    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize> {
        let link = self.link();
        if link.standing().borrow().exit.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let input = Input {
            sequence: 0,
            epoch: stamp.epoch.map_or(0, |epoch| epoch.0),
            answered: stamp.answered,
            write: stamp.write.map_or([0; 16], |write| write.0),
            bytes: &bytes[..bytes.len().min(INPUT_MAX)],
        };
        let ended = |error| {
            let told = link.standing().borrow().exit.is_some();
            if told || self.has_successor(&link) { io::ErrorKind::BrokenPipe.into() } else { error }
        };
        match link.input(input).map_err(ended)? {
            Outcome::Bytes(count) => {
                let full = count == 0 && !bytes.is_empty();
                link.set_room(if full { Room::Full } else { Room::Free });
                Ok(count as usize)
            }
            Outcome::Ended => Err(io::ErrorKind::BrokenPipe.into()),
            Outcome::Refused => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            let known = *standing.borrow_and_update();
            // Whoever tries to write then is told that it is over.
            if known.exit.is_some() || known.presence == Presence::Gone {
                return Ok(());
            }
            match (known.presence, known.room) {
                (Presence::Silent, _) | (_, Room::Awaited) => link.hear(&mut standing).await?,
                (_, Room::Free) => return Ok(()),
                (_, Room::Full) => {
                    link.set_room(Room::Awaited);
                    // Should it be silent, that is known next.
                    let _ = link.say(&ToShim::WantWritable, &[]);
                }
            }
        }
    }

    /// A shim does not say whether the terminal took the size, so the terminal is asked after it has
    /// answered what came next.
    fn resize(&self, size: Size) -> io::Result<()> {
        let link = self.link();
        link.say(&ToShim::Resize(size.into()), &[])?;
        link.input(Input::NOTHING)?;
        match terminal::size(self.open()?.as_fd())? == size.into() {
            true => Ok(()),
            false => Err(io::Error::other("the terminal has not taken the size")),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Another daemon may have the session by now.
        if self.is_superseded() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let foreground = self.foreground().ok_or(io::ErrorKind::NotFound)?;
        processes::signal_group(self.leader, foreground, signal.number())
    }

    fn evidence(&self) -> io::Result<Evidence> {
        let modes = tcgetattr(self.open()?)?;
        Ok(Evidence::of(self.leader, self.foreground(), &modes))
    }

    fn unread(&self) -> io::Result<bool> {
        Ok(readiness::look(self.open()?.as_fd(), READABLE)? != 0)
    }

    /// Asks for an answer twice. The shim takes what the terminal has after each frame, so that by
    /// the second answer all is in the ring that was there before the first.
    fn all_read(&self, offset: u64) -> io::Result<bool> {
        let link = self.link();
        for _ in 0..2 {
            link.input(Input::NOTHING)?;
        }
        Ok(self.ring.head() == offset)
    }

    async fn exited(&self) -> Exit {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            self.mind_successor(&link);
            let known = *standing.borrow_and_update();
            match known.exit {
                Some((exit, _)) => return exit,
                None if known.presence == Presence::Gone => break,
                None => {}
            }
            tokio::select! {
                heard = link.hear(&mut standing) => if heard.is_err() { break },
                ended = self.shim_ended.readable() => match ended {
                    Ok(mut ended) => {
                        ended.retain_ready();
                        self.on_shim_ended(&link);
                    }
                    Err(_) => break,
                },
            }
        }
        Exit::Lost
    }

    async fn kill(&self) -> Result<(), KillError> {
        if self.is_superseded() {
            return Err(KillError::NotOurs);
        }
        // One that was stopped must go on, to tell how the program ended.
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
        self.is_left_alone()
    }

    async fn fell_silent(&self) {
        let mut standing = self.link().standing();
        // The connection that tells lives at least as long as this does.
        let _ = standing.wait_for(|known| known.presence == Presence::Silent).await;
    }

    /// A lock that is not ours says that there may be another daemon, a connection that was closed that
    /// the shim may listen to it.
    fn is_superseded(&self) -> bool {
        !self.shims.are_ours() && self.shim_lives() && self.link().is_lost()
    }

    async fn returned(&self) {
        self.ask_until_answered().await;
    }

    async fn vanished(&self) {
        let ended = self.shim_ends().await;
        // Where another daemon has the session, its shim stays, as it must.
        if ended.is_err() && !self.is_superseded() {
            let (session, shim) = (self.session, self.shim.pid);
            tracing::error!(%session, %shim, "its shim does not end, and is left behind");
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
