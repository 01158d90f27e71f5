//! The two directions of a connection and the news that its client has hung up.
//!
//! It must not know messages. Sockets, pipes and tests differ only here.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, Stdin, Stdout};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::transport::framing::lines::Lines;
use crate::transport::limits::Limits;

/// What a connection is served over.
pub struct Link<R, W, G> {
    /// What the client sends.
    pub reader: R,
    /// What the client is sent.
    pub writer: W,
    /// Completes when the client will not read any more, also while nothing is read from it.
    pub hangup: G,
}

impl<R: AsyncRead + Unpin, W, G> Link<R, W, G> {
    /// Reads lines within these limits from what the client sends.
    pub fn in_lines(self, limits: &Limits) -> Link<Lines<R>, W, G> {
        let Self { reader, writer, hangup } = self;
        Link { reader: Lines::new(reader, limits), writer, hangup }
    }
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

/// Links standard input and output.
pub fn stdio() -> Link<Stdin, Stdout, impl Future<Output = ()> + Send> {
    let output = std::io::stdout();
    // A socket tells its end in one way and a pipe in the other; a file never ends.
    let (socket, pipe) = (end(&output, Interest::PRIORITY), end(&output, Interest::ERROR));
    let hangup = async move {
        tokio::select! {
            () = or_never(socket) => {}
            () = or_never(pipe) => {}
        }
    };
    Link { reader: tokio::io::stdin(), writer: tokio::io::stdout(), hangup }
}

/// A Unix socket as a link.
pub type UnixLink = Link<OwnedReadHalf, OwnedWriteHalf, Hangup>;

/// Completes when a client has hung up.
pub type Hangup = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Watches a Unix socket for its client's hanging up.
///
/// # Errors
///
/// When no descriptor is left to watch the socket with.
pub fn watch_hangup(stream: &UnixStream) -> io::Result<Hangup> {
    Ok(Box::pin(end(stream, Interest::PRIORITY)?))
}

/// Links a Unix socket, watched by `hangup`.
pub fn unix(stream: UnixStream, hangup: Hangup) -> UnixLink {
    let (reader, writer) = stream.into_split();
    Link { reader, writer, hangup }
}

async fn or_never(end: io::Result<impl Future<Output = ()>>) {
    match end {
        Ok(end) => end.await,
        Err(_) => pending().await,
    }
}

/// Watches a descriptor for its end without taking bytes from it.
///
/// A registration for urgent data alone is told of EPOLLHUP, which Linux never leaves out, but
/// neither of bytes to read nor of a client that closed one direction only. One for errors alone is
/// told of EPOLLERR, which a pipe has when nobody is left to read from it.
fn end<F: AsFd>(
    descriptor: &F,
    interest: Interest,
) -> io::Result<impl Future<Output = ()> + Send + use<F>> {
    let watched = descriptor.as_fd().try_clone_to_owned()?;
    #[expect(deprecated, reason = "sound for an `OwnedFd`; its successor would need unsafe code")]
    let watched = AsyncFd::with_interest(watched, interest)?;
    Ok(async move {
        loop {
            match watched.ready(interest).await {
                Ok(guard) if guard.ready().is_read_closed() || guard.ready().is_error() => return,
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    })
}
