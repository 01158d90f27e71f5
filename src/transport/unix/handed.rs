//! Sockets that a service manager bound and handed to us at our start.
//!
//! It knows no doors: a socket is found by the path it listens at. Such a socket stays the manager's,
//! who goes on listening when we end, so nobody here removes or replaces one.

pub mod onward;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{SockType, getsockopt, sockopt};

use crate::transport::unix::handed::onward::keep_open;
use crate::transport::unix::listener::{BindError, Listener};
use crate::transport::unix::lock::DaemonLock;

/// The first descriptor that is handed over; before it are the standard streams.
const FIRST: RawFd = 3;
/// How many descriptors are taken at most; a daemon has fewer doors.
const HANDED_MAX: RawFd = 16;
/// Every socket of the machine that has a path.
const SOCKETS: &str = "/proc/net/unix";
/// What `SOCKETS` says of one that listens.
const LISTENS: &[u8] = b" 00010000 ";

/// Says why what was handed over cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HandedError {
    #[error("LISTEN_FDS is {count:?}; it must be a number of at most {HANDED_MAX}")]
    Count { count: OsString },
    #[error(
        "descriptor {number} was handed over and is no socket that listens at a path; \
         ListenStream= of the socket unit must be a path"
    )]
    NotListening { number: RawFd },
    #[error(
        "a socket was handed over for {path}, where this daemon has no door; ListenStream= of the \
         socket unit must be {}", doors.iter().map(|door| door.display().to_string())
            .collect::<Vec<_>>().join(" or ")
    )]
    NoDoor { path: PathBuf, doors: Vec<PathBuf> },
}

/// The sockets that were handed over and not yet used.
#[derive(Debug, Default)]
pub struct Handed {
    sockets: Vec<(PathBuf, UnixListener)>,
    numbers: Numbers,
}

/// The descriptors that were handed over, by their numbers, which stay open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(Range<RawFd>);

impl Numbers {
    /// Hands them over once more, to the program that takes the place of this one in this process.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pass_on(&self) -> io::Result<()> {
        self.0.clone().try_for_each(|number| keep_open(borrow(number)))
    }
}

impl Handed {
    /// Takes what was handed to this process, by its variables `LISTEN_PID` and `LISTEN_FDS`.
    ///
    /// Nothing, when they are not there or meant for another process. No child of ours inherits
    /// what was taken.
    ///
    /// # Errors
    /// What cannot be used.
    pub fn take(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, HandedError> {
        let ours = std::process::id().to_string();
        if variable("LISTEN_PID").is_none_or(|pid| pid != ours.as_str()) {
            return Ok(Self::default());
        }
        let Some(count) = variable("LISTEN_FDS") else { return Ok(Self::default()) };
        let number = count.to_str().and_then(|count| count.parse::<RawFd>().ok());
        let number = number.filter(|number| (0..=HANDED_MAX).contains(number));
        let numbers = FIRST..FIRST + number.ok_or(HandedError::Count { count })?;
        let sockets = numbers.clone().map(|number| {
            let socket = copy(number).ok().flatten();
            socket.ok_or(HandedError::NotListening { number })
        });
        Ok(Self { sockets: sockets.collect::<Result<_, _>>()?, numbers: Numbers(numbers) })
    }

    /// What was handed over, whether it was used or not.
    pub fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Checks that each socket is for one of these paths.
    ///
    /// # Errors
    /// [`HandedError::NoDoor`].
    pub fn check(&self, doors: &[&Path]) -> Result<(), HandedError> {
        match self.sockets.iter().find(|(path, _)| !doors.contains(&path.as_path())) {
            Some((path, _)) => Err(HandedError::NoDoor {
                path: path.clone(),
                doors: doors.iter().map(|door| door.to_path_buf()).collect(),
            }),
            None => Ok(()),
        }
    }

    /// Listens at a path: with the socket that was handed over for it, or with one of our own.
    ///
    /// # Errors
    /// As [`Listener::bind`] and [`Listener::adopt`]; also [`BindError::InUse`] where a service
    /// manager listens that handed us nothing. To connect would tell, but also start its service.
    pub fn listen(&mut self, path: &Path, lock: &DaemonLock) -> Result<Listener, BindError> {
        if let Some(index) = self.sockets.iter().position(|(handed, _)| handed == path) {
            let (_, socket) = self.sockets.swap_remove(index);
            return Listener::adopt(socket, path, lock);
        }
        // Daemons bind a temporary name, so this one was bound by somebody else.
        if is_bound(path) {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        Listener::bind(path, lock)
    }
}

/// A handed descriptor.
#[allow(unsafe_code)]
fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: whoever started us opened the number for us and nobody closes it; if that was a lie,
    // every call with it is refused by the kernel and nothing is closed.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// A copy of a handed descriptor with the path it listens at, if it is a socket that does.
fn copy(number: RawFd) -> io::Result<Option<(PathBuf, UnixListener)>> {
    let handed = borrow(number);
    fcntl(handed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    let listens = getsockopt(&handed, sockopt::AcceptConn)?;
    if !listens || getsockopt(&handed, sockopt::SockType)? != SockType::Stream {
        return Ok(None);
    }
    let socket = UnixListener::from(handed.try_clone_to_owned()?);
    let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
    Ok(path.map(|path| (path, socket)))
}

/// Whether something is at this path and a socket that listens was bound to it, as far as the
/// kernel tells.
fn is_bound(path: &Path) -> bool {
    let ending = [b" ", path.as_os_str().as_bytes()].concat();
    let bound = |line: &[u8]| {
        line.ends_with(&ending) && line.windows(LISTENS.len()).any(|part| part == LISTENS)
    };
    path.exists()
        && fs::read(SOCKETS).is_ok_and(|sockets| sockets.split(|byte| *byte == b'\n').any(bound))
}

#[cfg(test)]
mod tests;
