//! Sockets that a service manager bound and passed to us at start.
//!
//! The manager owns them and keeps listening after we exit, so the daemon never removes or replaces their files.

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

use crate::config::sockets::SocketAudience;
use crate::transport::unix::handed::onward::keep_open;
use crate::transport::unix::listener::{BindError, Listener};
use crate::transport::unix::lock::DaemonLock;

/// The first passed descriptor; the standard streams come before it.
const FIRST: RawFd = 3;
/// The maximum number of passed descriptors; a daemon has fewer sockets.
const HANDED_MAX: RawFd = 16;
/// The kernel's list of Unix sockets.
const SOCKETS: &str = "/proc/net/unix";
/// The flags of a listening socket in `SOCKETS`.
const LISTENS: &[u8] = b" 00010000 ";

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

/// The passed sockets that are not used yet.
#[derive(Debug, Default)]
pub struct Handed {
    sockets: Vec<(PathBuf, UnixListener)>,
    numbers: Numbers,
}

/// The numbers of the passed descriptors, which stay open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(Range<RawFd>);

impl Numbers {
    /// Passes the descriptors on to the program that this process executes next.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn pass_on(&self) -> io::Result<()> {
        self.0.clone().try_for_each(|number| keep_open(borrow(number)))
    }
}

impl Handed {
    /// Takes the sockets that `LISTEN_PID` and `LISTEN_FDS` announce.
    ///
    /// The result is empty when the variables are missing or meant for another process. Our children do not inherit
    /// the sockets.
    ///
    /// # Errors
    /// Returns the first descriptor, or the count, that cannot be used.
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

    /// All passed descriptors, used or not.
    pub fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Checks that each socket listens at one of these paths.
    ///
    /// # Errors
    /// Returns [`HandedError::NoDoor`] for the first one that does not.
    pub fn check(&self, doors: &[&Path]) -> Result<(), HandedError> {
        match self.sockets.iter().find(|(path, _)| !doors.contains(&path.as_path())) {
            Some((path, _)) => Err(HandedError::NoDoor {
                path: path.clone(),
                doors: doors.iter().map(|door| door.to_path_buf()).collect(),
            }),
            None => Ok(()),
        }
    }

    /// Listens at a path with the passed socket for it, or with a new one, for this audience.
    ///
    /// # Errors
    /// See [`Listener::bind`] and [`Listener::adopt`]. Also returns [`BindError::InUse`] when a service manager
    /// listens there and passed us no socket. The check does not connect, because that would start the manager's
    /// service.
    pub fn listen(
        &mut self,
        path: &Path,
        audience: SocketAudience,
        lock: &DaemonLock,
    ) -> Result<Listener, BindError> {
        if let Some(index) = self.sockets.iter().position(|(handed, _)| handed == path) {
            let (_, socket) = self.sockets.swap_remove(index);
            return Listener::adopt(socket, path, audience, lock);
        }
        // Daemons bind a temporary name, so another program bound this one.
        if is_bound(path) {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        Listener::bind(path, audience, lock)
    }
}

#[allow(unsafe_code)]
fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the service manager opened the descriptor for us, and this program never closes it. If it is not open,
    // the kernel rejects every call with it.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// A copy of a passed descriptor and the path it listens at. `None` if it is not such a socket.
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

/// Whether the path exists and the kernel lists a listening socket that was bound to it.
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
