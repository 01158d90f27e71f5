//! A socket that listens at a path, from its first moment for us alone.
//!
//! It knows nothing of who is at the other end of what it hands on, nor what they may do. A path
//! is replaced in one step and only under the daemon's lock, as long as that counts, so that a client
//! finds the old daemon or the new one, and never nothing.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};
use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use crate::transport::unix::lock::DaemonLock;
use crate::transport::unix::reserve::{self, Lent};

/// Time to let others give descriptors back before the next connection is taken.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Says why there is no listener at a path.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("{path} is there already and is not a socket; remove it or choose another path")]
    NotASocket { path: PathBuf },
    #[error(
        "somebody else listens at {path}; if that is termgate.socket, run: systemctl --user start \
         termgate; if not, choose another path"
    )]
    InUse { path: PathBuf },
    #[error(
        "others may use the socket {path}, its mode is {mode:04o}; set SocketMode=0600 in its unit"
    )]
    Mode { path: PathBuf, mode: u32 },
    #[error("another daemon has taken the place of this one, and listens at {path}")]
    Replaced { path: PathBuf },
    #[error("cannot listen at {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A client that has connected; nothing is known of it yet.
#[derive(Debug)]
pub struct Accepted {
    pub stream: UnixStream,
    /// What was held back for it, to be kept until it is served; none when there was enough.
    pub lent: Option<Lent>,
}

impl Accepted {
    /// Whether the client has hung up, whatever it said before.
    pub fn has_hung_up(&self) -> bool {
        // It is always told of, wanted or not.
        let mut told = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        poll(&mut told, PollTimeout::ZERO).is_ok()
            && told[0].revents().is_some_and(|told| told.intersects(gone))
    }
}

/// What becomes of a client when the process has no descriptor left for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenFull {
    TurnAway,
    LetIn,
}

/// Whose affair the file at the path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Ours,
    /// A service manager's, which listens there also without us.
    Manager,
}

/// A listening socket with mode 0600; if it is our own, it is removed from its path with its
/// [`SocketFile`].
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// None once another has it.
    file: Option<SocketFile>,
    when_full: WhenFull,
}

/// The file of a listening socket; if it is our own, it is removed when this is dropped, unless another
/// one stands there.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Its device and number.
    identity: (u64, u64),
    owner: Owner,
    // The path may be removed only under the lock, so the lock stays until then.
    _lock: DaemonLock,
}

impl SocketFile {
    /// Whether it still stands at its path, so that clients can find it.
    fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|there| there == self.identity)
    }
}

impl Listener {
    /// Listens at a path and replaces a socket that was left there; call it within a runtime.
    ///
    /// A path outside the lock's directory is replaced only when nobody answers there.
    ///
    /// # Errors
    /// What stands in the way, or what the kernel said.
    pub fn bind(path: &Path, lock: &DaemonLock) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        check_replaceable(path)?;
        if !lock.covers(path) && net::UnixStream::connect(path).is_ok() {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        let temporary = temporary_name(path);
        check_replaceable(&temporary)?;
        check_counts(lock, path)?;
        remove(&temporary).map_err(failed)?;
        let listener = listen_at(&temporary).map_err(failed)?;
        let file = identity(&temporary).map_err(failed)?;
        // As late as can be: what this would replace may be another daemon's by now.
        let counts = check_counts(lock, path);
        let placed = counts.and_then(|()| fs::rename(&temporary, path).map_err(failed));
        placed.inspect_err(|_| {
            // What failed is told; a name left behind is replaced by the next attempt.
            if identity(&temporary).is_ok_and(|there| there == file) {
                let _ = remove(&temporary);
            }
        })?;
        Ok(Self::new(listener, path, file, Owner::Ours, lock))
    }

    /// Takes over a socket that a service manager bound to this path; call it within a runtime.
    ///
    /// # Errors
    /// [`BindError::Mode`] when others could connect, [`BindError::Replaced`] when another daemon is the
    /// one to let them in; otherwise what the kernel said.
    pub fn adopt(
        socket: net::UnixListener,
        path: &Path,
        lock: &DaemonLock,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        check_counts(lock, path)?;
        let mode = path.symlink_metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(BindError::Mode { path: path.to_owned(), mode });
        }
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(socket).map_err(failed)?;
        let file = identity(path).map_err(failed)?;
        Ok(Self::new(listener, path, file, Owner::Manager, lock))
    }

    fn new(
        listener: UnixListener,
        path: &Path,
        file: (u64, u64),
        owner: Owner,
        lock: &DaemonLock,
    ) -> Self {
        reserve::fill();
        let (path, when_full) = (path.to_owned(), WhenFull::TurnAway);
        let file = SocketFile { path: path.clone(), identity: file, owner, _lock: lock.clone() };
        Self { listener, path, file: Some(file), when_full }
    }

    /// Hands its file over, for it to be removed by whoever has that; none when it was handed over before.
    pub fn take_file(&mut self) -> Option<SocketFile> {
        self.file.take()
    }

    /// Lets clients in also when the process has no descriptor left but those it holds back.
    #[must_use]
    pub fn always_open(mut self) -> Self {
        self.when_full = WhenFull::LetIn;
        self
    }

    /// Whether it lets clients in with the descriptors that are held back.
    pub fn is_always_open(&self) -> bool {
        self.when_full == WhenFull::LetIn
    }

    /// The path it listens at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it still stands at its path, so that clients can find it.
    pub fn is_in_place(&self) -> bool {
        self.file.as_ref().is_some_and(SocketFile::is_in_place)
    }

    /// Waits for the next client.
    ///
    /// Cancel-safe. A failure to accept is no end: it is told to the log, and after a while tried
    /// again.
    pub async fn accept(&self) -> Accepted {
        loop {
            // Whoever was let in when there was no descriptor left was served with these.
            let complete = reserve::fill();
            let accepted = match self.listener.accept().await {
                // What it takes away may be what the operator waits for.
                Ok((stream, _)) if !complete && self.when_full == WhenFull::TurnAway => {
                    drop(stream);
                    tokio::time::sleep(BACK_OFF).await;
                    None
                }
                Ok((stream, _)) => Some(Accepted { stream, lent: None }),
                Err(error) => self.recover(error).await,
            };
            if let Some(accepted) = accepted {
                return accepted;
            }
        }
    }

    async fn recover(&self, error: io::Error) -> Option<Accepted> {
        match error.raw_os_error() {
            Some(libc::ECONNABORTED | libc::EINTR) => return None,
            Some(libc::EMFILE | libc::ENFILE) => {
                if let Some(accepted) = self.accept_when_full().await {
                    return Some(accepted);
                }
                warn!(path = %self.path.display(), %error, "no descriptor left for a client");
            }
            _ => warn!(path = %self.path.display(), %error, "cannot accept a client"),
        }
        tokio::time::sleep(BACK_OFF).await;
        None
    }

    /// Takes the next client with the descriptors held back, and lets it in or turns it away.
    async fn accept_when_full(&self) -> Option<Accepted> {
        let lent = Some(reserve::lend());
        let next = poll_fn(|context| Poll::Ready(self.listener.poll_accept(context))).await;
        match (next, self.when_full) {
            (Poll::Ready(Ok((stream, _))), WhenFull::LetIn) => Some(Accepted { stream, lent }),
            (_turned_away, WhenFull::LetIn | WhenFull::TurnAway) => None,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.owner == Owner::Ours && self.is_in_place() {
            // It stays behind at worst, and the next daemon replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the sockets that an earlier daemon left in a directory and says how many there were.
///
/// To be called before the first of our own is put there.
///
/// # Errors
/// `InvalidInput` for a directory that the lock says nothing about; otherwise what the kernel said.
pub fn remove_stale(directory: &Path, lock: &DaemonLock) -> io::Result<usize> {
    if !lock.covers(directory) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // One that another daemon has put there is in use.
        if entry.file_type()?.is_socket() && lock.counts() {
            remove(&entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A name beside `path` that nobody else uses and that is no longer, if `path` ends in `.sock`.
fn temporary_name(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{stem}.new"))
}

fn check_replaceable(path: &Path) -> Result<(), BindError> {
    match path.symlink_metadata() {
        Ok(there) if there.file_type().is_socket() => Ok(()),
        Ok(_) => Err(BindError::NotASocket { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(BindError::Io { path: path.to_owned(), source }),
    }
}

/// Checks that no other daemon was given our place while we stood still.
fn check_counts(lock: &DaemonLock, path: &Path) -> Result<(), BindError> {
    if lock.counts() { Ok(()) } else { Err(BindError::Replaced { path: path.to_owned() }) }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The file that `bind` makes takes its mode from the socket, so there is no moment in which
    // others could connect, and the process's umask need not change.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::MAXCONN)?;
    UnixListener::from_std(net::UnixListener::from(socket))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = path.symlink_metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests;
