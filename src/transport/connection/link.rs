//! The two directions of a connection and the news that its client has hung up.
//!
//! It must not know messages. Sockets, pipes and tests differ only here.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// What a connection is served over.
pub struct Link<R, W, G> {
    /// What the client sends.
    pub reader: R,
    /// What the client is sent.
    pub writer: W,
    /// Completes when the client will not read any more, also while nothing is read from it.
    pub hangup: G,
}

impl<R, W, G> fmt::Debug for Link<R, W, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Links two ends that cannot tell a client which has gone from one that only ended its input.
pub fn plain<R, W>(reader: R, writer: W) -> Link<R, W, impl Future<Output = ()> + Send> {
    Link { reader, writer, hangup: pending() }
}

/// Links a Unix socket.
///
/// # Errors
///
/// When no descriptor is left to watch the socket with.
pub fn unix(
    stream: UnixStream,
) -> io::Result<Link<OwnedReadHalf, OwnedWriteHalf, impl Future<Output = ()> + Send>> {
    let hangup = hangup(&stream)?;
    let (reader, writer) = stream.into_split();
    Ok(Link { reader, writer, hangup })
}

/// Watches a socket for a hang-up without taking bytes from it.
fn hangup(stream: &UnixStream) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    // A registration for urgent data alone is told of EPOLLHUP, which Linux never leaves out, but
    // neither of bytes to read nor of a client that closed one direction only.
    let watched = stream.as_fd().try_clone_to_owned()?;
    #[expect(deprecated, reason = "sound for an `OwnedFd`; its successor would need unsafe code")]
    let watched = AsyncFd::with_interest(watched, Interest::PRIORITY)?;
    Ok(async move {
        loop {
            match watched.ready(Interest::PRIORITY).await {
                Ok(mut guard) if !guard.ready().is_read_closed() => guard.clear_ready(),
                Ok(_) | Err(_) => return,
            }
        }
    })
}
