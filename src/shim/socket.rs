//! Unix sockets that carry whole frames and file descriptors. Sending and receiving neither wait nor
//! allocate.

use std::fs;
use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen,
    socket, socketpair, sockopt,
};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Uid, linkat};
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, accept_with, recvmsg, sendmsg,
};

use crate::shim::readiness::{self, READABLE};
use crate::shim::wire::{DESCRIPTORS_MAX, Frame};

/// The length of the accept queue.
const BACKLOG: i32 = 16;

/// Makes two connected sockets.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Listens at a path, for its owner only. The socket has the name [`unfinished`] until it listens, so a
/// client never finds a path that refuses connections.
///
/// # Errors
/// `AddrInUse` if the path exists; otherwise the kernel's error.
pub fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    listen_by(path, &unfinished(path))
}

/// As [`listen_at`], with `fresh` as the temporary name. A file with that name is left over from a crash and
/// is replaced.
///
/// # Errors
/// `AddrInUse` if the path exists; otherwise the kernel's error.
pub fn listen_by(path: &Path, fresh: &Path) -> io::Result<OwnedFd> {
    let socket = unconnected(SockFlag::SOCK_NONBLOCK)?;
    // The file that `bind` creates takes its mode from the socket.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let address = UnixAddr::new(fresh)?;
    match bind(socket.as_raw_fd(), &address) {
        Err(Errno::EADDRINUSE) => {
            fs::remove_file(fresh)?;
            bind(socket.as_raw_fd(), &address)?;
        }
        bound => bound?,
    }
    let placed = listen(&socket, Backlog::new(BACKLOG)?)
        // Unlike a rename, a link never replaces an existing file.
        .and_then(|()| linkat(AT_FDCWD, fresh, AT_FDCWD, path, AtFlags::empty()));
    let _ = fs::remove_file(fresh);
    match placed {
        Ok(()) => Ok(socket),
        Err(Errno::EEXIST) => Err(Errno::EADDRINUSE.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// The temporary name of a socket until it listens at `path`. It is no longer than a path that ends in
/// `.sock`, because the length of socket paths is limited.
pub fn unfinished(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{stem}.new"))
}

/// Connects to a socket path.
///
/// # Errors
/// Returns the kernel's error: `NotFound` without a file, `ConnectionRefused` if no process listens,
/// `WouldBlock` if the listener's queue is full.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = unconnected(SockFlag::SOCK_NONBLOCK)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

fn unconnected(flags: SockFlag) -> io::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Whether the descriptor is a socket for frames.
pub fn carries_frames(socket: BorrowedFd<'_>) -> bool {
    getsockopt(&socket, sockopt::SockType) == Ok(SockType::SeqPacket)
}

/// Accepts a connection from a process of the same user.
///
/// # Errors
/// Returns the kernel's error; `EACCES` for another user.
pub fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = accept_with(listener, flags).map_err(said)?;
    let peer = getsockopt(&connection, sockopt::PeerCredentials)?;
    if peer.uid() == Uid::effective().as_raw() { Ok(connection) } else { Err(Errno::EACCES) }
}

/// The process at the other end of a connection.
#[derive(Debug)]
pub struct Other {
    /// Its pid; 0 if it runs in a pid namespace that is not visible here.
    pub pid: i32,
    pub uid: u32,
    /// The pidfd; `None` if the kernel has none for sockets.
    handle: Option<OwnedFd>,
}

impl Other {
    /// The process that connected, or the one that listens where this connection was made to.
    pub fn of(connection: BorrowedFd<'_>) -> Result<Self, Errno> {
        let credentials = getsockopt(&connection, sockopt::PeerCredentials)?;
        let handle = match getsockopt(&connection, sockopt::PeerPidfd) {
            Ok(handle) => Some(handle),
            // Linux before 6.5 has no pidfd for a peer.
            Err(Errno::ENOPROTOOPT) => None,
            Err(errno) => return Err(errno),
        };
        Ok(Self { pid: credentials.pid(), uid: credentials.uid(), handle })
    }

    /// Whether the process still runs, so that facts read by its pid are its own.
    pub fn lives(&self) -> bool {
        let handle = self.handle.as_ref();
        handle.is_none_or(|handle| readiness::look(handle.as_fd(), READABLE) == Ok(0))
    }
}

/// The most supplementary groups that the kernel lets a process have.
const GROUPS_MAX: usize = 65_536;
/// As many groups as are asked for at first; few processes have more.
const GROUPS_USUAL: usize = 64;

/// The supplementary groups of the process at the other end, at the time of its connection, as the kernel has them.
///
/// # Errors
/// Returns the kernel's error; `ENODATA` where it has no groups of a peer.
pub fn peer_groups(connection: BorrowedFd<'_>) -> Result<Vec<u32>, Errno> {
    let mut groups = vec![0; GROUPS_USUAL];
    let count = match read_peer_groups(connection, &mut groups) {
        Err(needed) if needed.errno == Errno::ERANGE => {
            groups.resize(needed.groups.min(GROUPS_MAX), 0);
            read_peer_groups(connection, &mut groups).map_err(|failed| failed.errno)?
        }
        read => read.map_err(|failed| failed.errno)?,
    };
    groups.truncate(count);
    groups.shrink_to_fit();
    Ok(groups)
}

/// Why groups were not read, and how many there are if that was too many.
#[derive(Clone, Copy, Debug)]
struct GroupsError {
    errno: Errno,
    groups: usize,
}

/// Reads the groups into a buffer and returns their number.
#[allow(unsafe_code)]
fn read_peer_groups(connection: BorrowedFd<'_>, into: &mut [u32]) -> Result<usize, GroupsError> {
    let mut bytes = libc::socklen_t::try_from(size_of_val(into)).unwrap_or(libc::socklen_t::MAX);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERGROUPS);
    // SAFETY: the kernel writes at most `bytes` bytes into `into`, which has that many and is of plain numbers.
    let read = unsafe {
        let start = into.as_mut_ptr().cast();
        libc::getsockopt(connection.as_raw_fd(), level, option, start, &raw mut bytes)
    };
    let groups = bytes as usize / size_of::<u32>();
    Errno::result(read)
        .map(|_| groups.min(into.len()))
        .map_err(|errno| GroupsError { errno, groups })
}

type Control = [MaybeUninit<u8>; cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
const CONTROL: Control = [MaybeUninit::uninit(); size_of::<Control>()];

/// The descriptors that arrived with a frame, in order.
#[derive(Debug)]
pub struct Descriptors {
    came: [Option<OwnedFd>; DESCRIPTORS_MAX],
    next: usize,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self { came: [const { None }; DESCRIPTORS_MAX], next: 0 }
    }
}

impl Descriptors {
    pub fn take(&mut self) -> Option<OwnedFd> {
        let taken = self.came.get_mut(self.next)?.take();
        self.next += 1;
        taken
    }
}

/// Sends a frame with these descriptors.
///
/// # Errors
/// Returns the kernel's error: `EAGAIN` if the peer does not read, `EPIPE` if it is gone.
pub fn send(
    socket: BorrowedFd<'_>,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut control = CONTROL;
    let mut control = SendAncillaryBuffer::new(&mut control);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "a frame carries no more");
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(frame)], &mut control, flags).map(drop).map_err(said)
}

fn said(errno: rustix::io::Errno) -> Errno {
    Errno::from_raw(errno.raw_os_error())
}

/// Receives a frame and its descriptors. Returns the frame's length; 0 if the peer has closed.
///
/// # Errors
/// Returns the kernel's error: `EAGAIN` without a frame, `EMSGSIZE` for a frame that is too long, `EMFILE` if
/// this process may not open more descriptors.
pub fn receive(
    socket: BorrowedFd<'_>,
    frame: &mut Frame,
    descriptors: &mut Descriptors,
) -> Result<usize, Errno> {
    *descriptors = Descriptors::default();
    let mut control = CONTROL;
    let mut control = RecvAncillaryBuffer::new(&mut control);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(frame)];
    let received = recvmsg(socket, &mut parts, &mut control, flags).map_err(said)?;
    let mut came = descriptors.came.iter_mut();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            // Surplus descriptors are closed at once.
            rights.zip(&mut came).for_each(|(one, place)| *place = Some(one));
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::EMSGSIZE);
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::EMFILE);
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests;
