//! A Unix socket that listens at a path, and that only its audience can connect to, from its first moment.
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

use crate::config::sockets::SocketAudience;
use crate::transport::unix::access::open_socket;
use crate::transport::unix::changes::Changes;
use crate::transport::unix::file_identity::FileIdentity;
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
    #[error(
        "cannot open {path} to whom `sockets` in the configuration names: {source}; the daemon's user \
         must own it and be a member of the group"
    )]
    Audience { path: PathBuf, source: io::Error },
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

/// A listening socket. Its [`SocketFile`] removes it from its path, unless a service manager owns it.
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
    identity: FileIdentity,
    owner: SocketOwner,
    audience: SocketAudience,
    // The path may be removed only under the lock, so the lock lives as long.
    lock: DaemonLock,
}

impl SocketFile {
    /// Whether the file is still at its path, so that clients can find it.
    fn is_in_place(&self) -> bool {
        FileIdentity::of(&self.path).is_ok_and(|there| there == self.identity)
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
        Listener::bind(&self.path, self.audience, &self.lock)
    }
}

impl Listener {
    /// Listens at a path, for this audience, and replaces a stale socket there. Call it within a runtime.
    ///
    /// A path outside the lock's directory is replaced only when no process accepts connections there.
    ///
    /// # Errors
    /// Returns what prevents the replacement, or the kernel's error.
    pub fn bind(
        path: &Path,
        audience: SocketAudience,
        lock: &DaemonLock,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        check_replaceable(path)?;
        if !lock.covers(path) && net::UnixStream::connect(path).is_ok() {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        let temporary = temporary_name(path);
        check_replaceable(&temporary)?;
        check_counts(lock, path)?;
        remove(&temporary).map_err(failed)?;
        let socket = bind_alone(&temporary).map_err(failed)?;
        let file = FileIdentity::of(&temporary).map_err(failed)?;
        // Nobody can connect yet: the socket listens only once its mode is right.
        let opened = open_to(&temporary, path, audience);
        let listening = opened.and_then(|()| listen_with(socket).map_err(failed));
        // Check as late as possible: another daemon may have taken the path.
        let placed = listening.and_then(|listener| {
            check_counts(lock, path)?;
            fs::rename(&temporary, path).map_err(failed)?;
            Ok(listener)
        });
        let listener = placed.inspect_err(|_| {
            // The first error is returned. The next attempt replaces a leftover file.
            if FileIdentity::of(&temporary).is_ok_and(|there| there == file) {
                let _ = remove(&temporary);
            }
        })?;
        Ok(Self::new(listener, path, (file, SocketOwner::Ours, audience), lock))
    }

    /// Takes over a socket that a service manager bound to this path, and opens it to this audience. Call it within a
    /// runtime.
    ///
    /// # Errors
    /// Returns [`BindError::Mode`] when others than the audience could connect, [`BindError::Replaced`] when another daemon has the
    /// lock, otherwise the kernel's error.
    pub fn adopt(
        socket: net::UnixListener,
        path: &Path,
        audience: SocketAudience,
        lock: &DaemonLock,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        check_counts(lock, path)?;
        let found = path.symlink_metadata().map_err(failed)?;
        let mode = found.mode() & 0o777;
        let is_theirs = audience.group().is_none_or(|group| group == found.gid());
        let as_told = mode == audience.socket_mode() && is_theirs;
        if mode & 0o077 != 0 && !as_told {
            return Err(BindError::Mode { path: path.to_owned(), mode });
        }
        open_to(path, path, audience)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(socket).map_err(failed)?;
        let file = FileIdentity::of(path).map_err(failed)?;
        Ok(Self::new(listener, path, (file, SocketOwner::Manager, audience), lock))
    }

    fn new(
        listener: UnixListener,
        path: &Path,
        (identity, owner, audience): (FileIdentity, SocketOwner, SocketAudience),
        lock: &DaemonLock,
    ) -> Self {
        reserve::fill();
        let (path, when_full) = (path.to_owned(), WhenFull::TurnAway);
        let lock = lock.clone();
        let file = SocketFile { path: path.clone(), identity, owner, audience, lock };
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

/// Binds a socket to a path with mode 0600. It does not listen yet.
fn bind_alone(path: &Path) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // `bind` copies the mode of the socket to the file. Other users never get a moment to connect, and the umask stays
    // unchanged.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

/// Opens the file of the socket at `path`, which may have a temporary name.
fn open_to(file: &Path, path: &Path, audience: SocketAudience) -> Result<(), BindError> {
    let failed = |source| BindError::Audience { path: path.to_owned(), source };
    open_socket(file, audience).map_err(failed)
}

fn listen_with(socket: OwnedFd) -> io::Result<UnixListener> {
    listen(&socket, Backlog::MAXCONN)?;
    UnixListener::from_std(net::UnixListener::from(socket))
}

#[cfg(test)]
mod tests;
