//! Sockets that carry whole frames, and descriptors with them.
//!
//! It knows nothing of what the frames say. Neither sending nor receiving waits or allocates.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
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
#[allow(unsafe_code)]
pub fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let nobody = std::ptr::null_mut();
    // SAFETY: without an address the call writes nothing; the descriptor it returns is new.
    let connection = unsafe {
        let fd = libc::accept4(
            listener.as_raw_fd(),
            nobody,
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
        );
        OwnedFd::from_raw_fd(Errno::result(fd)?)
    };
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

/// Room for the descriptors of one frame, aligned as the kernel wants it.
type Control = [u64; 64];

const _: () = {
    // SAFETY: the call computes a number from a number.
    #[allow(unsafe_code)]
    let needed = unsafe { libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<RawFd>()) as u32) };
    assert!(needed as usize <= size_of::<Control>(), "all descriptors of a frame fit");
};

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
#[allow(unsafe_code)]
pub fn send(
    socket: BorrowedFd<'_>,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "a frame carries no more");
    let mut control: Control = [0; 64];
    let mut part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
    let bytes = size_of_val(descriptors) as u32;
    // SAFETY: the message points at the frame and at `control`, which outlive the call; `control`
    // is aligned and long enough for one header and all descriptors, which are numbers.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !descriptors.is_empty() {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            for (index, descriptor) in descriptors.iter().enumerate() {
                data.add(index).write_unaligned(descriptor.as_raw_fd());
            }
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::sendmsg(socket.as_raw_fd(), &raw const message, flags)
    };
    Errno::result(sent).map(drop)
}

/// Receives a frame and the descriptors with it, and says how long the frame is; 0 when the other
/// side is gone.
///
/// # Errors
/// What the kernel said: `EAGAIN` when there is none now; `EMSGSIZE` for one that is too long;
/// `EMFILE` for one whose descriptors this process may not have.
#[allow(unsafe_code)]
pub fn receive(
    socket: BorrowedFd<'_>,
    frame: &mut Frame,
    descriptors: &mut Descriptors,
) -> Result<usize, Errno> {
    let mut control: Control = [0; 64];
    let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
    *descriptors = Descriptors::default();
    // SAFETY: the message points at the frame and at `control`, which outlive the call and are as
    // long as it says. The kernel's headers are walked by its own rules, and every descriptor in
    // them is new and nobody else's.
    let (received, flags) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let received = Errno::result(libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags))?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        let mut came = descriptors.came.iter_mut();
        while !header.is_null() {
            let is_rights = (*header).cmsg_type == libc::SCM_RIGHTS;
            if (*header).cmsg_level == libc::SOL_SOCKET && is_rights {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    let one = OwnedFd::from_raw_fd(data.add(index).read_unaligned());
                    // More than there is room for are closed at once.
                    if let Some(place) = came.next() {
                        *place = Some(one);
                    }
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        (received.cast_unsigned(), message.msg_flags)
    };
    match flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) {
        0 => Ok(received),
        libc::MSG_CTRUNC => Err(Errno::EMFILE),
        _ => Err(Errno::EMSGSIZE),
    }
}

#[cfg(test)]
mod tests;
