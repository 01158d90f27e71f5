//! Makes first contact with a shim: starts one or attaches to one that runs. Blocks for milliseconds.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

use crate::session::pty::ProcessId;
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::held::input_line::PATIENCE;
use crate::session::pty::held::recovered::Notes;
use crate::session::pty::held::shims;
use crate::session::pty::held::starter::{OrderedShim, ShimStarter};
use crate::session::pty::spawn::{self, SpawnError};
use crate::shim::memory;
use crate::shim::readiness::{self, READABLE};
use crate::shim::socket::{self, Descriptors, Other};
use crate::shim::wire::from_shim::{Attached, FromShim, StartFailure, StartStage};
use crate::shim::wire::to_shim::{Start, ToShim};
use crate::shim::wire::{Frame, Malformed, VERSION, frame};

/// How long a shim may take to start its program.
const START_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No process listens: the shim has ended, or was killed and left its socket.
    #[error("no shim at {}: {source}", path.display())]
    Gone { path: PathBuf, source: io::Error },
    /// Another process listens there, not the shim of this session.
    #[error("process {pid} listens at {} and is not the shim of this session", path.display())]
    Impostor { path: PathBuf, pid: i32 },
    #[error("the shim at {} does not answer", path.display())]
    Silent { path: PathBuf },
    #[error("the shim at {} says what cannot be understood: {source}", path.display())]
    Malformed { path: PathBuf, source: Malformed },
    /// The session was started by an earlier release, whose protocol this one does not speak.
    #[error("the session is of a former version of termgate (its shim at {} speaks version {version})", path.display())]
    Former { path: PathBuf, version: u16 },
    #[error("cannot look at what the shim at {} keeps: {source}", path.display())]
    Memory { path: PathBuf, source: io::Error },
}

impl AttachError {
    /// Whether the shim was not found at its socket. It may still run elsewhere.
    pub fn is_of_place(&self) -> bool {
        match self {
            Self::Gone { source, .. } => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
                    || is_of_other_kind(source)
            }
            Self::Impostor { .. } => true,
            Self::Silent { .. }
            | Self::Malformed { .. }
            | Self::Former { .. }
            | Self::Memory { .. } => false,
        }
    }
}

/// Whether the path is a socket of another type or a broken link.
fn is_of_other_kind(error: &io::Error) -> bool {
    matches!(Errno::from_raw(error.raw_os_error().unwrap_or(0)), Errno::EPROTOTYPE | Errno::ELOOP)
}

#[derive(Debug)]
pub(super) struct Contact {
    pub(super) socket: OwnedFd,
    pub(super) attached: Box<Attached>,
    pub(super) descriptors: Descriptors,
    pub(super) notes: Notes,
}

/// What a shim reported, with the program and the shim's socket as context.
fn not_started(failure: StartFailure, spec: &SpawnSpec, socket: &Path) -> SpawnError {
    let error = io::Error::from_raw_os_error(failure.errno);
    match failure.stage {
        StartStage::Shim if is_of_place(&error) => {
            let directory = socket.parent().unwrap_or(socket);
            SpawnError::Place { path: directory.to_owned(), source: error }
        }
        StartStage::Shim => SpawnError::Shim(error),
        StartStage::Terminal => SpawnError::Terminal(error),
        StartStage::Program => SpawnError::program(spec, error),
        StartStage::Sandbox => SpawnError::Sandbox(error),
    }
}

/// Whether the shim could not create its socket, the only file that it makes.
fn is_of_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
    )
}

/// Starts a shim and its program. Tries once more if whoever forks shims has ended or was given up with this one: a
/// shim that has no socket yet has started nothing.
pub(super) fn start(
    starter: &ShimStarter,
    path: &Path,
    start: Start,
    spec: &SpawnSpec,
) -> Result<Contact, SpawnError> {
    let started = start_once(starter, path, start, spec);
    match started {
        Err(SpawnError::Shim(error))
            if error.kind() == ErrorKind::UnexpectedEof && !path.exists() =>
        {
            start_once(starter, path, start, spec)
        }
        started => started,
    }
}

fn start_once(
    starter: &ShimStarter,
    path: &Path,
    start: Start,
    spec: &SpawnSpec,
) -> Result<Contact, SpawnError> {
    let mut room = frame();
    let OrderedShim { connection: socket, forked_by } =
        starter.fork(path).map_err(SpawnError::Shim)?;
    let mut descriptors = Descriptors::default();
    let until = readiness::now() + START_MAX;
    let answered = say_start(&socket, start, spec, &mut room)
        .and_then(|()| receive(&socket, &mut room, &mut descriptors, until));
    let error = match answered {
        Ok(Some(length)) => match answer(&room[..length]) {
            Ok(Ok(attached)) => {
                return Ok(Contact { socket, attached, descriptors, notes: Notes::default() });
            }
            Ok(Err(failure)) => return Err(not_started(failure, spec, path)),
            Err(error) => io::Error::other(error),
        },
        Ok(None) => ErrorKind::TimedOut.into(),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::UnexpectedEof) {
        starter.give_up(forked_by);
    }
    // The program may run already, and no daemon would know of it.
    let length = ToShim::End.encode(&mut room);
    let _ = socket::send(socket.as_fd(), &room[..length], &[]);
    Err(SpawnError::Shim(error))
}

/// Tells a shim what to start. One that could not be forked has said why before it hung up.
fn say_start(socket: &OwnedFd, start: Start, spec: &SpawnSpec, room: &mut Frame) -> io::Result<()> {
    let text = memory::create(c"termgate-program", 0)?;
    text.write_all_at(&spawn::program_of(spec).encode(), 0)?;
    let length = ToShim::Start(start).encode(room);
    match socket::send(socket.as_fd(), &room[..length], &[text.as_fd()]) {
        Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Attaches to the shim that listens at `path`. The shim drops any earlier daemon.
pub(super) fn attach(path: &Path) -> Result<Contact, AttachError> {
    let gone = |source| AttachError::Gone { path: path.to_owned(), source };
    let silent = || AttachError::Silent { path: path.to_owned() };
    let malformed = |source| AttachError::Malformed { path: path.to_owned(), source };
    let socket = socket::connect_to(path).map_err(gone)?;
    let listener = listener_of(&socket, path)?;
    let mut room = frame();
    let length = ToShim::Attach { version: VERSION }.encode(&mut room);
    let sent = socket::send(socket.as_fd(), &room[..length], &[]);
    sent.map_err(|errno| gone(errno.into()))?;
    let mut descriptors = Descriptors::default();
    let until = readiness::now() + PATIENCE;
    let length = receive(&socket, &mut room, &mut descriptors, until);
    let length = length.map_err(gone)?.ok_or_else(silent)?;
    let attached = match answer(&room[..length]).map_err(malformed)? {
        Ok(attached) if attached.version < VERSION => {
            return Err(AttachError::Former { path: path.to_owned(), version: attached.version });
        }
        // A shim with a false pid would make the daemon signal and kill another process.
        Ok(attached) if listener == attached.shim.pid => attached,
        Ok(_) | Err(_) => return Err(malformed(Malformed::Value)),
    };
    let mut notes = Notes::default();
    for _ in 0..attached.notes {
        let length = receive(&socket, &mut room, &mut Descriptors::default(), until);
        let length = length.map_err(gone)?.ok_or_else(silent)?;
        if let Some(FromShim::Note(note)) = FromShim::decode(&room[..length]).map_err(malformed)? {
            notes.set(note);
        }
    }
    Ok(Contact { socket, attached, descriptors, notes })
}

/// The process that listens at `path`, if it is the right shim.
///
/// This process itself is accepted: it listens there only if it imitates the shim, as tests do.
fn listener_of(socket: &OwnedFd, path: &Path) -> Result<i32, AttachError> {
    let silent = || AttachError::Silent { path: path.to_owned() };
    let listener = Other::of(socket.as_fd()).map_err(|_| silent())?;
    let pid = listener.pid;
    if pid == std::process::id().cast_signed() {
        return Ok(pid);
    }
    match shims::holds(ProcessId(pid), path) {
        Some(true) if listener.lives() => Ok(pid),
        Some(false) if listener.lives() => {
            Err(AttachError::Impostor { path: path.to_owned(), pid })
        }
        Some(_) | None => Err(silent()),
    }
}

pub(super) fn answer(frame: &[u8]) -> Result<Result<Box<Attached>, StartFailure>, Malformed> {
    match FromShim::decode(frame)? {
        Some(FromShim::Attached(attached)) => Ok(Ok(attached)),
        Some(FromShim::Failed(failure)) => Ok(Err(failure)),
        Some(FromShim::Exited { .. } | FromShim::Note(_)) | None => Err(Malformed::Value),
    }
}

/// Receives a frame; `None` at the deadline `until`, on the clock of [`readiness::now`].
fn receive(
    socket: &OwnedFd,
    room: &mut Frame,
    descriptors: &mut Descriptors,
    until: Duration,
) -> io::Result<Option<usize>> {
    loop {
        match socket::receive(socket.as_fd(), room, descriptors) {
            Ok(length @ 1..) => return Ok(Some(length)),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            // The kernel reports unread frames of ours once, before the last ones of the other side.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNRESET) => {}
            Err(errno) => return Err(errno.into()),
        }
        let left = until.saturating_sub(readiness::now());
        if left.is_zero() {
            return Ok(None);
        }
        readiness::wait([(Some(socket.as_fd()), READABLE)], Some(left))?;
    }
}
