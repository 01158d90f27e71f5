//! Makes first contact with a shim: starts one or attaches to one that runs. Blocks for milliseconds.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;

use crate::session::pty::ProcessId;
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::held::link::{PATIENCE, frame};
use crate::session::pty::held::living;
use crate::session::pty::held::recovered::Notes;
use crate::session::pty::spawn::SpawnError;
use crate::shim::program::Program;
use crate::shim::readiness::{self, READABLE};
use crate::shim::socket::{self, Descriptors, Other};
use crate::shim::wire::from_shim::{Attached, Failed, FromShim, Stage};
use crate::shim::wire::to_shim::{Start, ToShim};
use crate::shim::wire::{Frame, Malformed, VERSION};
use crate::shim::{NAME, WORD, memory};

/// How long a shim may take to start its program.
const START_MAX: Duration = Duration::from_secs(10);

/// Why a shim cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No process listens: the shim has ended, or was killed and left its socket.
    #[error("nobody holds a terminal at {}: {source}", path.display())]
    Gone { path: PathBuf, source: io::Error },
    /// Another process listens there, not the shim of this session.
    #[error("process {pid} listens at {} and is not the shim of this session", path.display())]
    Impostor { path: PathBuf, pid: i32 },
    /// The shim runs but does not answer.
    #[error("the shim at {} does not answer", path.display())]
    Silent { path: PathBuf },
    #[error("the shim at {} says what cannot be understood: {source}", path.display())]
    Malformed { path: PathBuf, source: Malformed },
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
            Self::Silent { .. } | Self::Malformed { .. } | Self::Memory { .. } => false,
        }
    }
}

/// Whether the path is a socket of another type or a broken link.
fn is_of_other_kind(error: &io::Error) -> bool {
    matches!(Errno::from_raw(error.raw_os_error().unwrap_or(0)), Errno::EPROTOTYPE | Errno::ELOOP)
}

/// A connection to a shim that has answered.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) socket: OwnedFd,
    pub(super) told: Told,
}

/// What a shim sent at first contact.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) attached: Attached,
    pub(super) descriptors: Descriptors,
    pub(super) notes: Notes,
}

/// Why a start failed.
#[derive(Debug)]
pub(super) enum StartError {
    /// The shim could not be started.
    Shim(io::Error),
    /// The shim reported what failed.
    Failed(Failed),
}

impl StartError {
    /// Converts the error, with the program and the shim directory as context.
    pub(super) fn of(self, spec: &SpawnSpec, directory: &Path) -> SpawnError {
        match self {
            Self::Shim(error) => SpawnError::Shim(error),
            Self::Failed(failed) => {
                let error = io::Error::from_raw_os_error(failed.errno);
                match failed.stage {
                    Stage::Shim if is_of_place(&error) => {
                        SpawnError::Place { path: directory.to_owned(), source: error }
                    }
                    Stage::Shim => SpawnError::Shim(error),
                    Stage::Terminal => SpawnError::Terminal(error),
                    Stage::Program => SpawnError::program(spec, error),
                }
            }
        }
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

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Shim(error)
    }
}

/// Starts a shim that listens at `path`, and its program.
pub(super) fn start(
    executable: &Path,
    path: &Path,
    start: Start,
    program: &Program,
) -> Result<Contact, StartError> {
    let text = memory::create(c"termgate-program", 0)?;
    text.write_all_at(&program.encode(), 0)?;
    let (ours, theirs) = socket::pair()?;
    let mut child = Command::new(executable)
        .arg0(NAME)
        .arg(WORD)
        .arg(path)
        .env_clear()
        .stdin(Stdio::from(File::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The process exits as soon as it has forked the shim.
    if !child.wait()?.success() {
        return Err(StartError::Shim(Errno::EAGAIN.into()));
    }
    let mut room = frame();
    let length = ToShim::Start(start).encode(&mut room);
    socket::send(ours.as_fd(), &room[..length], &[text.as_fd()]).map_err(io::Error::from)?;
    let mut descriptors = Descriptors::default();
    let error = match listen(&ours, &mut descriptors, readiness::now() + START_MAX) {
        Ok(First::Attached(attached)) => {
            let told = Told { attached: *attached, descriptors, notes: Notes::default() };
            return Ok(Contact { socket: ours, told });
        }
        Ok(First::Failed(failed)) => return Err(StartError::Failed(failed)),
        Ok(First::Malformed(error)) => io::Error::other(error),
        Ok(First::Nothing) => io::ErrorKind::TimedOut.into(),
        Err(error) => error,
    };
    // The program may run already, and no daemon would know of it.
    let length = ToShim::End.encode(&mut room);
    let _ = socket::send(ours.as_fd(), &room[..length], &[]);
    Err(StartError::Shim(error))
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
    let attached = match listen(&socket, &mut descriptors, until).map_err(gone)? {
        First::Attached(attached) => *attached,
        First::Failed(_) => return Err(malformed(Malformed::Value)),
        First::Malformed(error) => return Err(malformed(error)),
        First::Nothing => return Err(silent()),
    };
    // A shim with a false pid would make the daemon signal and kill another process.
    if listener != attached.shim.pid {
        return Err(malformed(Malformed::Value));
    }
    let mut notes = Notes::default();
    for _ in 0..attached.notes {
        let length = receive(&socket, &mut room, &mut Descriptors::default(), until);
        let length = length.map_err(gone)?.ok_or_else(silent)?;
        if let Some(FromShim::Note(note)) = FromShim::decode(&room[..length]).map_err(malformed)? {
            notes.set(note);
        }
    }
    Ok(Contact { socket, told: Told { attached, descriptors, notes } })
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
    match living::holds(ProcessId(pid), path) {
        Some(true) if listener.lives() => Ok(pid),
        Some(false) if listener.lives() => {
            Err(AttachError::Impostor { path: path.to_owned(), pid })
        }
        Some(_) | None => Err(silent()),
    }
}

/// The first frame of a shim.
enum First {
    Attached(Box<Attached>),
    Failed(Failed),
    Malformed(Malformed),
    Nothing,
}

fn listen(socket: &OwnedFd, descriptors: &mut Descriptors, until: Duration) -> io::Result<First> {
    let mut room = frame();
    let Some(length) = receive(socket, &mut room, descriptors, until)? else {
        return Ok(First::Nothing);
    };
    Ok(match FromShim::decode(&room[..length]) {
        Ok(Some(FromShim::Attached(attached))) => First::Attached(attached),
        Ok(Some(FromShim::Failed(failed))) => First::Failed(failed),
        Ok(
            None
            | Some(
                FromShim::Taken(_)
                | FromShim::Writable
                | FromShim::Exited { .. }
                | FromShim::Note(_),
            ),
        ) => First::Malformed(Malformed::Value),
        Err(error) => First::Malformed(error),
    })
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
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let left = until.saturating_sub(readiness::now());
        if left.is_zero() {
            return Ok(None);
        }
        readiness::wait([(Some(socket.as_fd()), READABLE)], Some(left))?;
    }
}
