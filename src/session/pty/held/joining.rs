//! Creates the daemon's side of a held terminal: starts a shim, or attaches to one that runs.
//! A failure leaves no unknown program behind.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use tokio::io::Interest;

use crate::core::ids::SessionId;
use crate::session::pty::ProcessId;
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::condemned::Shim;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact::{self, AttachError, Contact, Told};
use crate::session::pty::held::link::{Link, exit_of};
use crate::session::pty::held::options::{HoldOptions, Shims, socket_of};
use crate::session::pty::held::recovered::{Recovered, Snapshot};
use crate::session::pty::held::store::{self, Store};
use crate::session::pty::processes::Process;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::spare::{OF_A_SESSION, spare_descriptors};
use crate::session::pty::spawn::{self, SpawnError};
use crate::session::pty::watch::watch;
use crate::shim::ring::Reader;
use crate::shim::wire::to_shim::{Start, ToShim};

impl HeldPty {
    /// Starts a shim and the program in its terminal.
    ///
    /// Must be called inside a runtime. Blocks for two forks and execs.
    ///
    /// # Errors
    /// If the start failed; nothing is left behind then.
    pub fn start(spec: &SpawnSpec, options: &HoldOptions) -> Result<Self, SpawnError> {
        let start = Start {
            window: spec.size.into(),
            ring_bytes: options.ring_bytes,
            unread: options.unread,
            orphan_ttl_ms: options.orphan_ttl.map_or(0, |ttl| (ttl.as_millis() as u64).max(1)),
            descriptors: spawn::descriptors_of_children().unwrap_or(0),
        };
        let shims = &options.shims;
        if !shims.are_ours() {
            return Err(SpawnError::Superseded);
        }
        check_room().map_err(SpawnError::Shim)?;
        make_again(&shims.directory)?;
        let socket = socket_of(&shims.directory, spec.session);
        let program = spawn::program_of(spec);
        let contact = contact::start(&options.program, &socket, start, &program);
        let Contact { socket: connection, told } =
            contact.map_err(|error| error.of(spec, &shims.directory))?;
        let link = Link::new(connection, None).map(Arc::new).map_err(SpawnError::Shim)?;
        match Self::of(spec.session, shims, Arc::clone(&link), told) {
            Ok((pty, _)) => Ok(pty),
            Err(error) => {
                // A shim that cannot receive this is gone.
                let _ = link.say(&ToShim::End, &[]);
                Err(SpawnError::Shim(error))
            }
        }
    }

    /// Attaches to the shim of a session that another daemon, or this one, has left. The shim drops any
    /// earlier daemon.
    ///
    /// Must be called inside a runtime. Blocks until the shim answers, at most 2 s.
    ///
    /// # Errors
    /// If the shim cannot be reached.
    pub fn attach(shims: &Shims, session: SessionId) -> Result<(Self, Recovered), AttachError> {
        let socket = socket_of(&shims.directory, session);
        let Contact { socket: connection, told } = contact::attach(&socket)?;
        let exit = told.attached.ended.map(|ended| (exit_of(ended), told.attached.head));
        Link::new(connection, exit)
            .and_then(|link| Self::of(session, shims, Arc::new(link), told))
            .map_err(|source| AttachError::Memory { path: socket, source })
    }

    fn of(
        session: SessionId,
        shims: &Shims,
        link: Arc<Link>,
        told: Told,
    ) -> io::Result<(Self, Recovered)> {
        let socket = socket_of(&shims.directory, session);
        let Told { attached, mut descriptors, notes } = told;
        let mut take = || descriptors.take().ok_or(io::ErrorKind::InvalidData);
        let ring = Reader::open(take()?, attached.ring_bytes as usize)?;
        let bell = watch(take()?, Interest::READABLE)?;
        let mut history = store::Found::default();
        for bytes in attached.segments.as_slice() {
            history.read(session, take()?, *bytes)?;
        }
        let mut snapshots = Vec::new();
        for offset in attached.snapshots.as_slice() {
            let bytes = store::read_snapshot(session, take()?)?;
            snapshots.push(Snapshot { offset: *offset, bytes });
        }
        let shim = Shim { pid: ProcessId(attached.shim.pid), started: attached.shim.started };
        let process = Process::find(shim.pid).filter(|found| found.started == shim.started);
        let process = process.ok_or(io::ErrorKind::NotFound)?;
        let pty = Self {
            session,
            remains: Remains::beside(&socket),
            socket,
            shims: shims.clone(),
            link: Mutex::new(link),
            ring,
            bell,
            committed: AtomicU64::new(attached.committed),
            store: Mutex::new(Store::behind(history.extents.into_iter())),
            leader: ProcessId(attached.leader.pid),
            started: attached.leader.started,
            shim,
            shim_ended: watch(process.open()?, Interest::READABLE)?,
            terminal: PathBuf::from(format!("/dev/pts/{}", attached.terminal)),
        };
        let mut recovered = Recovered::of(&attached, notes, snapshots, history.segments);
        recovered.history_damaged = history.damaged;
        Ok((pty, recovered))
    }
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
