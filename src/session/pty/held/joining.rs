//! Creates the daemon's side of a held terminal: starts a shim, or attaches to one that runs. Retries a silent one:
//! a program in the session can stop its shim for any time, and the daemon keeps the session meanwhile.
//! A failure leaves no unknown program behind.

use std::fs;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use tokio::io::Interest;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::core::frame::Exit;
use crate::core::ids::{RowNumber, SessionId};
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::condemned::Shim;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact::{self, AttachError, Contact};
use crate::session::pty::held::input_line::ShimInput;
use crate::session::pty::held::link::{ShimLink, exit_of};
use crate::session::pty::held::recovered::{Notes, Recovered, ScreenSnapshot};
use crate::session::pty::held::shims::{HoldOptions, HoldingLimits, Shims, socket_of};
use crate::session::pty::held::store::{self, Extent, Store};
use crate::session::pty::leader_files::LeaderFiles;
use crate::session::pty::lone_process::LastFront;
use crate::session::pty::processes::Process;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::signal::Signal;
use crate::session::pty::spawn::{self, OF_A_SESSION, SpawnError, spare_descriptors};
use crate::session::pty::watch::watch;
use crate::session::pty::{ProcessId, Pty};
use crate::shim::ring::RingReader;
use crate::shim::socket::Descriptors;
use crate::shim::wire::from_shim::Attached;
use crate::shim::wire::to_shim::Start;

/// The time between two attempts.
const ASK_AGAIN: Duration = Duration::from_millis(500);

impl HeldPty {
    /// Starts a shim and the program in its terminal.
    ///
    /// Must be called inside a runtime. Blocks until the program was started.
    pub fn start(spec: &SpawnSpec, options: &HoldOptions) -> Result<Self, SpawnError> {
        let HoldingLimits { orphan_ttl, ring_bytes, unread } = options.limits;
        let start = Start {
            window: spec.size.into(),
            ring_bytes,
            unread,
            orphan_ttl_ms: orphan_ttl.map_or(0, |ttl| (ttl.as_millis() as u64).max(1)),
            descriptors: spawn::descriptors_of_children().unwrap_or(0),
        };
        let shims = &options.shims;
        if !shims.are_ours() {
            return Err(SpawnError::Superseded);
        }
        check_room().map_err(SpawnError::Shim)?;
        make_again(&shims.directory)?;
        let socket = socket_of(&shims.directory, spec.session);
        // Nothing was noted, so the session ends with its connection if this fails.
        let contact = contact::start(&options.starter, &socket, start, spec)?;
        Self::of(spec.session, shims, contact).map(|(pty, _)| pty).map_err(SpawnError::Shim)
    }

    /// Attaches to the shim of a session that another daemon, or this one, has left. The shim drops any
    /// earlier daemon.
    ///
    /// Must be called inside a runtime. Blocks until the shim answers, at most 2 s.
    pub fn attach(shims: &Shims, session: SessionId) -> Result<(Self, Recovered), AttachError> {
        let socket = socket_of(&shims.directory, session);
        Self::of(session, shims, contact::attach(&socket)?)
            .map_err(|source| AttachError::Memory { path: socket, source })
    }

    fn of(session: SessionId, shims: &Shims, contact: Contact) -> io::Result<(Self, Recovered)> {
        let socket = socket_of(&shims.directory, session);
        let Joined { ring, bell, link, attached, mut descriptors, notes } = Joined::of(contact)?;
        let mut take = || descriptors.take().ok_or(io::ErrorKind::InvalidData);
        let mut history = store::FoundSegments::default();
        for bytes in attached.segments.as_slice() {
            history.read(session, take()?, *bytes)?;
        }
        let mut snapshots = Vec::new();
        for offset in attached.snapshots.as_slice() {
            let bytes = store::read_snapshot(session, &take()?.into())?;
            snapshots.push(ScreenSnapshot { offset: *offset, bytes });
        }
        let shim = Shim { pid: ProcessId(attached.shim.pid), started: attached.shim.started };
        let process = Process::find(shim.pid).filter(|found| found.started == shim.started);
        let process = process.ok_or(io::ErrorKind::NotFound)?;
        let leader = ProcessId(attached.leader.pid);
        let pty = Self {
            session,
            remains: Remains::beside(&socket),
            socket,
            shims: shims.clone(),
            link: Mutex::new(Arc::new(link)),
            ring: RingReader::open(ring, attached.ring_bytes as usize)?,
            bell: watch(bell, Interest::READABLE)?,
            committed: AtomicU64::new(attached.committed),
            store: Mutex::new(Store::behind(history.extents.into_iter())),
            leader,
            leader_files: LeaderFiles::open(leader, attached.leader.started),
            front: LastFront::default(),
            started: attached.leader.started,
            shim,
            shim_ended: watch(process.open()?, Interest::READABLE)?,
            terminal: PathBuf::from(format!("/dev/pts/{}", attached.terminal)),
            retired: OnceLock::new(),
        };
        let (segments, history_damaged) = (history.segments, history.damaged);
        Ok((pty, Recovered { attached, notes, snapshots, segments, history_damaged }))
    }

    /// Retries a silent shim until it answers or has ended.
    pub(super) async fn ask_until_answered(&self) {
        while self.is_silent() {
            // A shim that serves another daemon must not be taken back.
            self.mind_successor(&self.link());
            if !self.is_silent() {
                return;
            }
            let asking_again = async {
                sleep(ASK_AGAIN).await;
                let (shims, socket) = (self.shims.clone(), self.socket.clone());
                let ask = move || shims.are_ours().then(|| contact::attach(&socket));
                spawn_blocking(ask).await
            };
            tokio::select! {
                _ = self.shim_ended.readable() => self.on_shim_ended(&self.link()),
                answered = asking_again => if let Ok(Some(Ok(contact))) = answered
                    && let Err(error) = Joined::of(contact).and_then(|joined| self.resume(joined))
                {
                    tracing::warn!(session = %self.session, %error, "another shim answers for it");
                }
            }
        }
    }

    /// Continues with a new connection to the same shim. What it stored last is unknown.
    pub(super) fn resume(&self, joined: Joined) -> io::Result<()> {
        let Joined { link, attached, .. } = joined;
        let (pid, started) = (attached.shim.pid, attached.shim.started);
        if (pid, started) != (self.shim.pid.0, self.shim.started) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let segments = attached.segments.as_slice().iter();
        let extents = segments.map(|bytes| Extent::found(RowNumber(0), *bytes, 0));
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Store::behind(extents);
        self.committed.store(attached.committed, Ordering::Relaxed);
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(link);
        Ok(())
    }

    /// Signals the shim process, if it still runs.
    pub(super) fn signal_shim(&self, signal: Signal) -> io::Result<()> {
        let Shim { pid, started } = self.shim;
        let process = Process::find(pid).filter(|found| found.started == started);
        process.ok_or(io::ErrorKind::NotFound)?.open()?.signal(signal.number())
    }

    /// Kills a shim that cannot be asked to end.
    pub(super) fn end_silent_shim(&self) {
        // The session is forgotten, so the shim's content has no further use.
        if let Err(error) = self.signal_shim(Signal::Kill) {
            tracing::debug!(session = %self.session, %error, "its shim is gone");
        }
        let _ = fs::remove_file(&self.socket);
    }
}

/// What came with a connection.
pub(super) struct Joined {
    ring: OwnedFd,
    bell: OwnedFd,
    pub(super) link: ShimLink,
    pub(super) attached: Box<Attached>,
    /// The segments and the snapshots.
    pub(super) descriptors: Descriptors,
    pub(super) notes: Notes,
}

impl Joined {
    pub(super) fn of(contact: Contact) -> io::Result<Self> {
        let Contact { socket, attached, mut descriptors, notes } = contact;
        let mut take = || descriptors.take().ok_or(io::ErrorKind::InvalidData);
        let (ring, bell) = (take()?, take()?);
        let input = ShimInput::new(take()?, take()?, attached.epoch, attached.typed)?;
        let link = ShimLink::new(socket, input, exit_in(&attached))?;
        Ok(Self { ring, bell, link, attached, descriptors, notes })
    }
}

/// How the program ended, and where its output ends, if the shim knew that when it was attached to.
fn exit_in(attached: &Attached) -> Option<(Exit, u64)> {
    attached.ended.map(|ended| (exit_of(ended), attached.head))
}

/// Checks that enough file descriptors are free for another session. Some must stay free, because ending a
/// session needs them too.
fn check_room() -> io::Result<()> {
    /// A scan for the processes of a session opens a few descriptors.
    const FREE_MIN: usize = OF_A_SESSION + 16;
    if spare_descriptors(FREE_MIN) < FREE_MIN { Err(Errno::EMFILE.into()) } else { Ok(()) }
}

/// Creates the shim directory again if it was removed.
fn make_again(directory: &Path) -> Result<(), SpawnError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| SpawnError::Place { path: directory.to_owned(), source })
}
