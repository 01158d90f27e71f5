//! Sockets that carry whole frames, and descriptors with them.
//!
//! It knows nothing of what the frames say. Neither sending nor receiving waits or allocates.

use std::fs;
use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
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

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 16;

/// Makes two connected ends.
///
/// # Errors
/// What the kernel said.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Listens at a path, for its owner only. Whoever finds the path finds somebody who listens: until then
/// the socket has [`unfinished`] as its name.
///
/// # Errors
/// `AddrInUse` where something is already; otherwise what the kernel said.
pub fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    listen_by(path, &unfinished(path))
}

/// The same by the name that the socket has until then. Whatever has that name was left by who did not finish.
///
/// # Errors
/// The same.
pub fn listen_by(path: &Path, fresh: &Path) -> io::Result<OwnedFd> {
    let socket = unconnected(SockFlag::SOCK_NONBLOCK)?;
    // The file that `bind` makes takes its mode from the socket.
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
        // Unlike a new name this never takes the place of what is there.
        .and_then(|()| linkat(AT_FDCWD, fresh, AT_FDCWD, path, AtFlags::empty()));
    let _ = fs::remove_file(fresh);
    match placed {
        Ok(()) => Ok(socket),
        Err(Errno::EEXIST) => Err(Errno::EADDRINUSE.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// What a socket is called that is to listen at a path and does not yet; no longer, as the length of such
/// names is bounded, if the path ends in `.sock`.
pub fn unfinished(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{stem}.new"))
}

/// Connects to whoever listens at a path.
///
/// # Errors
/// What the kernel said: `NotFound` without a file, `ConnectionRefused` when nobody listens,
/// `WouldBlock` when whoever does has too many connections waiting: it stands still.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = unconnected(SockFlag::SOCK_NONBLOCK)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

fn unconnected(flags: SockFlag) -> io::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Whether this is a socket that carries frames.
pub fn carries_frames(socket: BorrowedFd<'_>) -> bool {
    getsockopt(&socket, sockopt::SockType) == Ok(SockType::SeqPacket)
}

/// Takes a connection that waits, if it is of the same user.
///
/// # Errors
/// What the kernel said; `EACCES` for somebody else's.
pub fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = accept_with(listener, flags).map_err(said)?;
    let peer = getsockopt(&connection, sockopt::PeerCredentials)?;
    if peer.uid() == Uid::effective().as_raw() { Ok(connection) } else { Err(Errno::EACCES) }
}

/// A process at the other end of a connection.
#[derive(Debug)]
pub struct Other {
    /// Its number; 0 in a place whose numbers mean nothing here.
    pub pid: i32,
    pub uid: u32,
    /// Stays with that very process; none where the kernel has no such handle.
    handle: Option<OwnedFd>,
}

impl Other {
    /// The process that connected, or that listens where this connection was made to.
    ///
    /// # Errors
    /// What the kernel said; also that the process is gone.
    pub fn of(connection: BorrowedFd<'_>) -> Result<Self, Errno> {
        let credentials = getsockopt(&connection, sockopt::PeerCredentials)?;
        let handle = match getsockopt(&connection, sockopt::PeerPidfd) {
            Ok(handle) => Some(handle),
            // Linux before 6.5 has no such handle.
            Err(Errno::ENOPROTOOPT) => None,
            Err(errno) => return Err(errno),
        };
        Ok(Self { pid: credentials.pid(), uid: credentials.uid(), handle })
    }

    /// Whether it has not ended, so that what was read of its number was read of itself.
    pub fn lives(&self) -> bool {
        let handle = self.handle.as_ref();
        handle.is_none_or(|handle| readiness::look(handle.as_fd(), READABLE) == Ok(0))
    }
}

/// Room for the descriptors of one frame.
type Control = [MaybeUninit<u8>; cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
const CONTROL: Control = [MaybeUninit::uninit(); size_of::<Control>()];

/// The descriptors that came with a frame, to be taken in their order.
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
    /// Takes the next one.
    pub fn take(&mut self) -> Option<OwnedFd> {
        let taken = self.came.get_mut(self.next)?.take();
        self.next += 1;
        taken
    }
}

/// Sends a frame with these descriptors.
///
/// # Errors
/// What the kernel said: `EAGAIN` when the other side does not read, `EPIPE` when it is gone.
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

/// Receives a frame and the descriptors with it, and says how long the frame is; 0 when the other
/// side is gone.
///
/// # Errors
/// What the kernel said: `EAGAIN` when there is none now; `EMSGSIZE` for one that is too long;
/// `EMFILE` for one whose descriptors this process may not have.
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
            // More than there is room for are closed at once.
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
