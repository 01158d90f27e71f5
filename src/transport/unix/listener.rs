//! A Unix socket that listens at a path, with mode 0600 from its first moment.
//!
//! The path is replaced in one step and only under the daemon's lock, so clients always find the old daemon or the new
//! one.

use std::fs;
use std::future::{pending, poll_fn};
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
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::transport::unix::changes::Changes;
use crate::transport::unix::lock::DaemonLock;
use crate::transport::unix::reserve::{self, Lent};

/// Time for other tasks to release descriptors before the next accept.
const BACK_OFF: Duration = Duration::from_millis(100);

/// When to look for a socket's file even if no change was reported: none is of the directories above.
const LOOK_ANYWAY: Duration = Duration::from_secs(600);

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("{path} is there already and is not a socket; remove it or choose another path")]
    NotASocket { path: PathBuf },
    #[error(
        "another process listens at {path}; if that is termgate.socket, run: systemctl --user start \
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

/// A client that has connected and was not looked up yet.
#[derive(Debug)]
pub struct AcceptedClient {
    pub stream: UnixStream,
    /// The reserve of descriptors, if this client needed it. Keep it until the client is served.
    pub lent: Option<Lent>,
}

impl AcceptedClient {
    /// Whether the client has closed the connection.
    pub fn has_hung_up(&self) -> bool {
        // The kernel always reports these events, even when none are requested.
        let mut told = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        poll(&mut told, PollTimeout::ZERO).is_ok()
            && told[0].revents().is_some_and(|told| told.intersects(gone))
    }
}

/// What happens to a client when the process has no descriptor left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenFull {
    TurnAway,
    LetIn,
}

/// Which process owns the socket file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketOwner {
    Ours,
    /// A service manager, which listens at the path also without us.
    Manager,
}

/// A listening socket with mode 0600. Its [`SocketFile`] removes it from its path, unless a service manager owns it.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// `None` after [`Listener::take_file`].
    file: Option<SocketFile>,
    when_full: WhenFull,
}

/// The file of a listening socket. Dropping it removes our own file, unless another one is at the path.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    owner: SocketOwner,
    // The path may be removed only under the lock, so the lock lives as long.
    lock: DaemonLock,
}

impl SocketFile {
    /// Whether the file is still at its path, so that clients can find it.
    fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|there| there == self.identity)
    }

    /// Completes when the file is not at its path any more. Never for a socket of a service manager.
    pub async fn lost(&self) {
        if self.owner == SocketOwner::Manager {
            return pending().await;
        }
        loop {
            // Watched first, so that no change is missed.
            let changes = Changes::of(&self.path);
            if !self.is_in_place() {
                return;
            }
            match changes {
                Ok(changes) => drop(timeout(LOOK_ANYWAY, changes.next()).await),
                Err(_) => sleep(LOOK_ANYWAY).await,
            }
        }
    }

    /// Listens at the same path again. Call it within a runtime.
    ///
    /// # Errors
    /// As for [`Listener::bind`].
    pub fn bind_again(&self) -> Result<Listener, BindError> {
        Listener::bind(&self.path, &self.lock)
    }
}

impl Listener {
    /// Listens at a path and replaces a stale socket there. Call it within a runtime.
    ///
    /// A path outside the lock's directory is replaced only when no process accepts connections there.
    ///
    /// # Errors
    /// Returns what prevents the replacement, or the kernel's error.
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
        // Check as late as possible: another daemon may have taken the path.
        let counts = check_counts(lock, path);
        let placed = counts.and_then(|()| fs::rename(&temporary, path).map_err(failed));
        placed.inspect_err(|_| {
            // The first error is returned. The next attempt replaces a leftover file.
            if identity(&temporary).is_ok_and(|there| there == file) {
                let _ = remove(&temporary);
            }
        })?;
        Ok(Self::new(listener, path, file, SocketOwner::Ours, lock))
    }

    /// Takes over a socket that a service manager bound to this path. Call it within a runtime.
    ///
    /// # Errors
    /// Returns [`BindError::Mode`] when other users could connect, [`BindError::Replaced`] when another daemon has the
    /// lock, otherwise the kernel's error.
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
        Ok(Self::new(listener, path, file, SocketOwner::Manager, lock))
    }

    fn new(
        listener: UnixListener,
        path: &Path,
        file: (u64, u64),
        owner: SocketOwner,
        lock: &DaemonLock,
    ) -> Self {
        reserve::fill();
        let (path, when_full) = (path.to_owned(), WhenFull::TurnAway);
        let file = SocketFile { path: path.clone(), identity: file, owner, lock: lock.clone() };
        Self { listener, path, file: Some(file), when_full }
    }

    /// Takes the file out, so that its new owner removes it. `None` if it was taken before.
    pub fn take_file(&mut self) -> Option<SocketFile> {
        self.file.take()
    }

    /// Accepts clients with the reserve when the process has no other descriptor.
    #[must_use]
    pub fn always_open(mut self) -> Self {
        self.when_full = WhenFull::LetIn;
        self
    }

    pub fn is_always_open(&self) -> bool {
        self.when_full == WhenFull::LetIn
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the socket is still at its path, so that clients can find it.
    pub fn is_in_place(&self) -> bool {
        self.file.as_ref().is_some_and(SocketFile::is_in_place)
    }

    /// Waits for the next client.
    ///
    /// Cancel-safe. After a failed accept it logs the error, waits and retries.
    pub async fn accept(&self) -> AcceptedClient {
        loop {
            // An earlier client may have used the reserve.
            let complete = reserve::fill();
            let accepted = match self.listener.accept().await {
                // The operator may need the descriptor that this client would use.
                Ok((stream, _)) if !complete && self.when_full == WhenFull::TurnAway => {
                    drop(stream);
                    tokio::time::sleep(BACK_OFF).await;
                    None
                }
                Ok((stream, _)) => Some(AcceptedClient { stream, lent: None }),
                Err(error) => self.recover(error).await,
            };
            if let Some(accepted) = accepted {
                return accepted;
            }
        }
    }

    async fn recover(&self, error: io::Error) -> Option<AcceptedClient> {
        match error.raw_os_error() {
            Some(libc::ECONNABORTED | libc::EINTR) => return None,
            Some(libc::EMFILE | libc::ENFILE) => {
                if let Some(accepted) = self.accept_when_full().await {
                    return Some(accepted);
                }
                warn!(path = %self.path.display(), %error, "no file descriptor left for a client");
            }
            _ => warn!(path = %self.path.display(), %error, "cannot accept a client"),
        }
        tokio::time::sleep(BACK_OFF).await;
        None
    }

    /// Accepts the next client with the reserve, and keeps or rejects it.
    async fn accept_when_full(&self) -> Option<AcceptedClient> {
        let lent = Some(reserve::lend());
        let next = poll_fn(|context| Poll::Ready(self.listener.poll_accept(context))).await;
        match (next, self.when_full) {
            (Poll::Ready(Ok((stream, _))), WhenFull::LetIn) => {
                Some(AcceptedClient { stream, lent })
            }
            (_turned_away, WhenFull::LetIn | WhenFull::TurnAway) => None,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.owner == SocketOwner::Ours && self.is_in_place() {
            // On failure the file stays, and the next daemon replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the sockets that an earlier daemon left in a directory and returns their number.
///
/// Call it before our first socket is bound there.
///
/// # Errors
/// Returns `InvalidInput` for a directory outside the lock's, otherwise the kernel's error.
pub fn remove_stale(directory: &Path, lock: &DaemonLock) -> io::Result<usize> {
    if !lock.covers(directory) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Without a valid lock, the socket may belong to another daemon.
        if entry.file_type()?.is_socket() && lock.counts() {
            remove(&entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A name beside `path` that only we use. It is no longer than `path` if `path` ends in `.sock`.
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

/// Checks that no other daemon took the lock while this process was stopped.
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
    // `bind` copies the mode of the socket to the file. Other users never get a moment to connect, and the umask stays
    // unchanged.
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
