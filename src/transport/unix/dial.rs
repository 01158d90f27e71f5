//! Connects to a socket whose backlog may be full.
//!
//! A blocking connect waits in the kernel's queue, so clients do not compete with retries.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

/// How long a client waits for space in a backlog.
pub const ROOM_MAX: Duration = Duration::from_secs(5);

/// Connects to the socket at a path and waits up to `room_max` for space in the backlog. Call it within a runtime.
///
/// # Errors
/// Returns `TimedOut` when the backlog stayed full, otherwise the kernel's error.
pub async fn connect_or_wait(path: &Path, room_max: Duration) -> io::Result<UnixStream> {
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        dialed => return dialed,
    }
    let path = path.to_owned();
    let waiting = spawn_blocking(move || connect_in_line(&path, room_max));
    let stream = waiting.await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

fn connect_in_line(path: &Path, room_max: Duration) -> io::Result<net::UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let wait = TimeVal::new(room_max.as_secs().cast_signed(), room_max.subsec_micros().into());
    setsockopt(&socket, sockopt::SendTimeout, &wait)?;
    let address = UnixAddr::new(path)?;
    loop {
        match connect(socket.as_raw_fd(), &address) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let told = "too many clients wait for their connection";
                return Err(io::Error::new(io::ErrorKind::TimedOut, told));
            }
            Err(errno) => return Err(errno.into()),
            Ok(()) => return Ok(net::UnixStream::from(socket)),
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, listen};

    use super::*;

    /// Listens at a path with a backlog that is full, until the first is accepted.
    fn full(path: &Path) -> (net::UnixListener, net::UnixStream) {
        let listener = net::UnixListener::bind(path).unwrap();
        listen(&listener, Backlog::new(0).unwrap()).unwrap();
        (listener, net::UnixStream::connect(path).unwrap())
    }

    #[tokio::test]
    async fn room_in_a_full_backlog_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gateway.sock");
        let (listener, _first) = full(&path);
        let accepting = async { listener.accept().unwrap() };
        let (dialed, _accepted) = tokio::join!(connect_or_wait(&path, ROOM_MAX), accepting);
        dialed.unwrap();
    }

    #[tokio::test]
    async fn a_backlog_that_stays_full_is_waited_for_in_vain() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gateway.sock");
        let _full = full(&path);
        let error = connect_or_wait(&path, Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
